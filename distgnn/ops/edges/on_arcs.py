"""Rows on arcs: owned rows travel to the arcs at their ends, and rows on arcs are added at the ends' owners.

Legend: O owned rows, A local arcs, D width, role "source" or "target": which end of an arc.

    to_arcs(x)[arc] = x[end of arc]        from_arcs(m)[v] = sum over the arcs with end v, over all ranks, of m[arc]

Each is the other's transpose, so each is the other's backward pass.
"""

from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.aggregation.halo import as_array, halo_broadcast, merge_at_owners, onto_owners, with_halos
from distgnn.ops.edges import arc_blocks
from distgnn.ops.entry import of_floats
from distgnn.ops.function import linear_map
from distgnn.ops.graph_view import GraphView

FLOATS = (torch.float32, torch.float64)


@of_floats
def to_arcs(graph: GraphView, rows: torch.Tensor, role: str) -> torch.Tensor:
    """The row at one end of every local arc: [O, ...] to [A, ...].

    Collective: yes, and again in the backward pass (`from_arcs`).

    Notes: rows of integers or truth values travel as float64, which holds them up to 2 ** 53.

    Example:
        >>> dg.ops.to_arcs(graph, graph.feats, "source").shape
        torch.Size([290, 8])
    """
    check_rows(graph, rows, role)
    if rows.dtype not in FLOATS:
        return to_arcs(graph, rows.double(), role).to(rows.dtype)
    if in_blocks(graph):
        owned = flat(rows)
        halos = halo_broadcast(graph, owned, role)
        made = arc_blocks.gathered_rows(owned, halos, graph.local_arcs.ends[role])
        return made.view(graph.num_edges(), *rows.shape[1:])
    found = linear_map(flat(rows), lambda one: _gathered(graph, one, role), lambda one: _summed(graph, one, role))
    return found.view(graph.num_edges(), *rows.shape[1:])


@of_floats
def from_arcs(graph: GraphView, arc_rows: torch.Tensor, role: str = "target") -> torch.Tensor:
    """Sum of arc rows at the owner of one end: [A, ...] to [O, ...].

    Collective: yes, and again in the backward pass (`to_arcs`).

    Example:
        >>> ones = torch.ones(graph.num_edges(), 1)
        >>> bool((dg.ops.from_arcs(graph, ones)[:, 0] == graph.in_degrees()).all())
        True
    """
    check_arc_rows(graph, arc_rows)
    if isinstance(arc_rows, arc_blocks.ArcBlocks):
        return summed_blocks(graph, graph.local_arcs.grouped[role], arc_rows, role)
    found = linear_map(flat(arc_rows), lambda one: _summed(graph, one, role), lambda one: _gathered(graph, one, role))
    return found.view(graph.num_at(role), *arc_rows.shape[1:])


def in_blocks(graph: GraphView) -> bool:
    """Are rows of arcs made in blocks? Only in a pass that takes little memory, and where arcs are many."""
    return graph.buffers.lean and not torch.is_grad_enabled() and graph.num_edges() >= arc_blocks.LEAST_ARCS


def summed_blocks(graph: GraphView, group: Any, rows: arc_blocks.ArcBlocks, role: str = "target") -> torch.Tensor:
    """Arc rows added at owners, made block by block: [O, ...]. Collective: yes. Args: group: their arcs by copies."""
    partial, _ = arc_blocks.partial_rows(group, rows, "sum")
    return torch.from_numpy(onto_owners(graph, partial, role)).view(graph.num_at(role), *rows.shape[1:])


def extreme_blocks(graph: GraphView, group: Any, rows: arc_blocks.ArcBlocks, reduce: str) -> tuple[torch.Tensor, bool]:
    """(the largest or smallest, 0 where none is finite, [O, ...]; are all of this rank's finite). Collective: yes."""
    partial, finite = arc_blocks.partial_rows(group, rows, reduce)
    best = merge_at_owners(graph, partial, "target", np.maximum if reduce == "max" else np.minimum)
    best[np.isinf(best)] = 0
    return torch.from_numpy(best).view(graph.num_at("target"), *rows.shape[1:]), finite


def check_rows(graph: GraphView, rows: torch.Tensor, role: str = "source") -> None:
    """Raise ValueError unless there is one row per owned vertex of those at one end of arcs."""
    check_update(graph)
    if len(rows) != graph.num_at(role):
        raise ValueError(f"{len(rows)} rows for a part of {graph.num_at(role)} owned vertices: give one row per vertex")


def check_update(graph: GraphView) -> None:
    """Raise InputError for a graph whose rows are copies too, or where a rank sees some of its part's rows."""
    if instead := graph.forward_arcs.sums_only:
        raise on_all_ranks(
            InputError(f"messages on arcs, max, min and attention need {instead}, or aggregate with sum or mean")
        )


def check_arc_rows(graph: GraphView, arc_rows: torch.Tensor) -> None:
    """Raise ValueError unless there is one row of floats per local arc."""
    check_update(graph)
    if len(arc_rows) != graph.num_edges():
        raise ValueError(f"{len(arc_rows)} rows for a part of {graph.num_edges()} local arcs: give one row per arc")
    if arc_rows.dtype not in FLOATS:
        raise ValueError(f"rows on arcs are {arc_rows.dtype}: expected float32 or float64")


def flat(rows: torch.Tensor) -> torch.Tensor:
    """The same rows as a contiguous matrix."""
    return rows.reshape(len(rows), rows.shape[1:].numel()).contiguous()


def _gathered(graph: GraphView, rows: torch.Tensor, role: str) -> torch.Tensor:
    return torch.from_numpy(gathered(graph, as_array(rows), role))


def _summed(graph: GraphView, arc_rows: torch.Tensor, role: str) -> torch.Tensor:
    return torch.from_numpy(summed(graph, as_array(arc_rows), role))


def gathered(graph: GraphView, rows: np.ndarray, role: str) -> np.ndarray:
    """Owned rows [O, D] at one end of every arc, [A, D]. Collective: yes."""
    return kernels.pack_rows(with_halos(graph, rows, role), graph.local_arcs.ends[role])


def summed(graph: GraphView, arc_rows: np.ndarray, role: str) -> np.ndarray:
    """Arc rows [A, D] added at one end's owner, [O, D]. Collective: yes."""
    return onto_owners(graph, partial_sums(graph, arc_rows, role), role)


def partial_sums(graph: GraphView, arc_rows: np.ndarray, role: str) -> np.ndarray:
    """This rank's sum of arc rows [A, D] at every copy, [O + S or T, D]."""
    group = graph.local_arcs.grouped[role]
    return kernels.spmm(group.indptr, group.arcs, arc_rows)
