"""The plan of update on copies: totals travel from owners to *all* halo copies, whatever their role.

Legend: H halo copies in the order of local rows ([source only | both | target only] of each owner), T target halos.
"""

import numpy as np

from distgnn.partition import ExchangePlan


def plan_to_all_copies(plan: ExchangePlan, halo_counts: np.ndarray) -> ExchangePlan:
    """Broadcast to all H halo copies (numbered as local halo rows); reduce from target halos as in `plan`.

    Args:
        halo_counts: [P, 3], halo rows of each owner by role.
    """
    rows = [_rows_for(plan, rank) for rank in range(plan.num_parts)]
    return ExchangePlan(
        plan.num_parts,
        plan.part_id,
        plan.num_owned,
        broadcast_indptr=_indptr([len(part) for part in rows]),
        broadcast_rows=np.concatenate(rows),
        source_indptr=_indptr(halo_counts.sum(axis=1)),
        reduce_indptr=plan.reduce_indptr,
        reduce_rows=plan.reduce_rows,
        target_indptr=plan.target_indptr,
    )


def _rows_for(plan: ExchangePlan, rank: int) -> np.ndarray:
    """Owned rows of which `rank` has a copy: source only, both, target only."""
    sources = plan.broadcast_rows[plan.broadcast_indptr[rank] : plan.broadcast_indptr[rank + 1]]
    targets = plan.reduce_rows[plan.reduce_indptr[rank] : plan.reduce_indptr[rank + 1]]
    num_both = len(np.intersect1d(sources, targets, assume_unique=True))
    return np.concatenate([sources, targets[num_both:]])


def _indptr(counts: np.typing.ArrayLike) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
