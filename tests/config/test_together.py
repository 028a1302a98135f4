"""The table of settings that do not go together: each rule can be looked at, and is on the page and in `--help`."""

import inspect
from dataclasses import fields

import pytest

from distgnn.cli.commands.train import EPILOG, GROUPS
from distgnn.config import CutConfig, Settings
from distgnn.config.option import option_name
from distgnn.config.together import RULES, WORKED_OUT, check_together, rules, rules_about
from distgnn.errors import InputError


def test_every_rule_is_about_settings_of_a_run_or_of_a_cut():
    """One about a setting that there is not would never be looked at. An extra's may be of another one that is gone."""
    run, cut = ({option_name(field) for group in groups for field in fields(group)} for groups in (GROUPS, [CutConfig]))
    for rule in rules():
        names = set(inspect.signature(rule.broken).parameters)
        assert names <= run | WORKED_OUT or names <= cut or (rule not in RULES and names & run), rule.says
    assert all(line in EPILOG for line in rules_about(run)) and "{" not in EPILOG


def test_a_rule_is_looked_at_where_all_its_settings_are_known():
    check_together(task="link")
    check_together(metric="f1")
    with pytest.raises(InputError, match="metric f1 is not for task link: choose from mrr"):
        check_together(task="link", metric="f1")
    with pytest.raises(InputError, match="negatives are drawn for task link"):
        check_together(task="node", negatives="uniform", num_negatives=2, lr=0.1)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"task": "nodes"}, "unknown task 'nodes'.*did you mean node"),
        ({"metric": "mrr"}, "metric mrr is not for task node: choose from accuracy, rocauc, f1"),
        ({"task": "link", "metric": "accuracy"}, "metric accuracy is not for task link"),
        ({"task": "link", "metric": "hits@7"}, "unknown metric 'hits@7'"),
        ({"loss": "mse"}, "loss mse is for values: task node has cross entropy"),
        ({"task": "edge", "num_negatives": 2}, "negatives are drawn for task link"),
        ({"task": "link", "num_negatives": 0}, "num_negatives is 0"),
        ({"task": "link", "inductive": True}, "inductive is for vertices"),
        ({"optimizer": "kfak"}, "unknown optimizer 'kfak'"),
        *(
            ({"task": task, "label_smoothing": 0.1}, f"is for classes: leave it out of task {task}")
            for task in ("regression", "edge-regression", "link")
        ),
        *(({"label_smoothing": wrong}, "label_smoothing is") for wrong in (-0.1, 1.1, float("nan"))),
        *(
            ({"dtype": "bfloat16"} | more, "bfloat16 is for sage, gcn, gat, gin")
            for more in ({"model": "gatv2"}, {"norm": "batch"}, {"head": "cat"})
        ),
        *(({"remat": True} | more, "remat is for stacks") for more in ({"model": "appnp"}, {"norm": "batch"})),
        ({"late_row_average": 0.5}, "late_row_average averages rows that are late: cd-0 has none"),
        ({"algorithm": "cd-2", "late_row_average": 1.0}, "late_row_average is 1.0"),
        ({"algorithm": "cd-2", "late_row_average": float("nan")}, "late_row_average is nan"),
        ({"algorithm": "cd-2", "warmup_epochs": 0}, "warmup_epochs is 0"),
        ({"algorithm": "cd-x"}, "unknown algorithm 'cd-x'"),
        ({"norm": "layr"}, "did you mean layer?"),
        ({"wire": "int3"}, "unknown wire 'int3'"),
        ({"lr_schedule": "stairs"}, "unknown lr_schedule 'stairs'"),
        ({"dtype": "float16"}, "unknown dtype 'float16'"),
        *(({name: 0}, f"{name} is 0") for name in ("num_layers", "epochs", "runs")),
        *(({name: -1.0}, f"{name} is -1.0") for name in ("weight_decay", "clip_grad", "timeout")),
        ({"lr": float("nan")}, "lr is nan"),
        ({"decoder": "dot"}, "decoder dot is for pairs of vertices: task node has none"),
        ({"task": "edge", "decoder": "dot"}, "decoder dot gives one number"),
        ({"task": "link", "decoder": "bilinear"}, "unknown decoder 'bilinear'"),
        ({"num_bases": 2}, "num_bases is for rgcn"),
        ({"model": "gine", "weighted": True}, "gine takes no edge weights: choose gin"),
        *(
            ({"remat": True} | more, "--remat repeats exchanges")
            for more in ({"wire": "int8"}, {"wire_backward": "bfloat16"}, {"algorithm": "cd-2"})
        ),
        ({"dtype": "float64", "wire": "int8"}, "narrow float32 rows"),
    ],
)
def test_what_does_not_go_together_is_refused(options, says):
    with pytest.raises(InputError, match=says):
        Settings().with_options(options).checked()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"remat": True, "inductive": True},
        {"wire": "int4"},
        {"wire_backward": "int8"},
        {"algorithm": "cd-5", "wire": "int8", "late_row_average": 0.9},
    ],
)
def test_what_goes_together_is_allowed(options):
    Settings().with_options(options).checked()


def test_a_refined_cut_may_be_improved():
    CutConfig("libra", refine=True, effort="best").check()
