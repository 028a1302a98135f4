"""A user's model sees rows of all ranks (`distgnn.rows`), one of `distgnn.nn` this rank's rows: one call for both."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from distgnn.errors import InputError
from distgnn.rows import RowTensor
from distgnn.rows.align import in_space

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
    """What the model gives for this rank's rows [O, C], an ordinary tensor. Collective: yes. Raises: InputError where a
    user's model gives no row of each vertex."""
    if not sees_rows(model, graph):
        return model(graph, graph.feats)
    face = face_of(graph)
    out = model(face, face.feats)
    if not isinstance(out, RowTensor) or out.shape[0] != face.num_nodes or out.row_dim:
        given = f"{list(out.shape)}" if isinstance(out, torch.Tensor) else type(out).__name__
        raise InputError(
            f"{type(model).__name__} gave {given} for {int(face.num_nodes)} vertices: the Trainer takes one row of "
            "each, made of graph.feats"
        )
    return in_space(out, face.vertex_space).inner


def seen_by_users(graph: Any, logits: torch.Tensor) -> tuple[Any, torch.Tensor]:
    """The graph and its logits as a user's function gets them."""
    face = face_of(graph)
    return (graph, logits) if face is None else (face, face.rows_of(logits))


@contextmanager
def drawing(model: nn.Module, graph: Any) -> Iterator[None]:
    """Within, torch's generator is that of the step: a user's model draws the same numbers on all ranks and again."""
    if not sees_rows(model, graph):
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed((graph.seed * 0x9E3779B97F4A7C15 + graph.step + 1) % SEEDS)
        yield
