"""A user's model sees rows of all ranks (`distgnn.rows`), one of `distgnn.nn` this rank's rows: one call for both."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from distgnn.errors import InputError, on_all_ranks
from distgnn.rows import RowTensor, local_of
from distgnn.rows.align import in_space
from distgnn.train.module_faults import named_faults

OURS = ("distgnn.", "torch.nn.")
SEEDS = 1 << 63


def face_of(graph: Any) -> Any:
    """The graph as scripts see it; None for one that was loaded with plain tensors, or made in memory."""
    return getattr(graph, "face", None)


def sees_rows(model: nn.Module, graph: Any) -> bool:
    """Does the model run on rows of all ranks? One that has a module of neither DistGNN nor torch does."""
    if face_of(graph) is None:
        return False
    return not all(type(module).__module__.startswith(OURS) for module in model.modules())


def run_model(model: nn.Module, graph: Any) -> torch.Tensor:
    """What the model gives for this rank's rows [O, C], an ordinary tensor. Collective: yes.

    Raises: InputError where a user's model gives no row of each vertex, or one of its modules was given other rows than
        it takes.
    """
    if not sees_rows(model, graph):
        return model(graph, graph.feats)
    face = face_of(graph)
    with named_faults(model, face):
        out = model(face, face.feats)
    if not isinstance(out, RowTensor) or out.shape[0] != face.num_nodes or out.row_dim or out.ndim != 2:
        given = f"a tensor {list(out.shape)}" if isinstance(out, torch.Tensor) else f"a {type(out).__name__}"
        if isinstance(out, tuple | list):
            given += f" of {len(out)}"
        raise on_all_ranks(
            InputError(
                f"{type(model).__name__} gave {given} for {int(face.num_nodes)} vertices: the Trainer takes one "
                "tensor, a row for each vertex, made of graph.feats"
            )
        )
    if not out.is_floating_point() or (torch.is_grad_enabled() and not out.requires_grad):
        fault = "rows without a gradient" if out.is_floating_point() else f"rows of {out.dtype}"
        raise on_all_ranks(
            InputError(f"{type(model).__name__} gave {fault}: expected logits as the last layer gives them")
        )
    return in_space(out, face.vertex_space).inner


def check_width(model: str, rows: torch.Tensor, width: int, of: str, least: bool = False) -> None:
    """Raise InputError, on all ranks, for rows of another width than the data need. Args: least: more are fine."""
    given = rows.shape[1]
    if given < width or (given > width and not least):
        raise on_all_ranks(
            InputError(
                f"{model} gave rows of width {given}, and the graph has {width} {of}: the last layer "
                f"needs {width} outputs"
            )
        )


def seen_by_users(graph: Any, logits: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """The graph and its logits as a user's function gets them."""
    face = face_of(graph)
    return (graph, logits) if face is None else (face, face.rows_of(logits))


def share_of_whole(graph: Any, loss: torch.Tensor) -> tuple[torch.Tensor, float]:
    """A loss of the whole graph, alike on all ranks: the scalar for the backward pass, and the share of the record."""
    first = graph.rank == 0
    plain = local_of(loss)
    return plain * float(first), plain.item() if first else 0.0


@contextmanager
def drawing(model: nn.Module, graph: Any) -> Iterator[None]:
    """Within, torch's generator is that of the step: a user's model draws the same numbers on all ranks and again."""
    if not sees_rows(model, graph):
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed((graph.seed * 0x9E3779B97F4A7C15 + graph.step + 1) % SEEDS)
        yield
