"""A user's model sees rows of all ranks (`distgnn.rows`), one of `distgnn.nn` this rank's rows: one call for both;
a module that fails on what it is given is named in one line.

What is looked at before training: a graph that allows it, and modules that would depend on the number of ranks.
"""

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from distgnn.config import TrainConfig
from distgnn.config.option import options_of
from distgnn.config.task import check_graph_for, check_training_graph
from distgnn.config.together import check_together
from distgnn.errors import DistGNNError, InputError, is_of_mpi, on_all_ranks, users_line
from distgnn.graph.task_rows import TaskRows, rows_of_task
from distgnn.rows import RowTensor
from distgnn.rows.align import in_space
from distgnn.system.free_memory import no_memory

GRAPH_NAMES = ("graph", "g", "dist_graph")


def check_trainable(model: nn.Module, graph: Any, config: TrainConfig, own_loss: Any) -> None:
    """Raise InputError for a graph without what the task needs, and for a model or settings that cannot be trained."""
    if own_loss is not None and config.label_smoothing:
        raise InputError(
            "label_smoothing is for the Trainer's own loss: leave it out, and smooth in your loss function"
        )
    # The metric may be the user's own: `check_own` has looked at it.
    check_together(**options_of(config) | options_of(graph.schedule) | {"metric": None, "graph": graph.info})
    info = rows_of_task(graph).info
    check_graph_for(config.task, info)
    check_training_graph(config, info)
    norm = graph.feat_norm
    if config.inductive and norm is not None and norm.mean is not None and not norm.inductive:
        raise InputError(
            f"inductive training, and the statistics of feat_norm {norm.name} are of all vertices: load the graph with "
            "inductive=True"
        )
    check_forward(model)


def check_forward(model: nn.Module) -> None:
    """Raise InputError for a `forward` that names the graph as its second argument: the trainer gives it first."""
    try:
        names = list(inspect.signature(model.forward).parameters)[:2]
    except (TypeError, ValueError):  # made by something that tells no names
        return
    if len(names) == 2 and names[1] in GRAPH_NAMES and names[0] not in GRAPH_NAMES:
        kind = type(model).__name__
        raise InputError(
            f"the Trainer calls model(graph, feats), and {kind}.forward takes ({', '.join(names)}): swap the two"
        )


def warn_of_modules_per_rank(model: nn.Module, graph: Any) -> None:
    """Warn, on rank 0 of several, of torch's own modules that work on one rank's rows only."""
    if sees_rows(model, graph):
        return
    kinds = (nn.modules.batchnorm._BatchNorm, nn.Dropout)
    names = [
        name
        for name, module in model.named_modules()
        if (isinstance(module, kinds) and getattr(module, "p", True))
        or type(module).__module__.startswith("torch_geometric.nn.norm.")
    ]
    if names and graph.num_ranks > 1 and graph.rank == 0:
        warnings.warn(
            f"{', '.join(names)}: torch's own module works per rank, so results depend on the number of ranks; "
            "call distgnn.nn.distribute(model, graph) first",
            stacklevel=4,
        )


OURS = ("distgnn.", "torch.nn.")
SEEDS = 1 << 63
LIBRARIES = ("torch.", "torch_geometric.", "dgl.", "distgnn.")  # whose code the user did not write
WRAPPERS = ("torch._dynamo.", "torch.jit.", "torch.fx.", "torch.nn.utils.")  # of modules that the user did write
FAULTS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)
WIDTHS = ("in_features", "in_channels", "num_features")  # as modules of torch and PyG call the width they take
MODULE_CALL = nn.Module.__call__.__code__  # of (self, *args, **kwargs)
BOXES = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
LONGEST = 300  # letters of another library's message

Call = tuple[nn.Module, tuple[Any, ...]]  # a module, and what it was given


def face_of(graph: Any) -> Any:
    """The graph as scripts see it; None for one that was loaded with plain tensors, or made in memory."""
    return getattr(graph, "face", None)


def sees_rows(model: nn.Module, graph: Any) -> bool:
    """Does the model run on rows of all ranks? One that has a module of neither DistGNN nor torch does."""
    if face_of(graph) is None:
        return False
    return not all(type(module).__module__.startswith(OURS) for module in model.modules())


def run_model(model: nn.Module, graph: Any) -> torch.Tensor:
    """What the model gives for this rank's rows [O, C] of the task, an ordinary tensor. Collective: yes."""
    task = rows_of_task(graph)
    if not sees_rows(model, graph):
        return model(graph, graph.feats) if task is graph else model(task.face, task.local_feats)
    face = face_of(task)
    feats, space = (task.feats, task.vertex_space) if isinstance(task, TaskRows) else (face.feats, face.vertex_space)
    with named_faults(model, face):
        out = model(face, feats)
    out = task.picked(out) if isinstance(task, TaskRows) else out
    dims = (1, 2) if task.num_classes <= 2 else (2,)  # one number of each vertex may be [N]
    if not isinstance(out, RowTensor) or out.shape[0] != space.num_global or out.row_dim or out.ndim not in dims:
        given = f"a tensor {list(out.shape)}" if isinstance(out, torch.Tensor) else f"a {type(out).__name__}"
        if isinstance(out, tuple | list):
            given += f" of {len(out)}"
        says = f"{type(model).__name__} gave {given} for {space.num_global} vertices: the Trainer takes one tensor"
        raise on_all_ranks(InputError(f"{says} [N, C], a row for each vertex, made of graph.feats"))
    if not out.is_floating_point() or (torch.is_grad_enabled() and not out.requires_grad):
        fault = "rows without a gradient" if out.is_floating_point() else f"rows of {out.dtype}"
        says = f"{type(model).__name__} gave {fault}: expected logits as the last layer gives them"
        raise on_all_ranks(InputError(says))
    if out.row_space.trail is not None:
        out.row_space.trail.given = out.origin
    return in_space(out, space).inner


def trail_of(model: nn.Module, graph: Any) -> Any:
    """What knows how the rows were made that a user's model gave; None for other models."""
    return face_of(graph).vertex_space.trail if sees_rows(model, graph) else None


def check_width(model: str, rows: torch.Tensor, width: int, of: str, least: bool = False) -> None:
    """Raise InputError, on all ranks, for rows of another width than the data need. Args: least: more are fine."""
    given = rows.shape[1] if rows.dim() == 2 else 1
    if given < width or (given > width and not least):
        says = f"{model} gave rows of width {given}, and the graph has {width} {of}"
        raise on_all_ranks(InputError(f"{says}: the last layer needs {width} outputs"))


def seen_by_users(graph: Any, logits: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """The graph and its logits as a user's function gets them."""
    face = face_of(graph)
    if face is None:
        return graph, logits
    return face, graph.rows_of(logits) if isinstance(graph, TaskRows) else face.rows_of(logits)


@contextmanager
def drawing(model: nn.Module, graph: Any) -> Iterator[None]:
    """Within, torch's generator is the step's: a user's model draws the same numbers on all ranks and again."""
    if not sees_rows(model, graph):
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed((graph.seed * 0x9E3779B97F4A7C15 + graph.step + 1) % SEEDS)
        yield


@contextmanager
def named_faults(model: nn.Module, graph: Any) -> Iterator[None]:
    """Within, what a library's module inside the model raises is an InputError that names the module.

    Errors of the user's own code, and of the program, are raised as they are.
    """
    try:
        yield
    except FAULTS as error:
        running, place = _running(error)
        others = isinstance(error, DistGNNError) or is_of_mpi(error)  # a rank that died is no fault of the model
        if others or not running or not _is_library(running[-1][0]) or not place.startswith(LIBRARIES):
            raise
        made = InputError(_line(model, graph, running, error))
        made.traced = False
        raise made from None


@contextmanager
def own_faults() -> Iterator[None]:
    """Within, what a user's code raises, or a library that it calls, is an InputError that names the user's line."""
    try:
        yield
    except Exception as error:
        made = InputError(f"the model's own code fails: {' '.join(f'{type(error).__name__}: {error}'.split())}")
        place = users_line(made, error.__traceback__)
        if isinstance(error, DistGNNError) or is_of_mpi(error) or no_memory(error, 0) is not None or not place:
            raise
        raise InputError(f"{made}{place}") from error


def _running(error: Exception) -> tuple[list[Call], str]:
    """The calls of modules that an error has come through, the outermost first; and in whose code it was raised."""
    found, place, trace = [], "", error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is MODULE_CALL:
            found.append(tuple(trace.tb_frame.f_locals[name] for name in MODULE_CALL.co_varnames[:2]))
        place = str(trace.tb_frame.f_globals.get("__name__"))
        trace = trace.tb_next
    return found, place


def _line(model: nn.Module, graph: Any, running: list[Call], error: Exception) -> str:
    names = {module: name for name, module in model.named_modules()}
    inner = (place for place, (one, _) in enumerate(running) if _is_library(one) and not isinstance(one, BOXES))
    outer = next(inner, len(running) - 1)
    for module, given in reversed(running[outer:]):
        width = next((getattr(module, name) for name in WIDTHS if isinstance(getattr(module, name, None), int)), None)
        came = given[0].shape[1] if given and isinstance(given[0], torch.Tensor) and given[0].dim() == 2 else None
        if None not in (width, came) and width != came:
            source = "the graph's features" if came == graph.num_feats else "rows"
            return f"{_name(model, names, module)} takes rows of width {width}, and was given {source} of width {came}"
    module, given = running[outer]
    shown = ", ".join(map(_described, given)) or "nothing"
    return f"{_name(model, names, module)} was given ({shown}): {' '.join(str(error).split())[:LONGEST]}"


def _name(model: nn.Module, names: dict[nn.Module, str], module: nn.Module) -> str:
    kind = type(module).__name__
    return f"{names[module]} ({kind}) of {type(model).__name__}" if names.get(module) else kind


def _described(one: Any) -> str:
    shape = isinstance(one, torch.Tensor)
    return f"{list(one.shape)} {str(one.dtype).removeprefix('torch.')}" if shape else type(one).__name__


def _is_library(module: nn.Module) -> bool:
    place = type(module).__module__
    return place.startswith(LIBRARIES) and not place.startswith(WRAPPERS)
