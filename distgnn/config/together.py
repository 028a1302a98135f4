"""Which settings do not go together: one table. Errors, `distgnn train --help` and the guide are made from it.

A rule is the line that is said, with {names} of settings in it, and what breaks it: a condition on settings, by the
names of their options. It is looked at wherever all of them are known. Some are worked out of others: `algorithm` is
parsed, `exact`: exchanges are synchronous and in float32; `by_arc` and `is_bare` are of a ModelConfig, `graph` of
partition.json.
"""

import inspect
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from distgnn.config.extras import Rule, extras
from distgnn.config.task import CLASS_TASKS, METRICS_OF, PAIR_TASKS
from distgnn.errors import InputError

ATTENTION_MODELS = ("gat", "gatv2", "edgegat")
# Models that take no edge weights, and one that does
UNWEIGHTED_MODELS = {"gatv2": "gat", "gine": "gin", "edgegat": "gat", "rgcn": "gcn", "rgat": "gat", "hgt": "gat"}
DEEP_MODELS = ("gcn2", "appnp")
TYPED_MODELS = ("rgcn", "rgat", "hgt")  # of types and relations, where a graph has them
ONE_PASS_MODELS = ("sage", "gcn", "gat")  # a hidden layer is one function: see distgnn.ops
WORKED_OUT = {"algorithm", "exact", "by_arc", "is_bare", "graph", "typed", "of_extras"}
BFLOAT16_MODELS = (*ONE_PASS_MODELS, "gin")  # whose float32 numbers are inside a function


def _needs_float32(model: str, norm: str, is_bare: bool, weighted: bool) -> bool:
    fits = model in BFLOAT16_MODELS and norm in ("layer", "none") and is_bare
    return not fits or (model == "gat" and weighted)


RULES = [Rule(*row) for row in (
    # how rows travel
    ("late_row_average averages rows that are late: {algorithm.name} has none; choose cd-R, R >= 1",
     lambda algorithm, late_row_average: late_row_average and algorithm.delay is None),
    # training
    ("metric {metric} is not for task {task}: choose from {metrics}",
     lambda task, metric: metric not in (None, *METRICS_OF[task]) and {"metrics": ", ".join(METRICS_OF[task])}),
    ("loss {loss} is for values: task {task} has cross entropy",
     lambda task, loss: loss is not None and not task.endswith("regression")),
    ("negatives are drawn for task link, not for task {task}",
     lambda task, negatives, num_negatives: task != "link" and (negatives, num_negatives) != ("uniform", 1)),
    ("label_smoothing is for classes: leave it out of task {task}",
     lambda task, label_smoothing: task not in CLASS_TASKS and label_smoothing),
    ("inductive is for vertices: task {task} holds edges out by their split",
     lambda task, inductive: task in PAIR_TASKS and inductive),
    ("conv_weight_decay is an L2 penalty, of optimizer adam and sgd: {optimizer} has none",
     lambda optimizer, conv_weight_decay: conv_weight_decay is not None and optimizer not in ("adam", "sgd")),
    # the model
    ("remat is for stacks of equal layers without batch norm: not gcn2, appnp or norm batch",
     lambda model, norm, remat: remat and (model in DEEP_MODELS or norm == "batch")),
    ("{model} has a connection to its first rows already: leave block, stem and head out",
     lambda model, block, stem, head: model in DEEP_MODELS and (block, stem, head) != ("plain", "none", "conv")),
    ("residual is of --block residual: add it",
     lambda block, residual: block != "residual" and residual != "linear"),
    ("{model} takes no edge weights: choose {other}, or leave weighted out",
     lambda model, weighted: weighted and model in UNWEIGHTED_MODELS and {"other": UNWEIGHTED_MODELS[model]}),
    ("{model} has no relations to share weights between: num_bases is for rgcn",
     lambda model, num_bases: num_bases and model != "rgcn"),
    ("hidden_feats is {hidden_feats}: expected a multiple of num_heads, {num_heads}",
     lambda model, hidden_feats, num_heads: model in (*ATTENTION_MODELS, "rgat", "hgt") and hidden_feats % num_heads),
    (f"bfloat16 is for {', '.join(BFLOAT16_MODELS)} with norm layer or none, block plain, without stem, head and "
     "input_dropout (and gat without weights): choose float32",
     lambda dtype, model, norm, is_bare, weighted:
         dtype == "bfloat16" and _needs_float32(model, norm, is_bare, weighted)),
    ("--remat repeats exchanges: it needs algorithm cd-0 and float32 on the wire",
     lambda remat, exact: remat and not exact),
    ("--wire and wire_backward narrow float32 rows: leave them out, or choose dtype float32",
     lambda dtype, wire, wire_backward: dtype == "float64" and {wire, wire_backward} - {"float32", None}),
    ("decoder {decoder} is for pairs of vertices: task {task} has none",
     lambda task, decoder: decoder is not None and task not in PAIR_TASKS),
    ("decoder dot gives one number: task edge needs one for each class, choose mlp or concat",
     lambda task, decoder: decoder == "dot" and task == "edge"),
    # types and relations
    ("a target is for models that know types: {known}, and your own",
     lambda target, typed: target is not None and not typed and {"known": ", ".join(TYPED_MODELS)}),
    ("{model} of several types has norm layer or none: leave --norm {norm} out",
     lambda typed, model, norm: typed and model in TYPED_MODELS and norm not in ("layer", "none")),
    ("{model} of several types has plain layers: leave block, stem, head, input_dropout and remat out",
     lambda typed, model, is_bare, remat: typed and model in TYPED_MODELS and (remat or not is_bare)),
    ("rows of relations are exchanged exactly and whole: leave --algorithm and --wire out",
     lambda typed, exact: typed and not exact),
    ("rows of several types are float32 or float64: leave bfloat16 out",
     lambda typed, dtype: typed and dtype == "bfloat16"),
    ("features of several types are taken as they are: leave feat_norm out",
     lambda typed, feat_norm: typed and feat_norm != "none"),
    ("a graph of several types is trained on as a whole: leave inductive out",
     lambda typed, inductive: typed and inductive),
    ("tasks on a graph of several types are node and regression, not {task}",
     lambda typed, task: typed and task in PAIR_TASKS),
    ("a graph of several types goes with no option of an extra: leave these out",
     lambda typed, of_extras: typed and of_extras),
    # a cut
    ("a link split is made in memory, without a limit: split the graph first (GraphData.split_links(…).save(folder)) "
     "and cut that folder with memory",
     lambda link_split, memory: link_split is not None and memory is not None),
    ("{method} has no use for effort {effort}: choose cmr, or refine another method's cut",
     lambda method, refine, effort: effort != "normal" and not uses_effort(method, refine)),
    ("clusters of vertices are found in memory, without a limit: leave memory out",
     lambda clusters, memory: clusters and memory is not None),
)]  # fmt: skip


def uses_effort(method: str, refine: bool) -> bool:
    """Whether the effort of a cut makes a difference."""
    return method == "cmr" or bool(refine)


def rules() -> list[Rule]:
    """Lines of the table, and of the extras that are here."""
    return [*RULES, *(rule for extra in extras().values() for rule in extra.rules)]


@cache
def names_of(broken: Callable[..., object]) -> frozenset[str]:
    """The settings that a condition is about; kept, for every training run and graph looks at some hundred."""
    return frozenset(inspect.signature(broken).parameters)


def check_together(**known: Any) -> None:
    """Raise InputError for the first rule that these settings break."""
    for rule in rules():
        names = names_of(rule.broken)
        if known.keys() >= names and (found := rule.broken(**{name: known[name] for name in names})):
            raise InputError(rule.says.format(**known | (found if isinstance(found, dict) else {})))


def rules_about(options: set[str]) -> list[str]:
    """The lines that settings of a command can be refused with; of a setting in a line its name, in capitals."""
    known = options | WORKED_OUT
    found = (rule for rule in rules() if known >= names_of(rule.broken))
    return [in_capitals(rule) for rule in found]


def in_capitals(rule: Rule) -> str:
    """The line of a rule, with the names of settings in it."""
    return re.sub(r"\{(\w+)[^}]*\}", lambda found: found[1].upper(), rule.says)
