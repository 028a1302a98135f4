"""ExchangePlan: which rows a rank sends to and receives from every other, as arrays, built without communicating.

`broadcast to sources`: the owner packs `broadcast_rows[broadcast_indptr[q]:broadcast_indptr[q + 1]]` for rank q, which
receives them as the contiguous range `source_indptr[p]:source_indptr[p + 1]` of its source halos. `reduce from
targets` is the mirror: rank q sends the range `target_indptr[p]:…` of its target halos, and the owner adds it to
`reduce_rows[reduce_indptr[q]:…]`.

Shapes: P ranks, S source halos, T target halos, numbered by owner rank, then by the owner's local row inside
[source only | both] and [both | target only].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from distgnn.partition.core.book import PartitionBook


@dataclass(frozen=True, repr=False)
class ExchangePlan:
    """One rank's side of every exchange.

    Args:
        num_parts, part_id, num_owned: P, this rank, its owned rows.
        broadcast_indptr: int64 [P + 1]; broadcast_rows: int32, owned rows to pack for each rank.
        source_indptr: int64 [P + 1], the range of source halos that each rank owns.
        reduce_indptr: int64 [P + 1]; reduce_rows: int32, owned rows to which each rank's partial sums are added.
        target_indptr: int64 [P + 1], the range of target halos that each rank owns.
    """

    num_parts: int
    part_id: int
    num_owned: int
    broadcast_indptr: np.ndarray
    broadcast_rows: np.ndarray
    source_indptr: np.ndarray
    reduce_indptr: np.ndarray
    reduce_rows: np.ndarray
    target_indptr: np.ndarray

    def __repr__(self) -> str:
        return (
            f"ExchangePlan(part {self.part_id} of {self.num_parts}, num_owned={self.num_owned}, "
            f"broadcast sends {len(self.broadcast_rows)} and receives {self.num_source_halos} rows, "
            f"reduce sends {self.num_target_halos} and receives {len(self.reduce_rows)} rows)"
        )

    @property
    def num_source_halos(self) -> int:
        """S, the rows a broadcast receives."""
        return int(self.source_indptr[-1])

    @property
    def num_target_halos(self) -> int:
        """T, the rows a reduce sends."""
        return int(self.target_indptr[-1])

    def transposed(self) -> ExchangePlan:
        """The plan of the backward pass: sources and targets change places."""
        return replace(
            self,
            broadcast_indptr=self.reduce_indptr,
            broadcast_rows=self.reduce_rows,
            source_indptr=self.target_indptr,
            reduce_indptr=self.broadcast_indptr,
            reduce_rows=self.broadcast_rows,
            target_indptr=self.source_indptr,
        )


def build_plan(book: PartitionBook, part_id: int) -> ExchangePlan:
    """The plan of one part, from the book alone."""
    owned = book.owned(part_id)
    interior = int(book.num_interior[part_id])
    boundary = owned[interior:]
    source_indptr, target_indptr = halo_indptrs(book.halo_counts[part_id])

    def rows_elsewhere(mask: np.ndarray, other: np.ndarray, shared_last: bool) -> tuple[np.ndarray, np.ndarray]:
        """Boundary rows with a copy in `mask` on each other rank; rows also in `other` come last or first."""
        mine, others, rows = mask[boundary], other[boundary], []
        for q in range(book.num_parts):
            word, bit = q >> 6, np.uint64(1) << np.uint64(q & 63)
            # The owner has the row itself.
            here = mine[:, word] & bit != 0 if q != part_id else np.zeros(len(boundary), dtype=bool)
            last = (others[:, word] & bit != 0) == shared_last
            rows += [np.flatnonzero(here & ~last), np.flatnonzero(here & last)]
        # Every second place: the two groups of a rank follow one another and are sent as one.
        indptr = np.cumsum([0, *map(len, rows)])[::2]
        return indptr, (interior + np.concatenate(rows)).astype(np.int32)

    # Broadcast: halos are [source only | both], so rows that the other rank has as targets too come last. Reduce:
    # [both | target only], they come first.
    broadcast = rows_elsewhere(book.source_mask, book.target_mask, True)
    reduced = rows_elsewhere(book.target_mask, book.source_mask, False)
    return ExchangePlan(book.num_parts, part_id, len(owned), *broadcast, source_indptr, *reduced, target_indptr)


def halo_indptrs(halo_counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranges of source halos and of target halos by owner rank, from one part's halo counts [P, 3]."""
    sources = np.concatenate([[0], np.cumsum(halo_counts[:, 0] + halo_counts[:, 1])])
    targets = np.concatenate([[0], np.cumsum(halo_counts[:, 1] + halo_counts[:, 2])])
    return sources.astype(np.int64), targets.astype(np.int64)
