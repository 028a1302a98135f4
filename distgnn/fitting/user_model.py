"""A user's module as the Trainer calls it: whatever its forward takes, it gets from (graph, feats).

| forward takes | it gets |
|---|---|
| (graph, feats), as DGL's models do | just that, in either order |
| (x, edge_index, …), as PyG's do | feats, graph.edge_index, and by its name each further argument without a default |
| (x_dict, edge_index_dict, …), of a typed graph; also `to_hetero`'s (x, edge_index, …) | dicts by type and relation |
| (x, edge_index=None) | the arcs, too |
| (data) | the graph, which has x, edge_index, … |
| (x) | feats |
| (*args), around one module, as DataParallel's | what that one takes |

What a run of `dg.fit` has beside settings: a user's model on each rank, one seed for all, and predictions.
"""

import contextlib
import copy
import inspect
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.errors import InputError
from distgnn.nn import distribute
from distgnn.ops.sums import is_rows
from distgnn.system.calls.packing import pack, unpack
from distgnn.system.launch import under_mpi
from distgnn.system.output import say
from distgnn.train.predict import write_best
from distgnn.train.run.run_folder import PREDICTIONS
from distgnn.train.users_model import run_model, sees_rows

GRAPH = ("graph", "g", "dist_graph", "block")
DATA = ("data",)
FEATS = (
    *("x", "feats", "feat", "features", "h", "input", "inputs", "in_feat", "node_feats", "node_feat", "xs"),
    *("x_dict", "h_dict", "feat_dict", "feats_dict"),
)
ARCS = ("edge_index", "adj_t", "adj", "edges", "edge_index_dict", "adj_t_dict")
CACHES = ("_cached_edge_index", "_cached_adj_t", "_cached_x", "_cached_h")  # of layers of PyG and DGL: of another graph
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
BY_TYPE = "_dict"  # behind the names of columns by type or relation
COLUMNS = (  # of the graph, under PyG's names
    *("edge_weight", "edge_attr", "edge_type", "node_type", "batch"),
    *(f"{name}{BY_TYPE}" for name in ("edge_attr", "edge_weight")),
)


def adapt(model: nn.Module) -> nn.Module:
    """The module, to be called with (graph, feats) from now on; its parameters keep their names. Raises: InputError."""
    model = without_compile(model)
    for module in model.modules():
        for cache in (name for name in CACHES if getattr(module, name, None) is not None):
            setattr(module, cache, None)
    names = arguments_of(model)
    if names != ["graph", "feats"]:
        by_type = next((one for one in inspect.signature(model.forward).parameters if one.endswith(BY_TYPE)), "")
        model.forward = _Adapted(model.forward, names, by_type)
    return model


def without_compile(model: Any) -> Any:
    """The module that `torch.compile` was given: ranks would each compile it, and its exchanges cannot be."""
    while type(model).__name__ == "OptimizedModule" and type(model).__module__.startswith("torch."):
        (model,) = model.children()
    return model


def copied(model: nn.Module) -> nn.Module:
    """A copy with all tensors of its own; `copy.deepcopy` refuses what weight_norm has computed from its parameters."""
    values = (value for module in model.modules() for value in vars(module).values())
    made = [value for value in values if isinstance(value, torch.Tensor) and not value.is_leaf]
    return copy.deepcopy(model, {id(value): value.detach().clone() for value in made})


def draw_anew(model: nn.Module) -> None:
    """Draw the weights of a module again, by `reset_parameters` of it and of all modules inside.

    Raises: InputError for a module whose weights nothing draws.
    """
    drawn: set[int] = set()
    for name, module in model.named_modules():
        reset = getattr(module, "reset_parameters", None)
        if callable(reset):
            reset()
            drawn |= {id(one) for one in module.parameters()}
        left = next((key for key, one in module.named_parameters(recurse=False) if id(one) not in drawn), None)
        if left is not None:
            place = f"{name}.{left}" if name else left
            raise InputError(
                f"runs draws weights for each seed, and nothing draws {place}: give {type(module).__name__} a "
                "reset_parameters(), or as model a function of the graph that makes it"
            )


class _Adapted:
    """`forward` of a module, called with (graph, feats). Args: by_type: an argument that is a dict by type, if any."""

    def __init__(self, forward: Any, names: list[str], by_type: str = ""):
        self._forward, self._names, self._by_type = forward, names, by_type

    def __call__(self, graph: Any, feats: Any) -> Any:
        given, typed = {"graph": graph, "feats": feats}, isinstance(feats, dict)
        if self._by_type and not typed:
            raise InputError(f"forward takes {self._by_type}, and the graph has one type: give its x and edge_index")
        for name in (name for name in self._names if name not in given):
            there = name.removesuffix(BY_TYPE) + BY_TYPE if typed else name
            given[name] = getattr(graph, there, None)
            if given[name] is None:
                raise InputError(
                    f"forward takes {name}, and the graph has none: give it to the graph, or a default to {name}"
                )
        return self._forward(*(given[name] for name in self._names))


def arguments_of(model: nn.Module) -> list[str]:
    """What the arguments of forward are: "graph", "feats", "edge_index" or a column, in their order."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        every = list(inspect.signature(model.forward).parameters.values())
    except (TypeError, ValueError):
        every = []
    lazy = next((name for name, one in model.named_parameters() if torch.nn.parameter.is_lazy(one)), None)
    if lazy is not None:
        raise InputError(
            f"{type(model).__name__}: {lazy} is lazy, and has no size yet: give widths in place of -1 and "
            "LazyLinear, or call the model once before, on PyG's or DGL's graph"
        )
    taken = [one.name for one in every if one.kind in kinds and one.default is inspect.Parameter.empty]
    behind = every[len(taken)].name if taken and len(every) > len(taken) else ""
    if behind in ARCS and not {*GRAPH, *DATA} & {*taken}:
        taken.append(behind)  # a model with edge_index=None is not to be run without its graph
    children = list(model.children())
    if not taken and len(children) == 1 and all(one.kind in VARIABLE for one in every):
        return arguments_of(children[0])
    if not taken:
        return ["feats", "edge_index"] if type(model).__module__.startswith("torch_geometric.") else ["graph", "feats"]
    meanings = dict.fromkeys((*GRAPH, *DATA), "graph") | dict.fromkeys(FEATS, "feats")
    meanings |= dict.fromkeys(ARCS, "edge_index") | {name: name for name in COLUMNS}
    found = [meanings.get(name) for name in taken]
    if found == [None]:
        return ["feats"]
    if len(found) == 2 and found.count(None) == 1 and "feats" not in found:
        found[found.index(None)] = "feats"  # beside a graph or arcs
    if None in found:
        unknown = taken[found.index(None)]
        raise InputError(
            f"{type(model).__name__}.forward takes ({', '.join(taken)}), and {unknown} is nothing that fit can give: "
            f"known are graph, {', '.join(('x', *ARCS[:1], *COLUMNS))}; others need a default"
        )
    return [name for name in found if name is not None]


def not_given(model: nn.Module, graph: Any) -> str | None:
    """A line on a column of the graph that forward has a default for and so is not given; None: there is none."""
    if not isinstance(model.forward, _Adapted):
        return None
    every = inspect.signature(model.forward._forward).parameters
    left = [name for name in COLUMNS if name in every and getattr(graph, name, None) is not None]
    left = [name for name in left if every[name].default is not inspect.Parameter.empty]
    if not left:
        return None
    return f"{', '.join(left)} of the graph is not given to {type(model).__name__}.forward, which has a default for it"


def make_model(graph: Any, packed: bytes, several: bool, speak: bool) -> tuple[nn.Module, bytes | None]:
    """The user's module for this graph, and what their function made, packed. Args: several: seeds."""
    model, made = unpack(packed), None
    if not isinstance(model, nn.Module):
        model = without_compile(model(graph))
        if not isinstance(model, nn.Module):
            raise InputError(f"the function given as model made a {type(model).__name__}: expected a torch module")
        has_tables = any(map(is_rows, model.parameters()))  # which all ranks pack
        made = pack(model, type(model).__name__) if graph.rank == 0 or has_tables else b""
    elif several:
        draw_anew(model)
    model = adapt(model)
    if not sees_rows(model, graph):
        distribute(model, graph)
    line = not_given(model, graph)
    if line is not None and speak and graph.rank == 0:
        say(line)
    return model, made


def predict(trainer: Any) -> None:
    """Write what the best weights give into the run folder. Collective: yes."""
    trainer.model.eval()
    with torch.no_grad():
        rows = run_model(trainer.model, trainer.whole)
    out = str(Path(trainer.config.run_dir) / PREDICTIONS)
    write_best(trainer.rows, trainer.model, rows, trainer.config, out)


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Within, all generators that a user's code may draw from follow the seed; a caller's own go on as before."""
    before, alone = (random.getstate(), np.random.get_state()), not under_mpi()
    with torch.random.fork_rng(devices=[], enabled=alone):
        seed_all(seed)
        try:
            yield
        finally:
            if alone:
                random.setstate(before[0])
                np.random.set_state(before[1])


def seed_all(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    torch.manual_seed(seed)
