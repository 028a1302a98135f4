"""Bins of a delayed schedule: which rows of an exchange travel in which epoch. The same on both ends.

Legend: P ranks, r bins, S / T source and target halos.

A bin is a range of an owner's boundary rows, so that all copies of a vertex travel in one epoch; the ranges carry
about equal numbers of exchange rows. What a rank receives is made of runs in which the owner's rows ascend (sections,
at most three), so a bin is at most one contiguous piece per run. Halo ranks do not know the owner's rows: the owner
tells them the pieces' lengths, once.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from mpi4py import MPI

from distgnn.partition import ExchangePlan

NUM_RUNS = 3  # source only, both, target only
FEW_ROWS = 128  # to aggregate 128 more costs less than another call of a kernel


@dataclass(frozen=True)
class Bin:
    """The rows of one bin, as pieces (slices) of each rank's rows; in the numberings of owners and of halos.

    Each is a list with one list of slices per rank: `sources_owner` into the plan's broadcast rows, `sources_halo`
    into source halos, `targets_owner` into the plan's reduce rows, `targets_halo` into target halos.
    """

    sources_owner: list[list[slice]]
    sources_halo: list[list[slice]]
    targets_owner: list[list[slice]]
    targets_halo: list[list[slice]]

    @cached_property
    def targets_computed(self) -> list[slice]:
        """Ranges of target halos that hold all of `targets_halo`: of many ranks, pieces and gaps are small."""
        found: list[slice] = []
        for piece in sorted((piece for pieces in self.targets_halo for piece in pieces), key=lambda each: each.start):
            if piece.start == piece.stop:
                continue
            if found and piece.start - found[-1].stop <= FEW_ROWS:
                found[-1] = slice(found[-1].start, piece.stop)
            else:
                found.append(piece)
        return found

    def transposed(self) -> "Bin":
        return Bin(self.targets_owner, self.targets_halo, self.sources_owner, self.sources_halo)


def make_bins(plan: ExchangePlan, num_bins: int, comm: MPI.Comm) -> list[Bin]:
    """Cut the exchange rows of a plan into bins.

    Collective: yes, two small all-to-alls.
    """
    bounds = _bounds(np.concatenate([plan.broadcast_rows, plan.reduce_rows]), num_bins)
    sources = _cut(plan.broadcast_rows, plan.broadcast_indptr, plan.source_indptr, bounds, comm)
    targets = _cut(plan.reduce_rows, plan.reduce_indptr, plan.target_indptr, bounds, comm)
    return [
        Bin(*sources_of_bin, *targets_of_bin) for sources_of_bin, targets_of_bin in zip(sources, targets, strict=True)
    ]


def _bounds(rows: np.ndarray, num_bins: int) -> np.ndarray:
    """Owner's rows at which bins begin and end, [r + 1]: each range carries about the same number of rows."""
    rows = np.sort(rows)
    inner = rows[(len(rows) * np.arange(1, num_bins)) // num_bins] if len(rows) else np.zeros(num_bins - 1)
    return np.concatenate([[-1], inner, [np.iinfo(np.int64).max]])


def _cut(
    rows: np.ndarray, owner_indptr: np.ndarray, halo_indptr: np.ndarray, bounds: np.ndarray, comm: MPI.Comm
) -> list[tuple[list[list[slice]], list[list[slice]]]]:
    """One verb: for each bin the pieces on the owner's side and on the halo side, [bin] -> ([rank], [rank])."""
    num_bins = len(bounds) - 1
    lengths = np.zeros((len(owner_indptr) - 1, NUM_RUNS, num_bins), dtype=np.int64)
    for rank in range(len(lengths)):
        for run, part in enumerate(_runs(rows[owner_indptr[rank] : owner_indptr[rank + 1]])):
            lengths[rank, run] = np.diff(np.searchsorted(part, bounds))
    theirs = np.empty_like(lengths)
    comm.Alltoall(lengths, theirs)
    return list(zip(_pieces(owner_indptr, lengths), _pieces(halo_indptr, theirs), strict=True))


def _runs(rows: np.ndarray) -> list[np.ndarray]:
    runs = np.split(rows, np.flatnonzero(np.diff(rows) < 0) + 1)
    if len(runs) > NUM_RUNS:
        raise ValueError("the exchange plan is damaged: a section is not sorted by the owner's row")
    return runs


def _pieces(indptr: np.ndarray, lengths: np.ndarray) -> list[list[list[slice]]]:
    """[bin][rank] -> slices, from the lengths of each run's bins."""
    num_bins = lengths.shape[2]
    pieces: list[list[list[slice]]] = [[] for _ in range(num_bins)]
    for first, of_rank in zip(indptr[:-1], lengths.reshape(len(lengths), -1), strict=True):
        ends = (first + np.cumsum(of_rank)).reshape(NUM_RUNS, num_bins)
        starts = ends - of_rank.reshape(NUM_RUNS, num_bins)
        for number in range(num_bins):
            cuts = zip(starts[:, number], ends[:, number], strict=True)
            pieces[number].append([slice(int(start), int(end)) for start, end in cuts if end > start])
    return pieces
