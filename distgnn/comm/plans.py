"""Exchange plans made of others: update on copies, some rows, ranks that share a part.

Legend: P parts, O owned rows, H halo copies in the order of local rows ([source only | both | target only] of each
owner), S source and T target halos, t ranks that share a part.
"""

from dataclasses import replace

import numpy as np

from distgnn.partition import ExchangePlan


def indptr_of(counts: np.typing.ArrayLike) -> np.ndarray:
    """Where the ranges of so many entries each begin and end, int64 [counts + 1]."""
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def plan_to_all_copies(plan: ExchangePlan, halo_counts: np.ndarray) -> ExchangePlan:
    """Broadcast totals to all H halo copies, whatever their role (numbered as local halo rows); reduce as in `plan`.

    Args:
        halo_counts: [P, 3], halo rows of each owner by role.
    """
    rows = []  # of each rank the owned rows of which it has a copy: source only, both, target only
    for rank in range(plan.num_parts):
        sources = plan.broadcast_rows[plan.broadcast_indptr[rank] : plan.broadcast_indptr[rank + 1]]
        targets = plan.reduce_rows[plan.reduce_indptr[rank] : plan.reduce_indptr[rank + 1]]
        num_both = len(np.intersect1d(sources, targets, assume_unique=True))
        rows.append(np.concatenate([sources, targets[num_both:]]))
    return replace(
        plan,
        broadcast_indptr=indptr_of([len(part) for part in rows]),
        broadcast_rows=np.concatenate(rows),
        source_indptr=indptr_of(halo_counts.sum(axis=1)),
    )


def plan_of_some(plan: ExchangePlan, owned: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> ExchangePlan:
    """The part of a plan that is about some rows, bool [O], [S] and [T]; owned rows are numbered anew."""
    sent, added = owned[plan.broadcast_rows], owned[plan.reduce_rows]
    numbers = (np.cumsum(owned) - 1).astype(np.int32)
    return replace(
        plan,
        num_owned=int(owned.sum()),
        broadcast_indptr=indptr_of(sent)[plan.broadcast_indptr],
        broadcast_rows=numbers[plan.broadcast_rows[sent]],
        source_indptr=indptr_of(sources)[plan.source_indptr],
        reduce_indptr=indptr_of(added)[plan.reduce_indptr],
        reduce_rows=numbers[plan.reduce_rows[added]],
        target_indptr=indptr_of(targets)[plan.target_indptr],
    )


def plan_of_column(plan: ExchangePlan, num_columns: int, column: int) -> ExchangePlan:
    """A plan of P parts as one of P t ranks, of which only those with the same columns exchange rows."""

    def spread(indptr: np.ndarray) -> np.ndarray:
        counts = np.zeros(plan.num_parts * num_columns, np.int64)
        counts[column::num_columns] = np.diff(indptr)
        return indptr_of(counts)

    return replace(
        plan,
        num_parts=plan.num_parts * num_columns,
        part_id=plan.part_id * num_columns + column,
        broadcast_indptr=spread(plan.broadcast_indptr),
        source_indptr=spread(plan.source_indptr),
        reduce_indptr=spread(plan.reduce_indptr),
        target_indptr=spread(plan.target_indptr),
    )
