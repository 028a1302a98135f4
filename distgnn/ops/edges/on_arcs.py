"""Rows on arcs: owned rows travel to the arcs at their ends, and rows on arcs are added at the ends' owners.

    to_arcs(x)[arc] = x[end of arc]        from_arcs(m)[v] = sum over the arcs with end v, over all ranks, of m[arc]

Each is the other's transpose, so each is the other's backward pass.

One rank's arcs in one list: for what is computed arc by arc, beside the four blocks of `aggregate`.

Legend: O owned rows, S / T source and target halos, A local arcs, D width, role "source" or "target": which end.

    copies of role "source": rows [O + S], owned rows first, then the source halos in compact order
    copies of role "target": rows [O + T], owned rows first, then the target halos in compact order

Every local arc leaves a source copy and arrives at a target copy. Sums over the arcs of a copy are partial: the
owner adds all ranks' rows.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.errors import InputError, on_all_ranks
from distgnn.ops.aggregation.halo import as_array, halo_broadcast, merge_at_owners, of_arrays, onto_owners, with_halos
from distgnn.ops.edges import arc_blocks
from distgnn.ops.function import GraphView, linear_map, of_floats
from distgnn.partition import LocalGraph

SIDES = {  # block: (targets are halos, sources are halos)
    "owned_owned": (False, False),
    "owned_halo": (False, True),
    "halo_owned": (True, False),
    "halo_halo": (True, True),
}


@dataclass(frozen=True)
class Grouped:
    """Arcs grouped by the copy at one end, in a group by global arc id.

    `arcs[indptr[i]:indptr[i + 1]]` are the local arc numbers of copy i; `others` has the copies at their other ends.
    """

    indptr: np.ndarray
    arcs: np.ndarray
    others: np.ndarray

    @property
    def num_copies(self) -> int:
        return len(self.indptr) - 1


@dataclass(frozen=True)
class LocalArcs:
    """The ends of every local arc [A], arcs grouped by either end, and how many copies there are at each."""

    ends: dict[str, np.ndarray]
    grouped: Mapping[str, Grouped]
    num_copies: dict[str, int]

    @classmethod
    def of(cls, local: LocalGraph) -> "LocalArcs":
        """From the blocks of a part. Memory: 2 numbers per arc, and 3 for each end that arcs are grouped by."""
        sources, targets = compact_ends(local)
        halos = {"source": local.num_source_halos, "target": local.num_target_halos}
        num_copies = {role: local.num_at(role) + count for role, count in halos.items()}
        return cls({"source": sources, "target": targets}, _ByEnd(local, sources, targets, num_copies), num_copies)


class _ByEnd(dict[str, Grouped]):
    """Arcs by "source" or "target", grouped when first asked for."""

    def __init__(self, local: LocalGraph, sources: np.ndarray, targets: np.ndarray, num_copies: dict[str, int]):
        self._local, self._ends, self._num_copies = local, (sources, targets), num_copies

    def __missing__(self, role: str) -> Grouped:
        sources, targets = self._ends
        keys, others = (sources, targets) if role == "source" else (targets, sources)
        by_id = np.argsort(self._local.arc_ids, kind="stable")
        self[role] = grouped(keys, others, by_id, self._num_copies[role])
        return self[role]


def compact_ends(local: LocalGraph) -> tuple[np.ndarray, np.ndarray]:
    """Source and target copy of every local arc, int32 [A] each, in compact order."""
    sources, targets = [], []
    num_sources, num_targets = local.num_at("source"), local.num_at("target")
    for name, (halo_targets, halo_sources) in SIDES.items():
        block = local.blocks[name]
        rows = np.repeat(np.arange(len(block.indptr) - 1, dtype=np.int32), np.diff(block.indptr))
        targets.append(rows + np.int32(num_targets * halo_targets))
        sources.append(block.indices + np.int32(num_sources * halo_sources))
    return np.concatenate(sources), np.concatenate(targets)


def arc_ends(local: LocalGraph, of_rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The entries of `of_rows` [local rows] at the source and at the target of every local arc, [A] each."""
    sources, targets = compact_ends(local)
    owned = of_rows[: local.num_owned]
    halos = of_rows[local.source_halo_rows], of_rows[local.target_halo_rows]
    return np.concatenate([owned, halos[0]])[sources], np.concatenate([owned, halos[1]])[targets]


def grouped(keys: np.ndarray, others: np.ndarray, by_id: np.ndarray, num_copies: int) -> Grouped:
    """Arcs by their copy `keys` [A] of `num_copies`, in a group in the order `by_id`; `others`: their other copies."""
    # int32 as the ids of copies: half of the memory, and no further kernels.
    narrow = by_id.astype(np.int32 if len(by_id) < 1 << 31 else np.int64)
    indptr, order, _ = kernels.csr_from_edges(narrow, keys[by_id], num_copies)
    return Grouped(indptr, order, others[order])


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
    found = linear_map(flat(rows), of_arrays(gathered, graph, role), of_arrays(summed, graph, role))
    return found.view(graph.num_edges(), *rows.shape[1:])


@of_floats
def to_places(graph: GraphView, rows: torch.Tensor, role: str, ends: np.ndarray, back: Callable) -> torch.Tensor:
    """The row at one end of some arcs, in an order and with loops: [O, ...] to [M, ...].

    Collective: yes, and again in the backward pass.

    Args: rows: float32 or float64; ends: the copy at that end of each arc, [M]; back: the transpose, of [M, D].
    """
    check_rows(graph, rows, role)

    def there(owned: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(gathered(graph, as_array(owned), role, ends))

    return linear_map(flat(rows), there, back).view(len(ends), *rows.shape[1:])


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
    found = linear_map(flat(arc_rows), of_arrays(summed, graph, role), of_arrays(gathered, graph, role))
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


def gathered(graph: GraphView, rows: np.ndarray, role: str, ends: np.ndarray | None = None) -> np.ndarray:
    """Owned rows [O, D] at one end of every arc, [A, D], or of those whose copies `ends` are. Collective: yes."""
    return kernels.pack_rows(with_halos(graph, rows, role), graph.local_arcs.ends[role] if ends is None else ends)


def summed(graph: GraphView, arc_rows: np.ndarray, role: str) -> np.ndarray:
    """Arc rows [A, D] added at one end's owner, [O, D]. Collective: yes."""
    return onto_owners(graph, partial_sums(graph, arc_rows, role), role)


def partial_sums(graph: GraphView, arc_rows: np.ndarray, role: str) -> np.ndarray:
    """This rank's sum of arc rows [A, D] at every copy, [O + S or T, D]."""
    group = graph.local_arcs.grouped[role]
    return kernels.spmm(group.indptr, group.arcs, arc_rows)
