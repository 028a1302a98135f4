"""Bins of a delayed schedule: which rows of an exchange travel in which epoch. The same on both ends.

Legend: P ranks, r bins, S / T source and target halos.

A bin is a range of an owner's boundary rows, so that all copies of a vertex travel in one epoch; the ranges carry
about equal numbers of exchange rows. Rows of one rank are sorted by the owner's row inside each section ([source only |
both] and [both | target only]), so a bin is one contiguous piece per section. Halo ranks do not know the owner's rows:
the owner tells them the pieces' lengths, once.
"""

from dataclasses import dataclass

import numpy as np

from distgnn.partition import ExchangePlan


@dataclass(frozen=True)
class Bin:
    """The rows of one bin, as pieces (slices) of each rank's rows; `owner` and `halo` numberings of both legs.

    Each is a list with one list of slices per rank: `sources_owner` into the plan's broadcast rows, `sources_halo`
    into source halos, `targets_owner` into the plan's reduce rows, `targets_halo` into target halos.
    """

    sources_owner: list[list[slice]]
    sources_halo: list[list[slice]]
    targets_owner: list[list[slice]]
    targets_halo: list[list[slice]]

    def transposed(self) -> "Bin":
        """The same bin of the transposed plan: sources and targets change places."""
        return Bin(self.targets_owner, self.targets_halo, self.sources_owner, self.sources_halo)


def make_bins(plan: ExchangePlan, num_bins: int, comm) -> list[Bin]:
    """Cut the exchange rows of a plan into bins.

    Collective: yes, one small all-to-all.
    """
    sections = [_sections(plan, rank) for rank in range(plan.num_parts)]
    bounds = _bounds(sections, num_bins)
    lengths = np.zeros((plan.num_parts, 3, num_bins), dtype=np.int64)
    for rank, rows_of_sections in enumerate(sections):
        for section, rows in enumerate(rows_of_sections):
            lengths[rank, section] = np.diff(np.searchsorted(rows, bounds))
    theirs = np.empty_like(lengths)
    comm.Alltoall(lengths, theirs)
    owner = _pieces(plan.broadcast_indptr, plan.reduce_indptr, lengths)
    halo = _pieces(plan.source_indptr, plan.target_indptr, theirs)
    return [Bin(owner[0][b], halo[0][b], owner[1][b], halo[1][b]) for b in range(num_bins)]


def _sections(plan: ExchangePlan, rank: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Owned rows that `rank` has as source only, both, target only; each ascending."""
    sources = plan.broadcast_rows[plan.broadcast_indptr[rank] : plan.broadcast_indptr[rank + 1]]
    targets = plan.reduce_rows[plan.reduce_indptr[rank] : plan.reduce_indptr[rank + 1]]
    both = len(np.intersect1d(sources, targets, assume_unique=True))
    return sources[: len(sources) - both], targets[:both], targets[both:]


def _bounds(sections, num_bins: int) -> np.ndarray:
    """Owner's rows at which bins begin and end, [r + 1]: each range carries about the same number of rows."""
    rows = [np.concatenate([source, both, both, target]) for source, both, target in sections]
    rows = np.sort(np.concatenate(rows)) if rows else np.empty(0, dtype=np.int64)
    inner = rows[(len(rows) * np.arange(1, num_bins)) // num_bins] if len(rows) else np.zeros(num_bins - 1)
    return np.concatenate([[-1], inner, [np.iinfo(np.int64).max]])


def _pieces(source_indptr, target_indptr, lengths) -> tuple[list, list]:
    """Slices of the source rows and of the target rows, [bin][rank] -> up to two slices."""
    sources, targets = ([[] for _ in range(lengths.shape[2])] for _ in range(2))
    for rank, (source_only, both, target_only) in enumerate(lengths):
        for pieces, first, sections in (
            (sources, source_indptr[rank], (source_only, both)),
            (targets, target_indptr[rank], (both, target_only)),
        ):
            ends = first + np.cumsum(np.concatenate(sections))
            starts = ends - np.concatenate(sections)
            for b in range(len(source_only)):
                cuts = [(starts[b], ends[b]), (starts[b + len(both)], ends[b + len(both)])]
                pieces[b].append([slice(int(start), int(end)) for start, end in cuts if end > start])
    return sources, targets
