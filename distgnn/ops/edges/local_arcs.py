"""One rank's arcs in one list: for what is computed arc by arc, beside the four blocks of `aggregate`.

Legend: O owned rows, S / T source and target halos, A local arcs, D width.

    copies of role "source": rows [O + S], owned rows first, then the source halos in compact order
    copies of role "target": rows [O + T], owned rows first, then the target halos in compact order

Every local arc leaves a source copy and arrives at a target copy. Sums over the arcs of a copy are partial: the
owner adds all ranks' rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from distgnn import kernels
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
