"""How far to read ahead, how wide a pass to make and whether to go by blocks, measured on arcs of the graph at hand.

Distance and pass change the time of a sum, never its bits: each column is summed in CSR order whatever the pass. Blocks
of sources change the rounding, nothing else. The order of the vertices is not chosen here: it is the caller's
(order.py).
"""

import time

import numpy as np

from distgnn.kernels.graph.aggregate import spmm
from distgnn.kernels.graph.blocks import block_csr, block_rows, spmm_blocked
from distgnn.kernels.runtime.arrays import empty_rows, index_array, indptr_array
from distgnn.kernels.runtime.tiles import DEFAULT, Tuning

SAMPLE_ARCS = 1 << 18
BLOCKED_ARCS = 1 << 22  # blocks show what they are worth when each source is met several times
SCRATCH_BYTES = 1 << 28  # of source rows: far more than any cache holds
ROW_BYTES = (64, 256, 512, 1024)  # widths 16 to 256 in float32
AHEAD = (8, 16, 32, 64, 128)
WORTH = 0.92  # a choice replaces the default if its time is below this share of the default's
BLOCKS_WORTH = 0.85  # blocks take memory for a second copy of the indices


def tune(indptr, indices, feats, *, seconds=0.8, candidates=None):
    """The fastest Tuning for sums of these rows over this graph on this machine.

    Args: indptr, indices, feats: as for spmm; seconds: time to spend, compilation included; candidates: of Tuning,
        default: several distances, and passes of half and a quarter of the registers.
    Returns: Tuning: plain integers.
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    sample = _sample(indptr, SAMPLE_ARCS)
    dtype = np.float32 if feats.dtype == np.uint16 else feats.dtype
    out = empty_rows((len(sample) - 1, *feats.shape[1:]), dtype)
    if candidates is None:
        candidates = [*map(Tuning, AHEAD), Tuning(0, 8), Tuning(0, 4)]
    deadline, best = time.perf_counter() + seconds, {}
    for turn in range(5):
        for choice in (DEFAULT, *candidates):
            if turn > 1 and time.perf_counter() > deadline:
                break
            if turn and choice not in best:
                continue  # there was no time to compile it
            if choice.vectors and not turn and time.perf_counter() > deadline - seconds / 2:
                continue  # another width of pass must be compiled first
            start = time.perf_counter()
            spmm(sample, indices, feats, out=out, tuning=choice)
            spent = time.perf_counter() - start
            best[choice] = min(best.get(choice, np.inf), spent if turn else np.inf)
    fastest = min(best, key=best.get)
    return fastest if best[fastest] < WORTH * best[DEFAULT] else DEFAULT


def tune_rows(indptr, indices, num_cols, *, row_bytes=ROW_BYTES, seconds=0.8):
    """The fastest Tuning for each of several widths, before there are any rows.

    Args: indptr, indices: as for spmm; num_cols: number of sources; row_bytes: of float32 rows, multiples of 4.
    Returns: dict row bytes -> Tuning, for `use_tunings`.
    Notes: rows of ones stand in for features; where they would need more than 256 MiB, sources share them.
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    sample = _sample(indptr, SAMPLE_ARCS)
    if indptr[-1] == indptr[0]:
        return {}
    arcs = slice(int(sample[0]), int(sample[-1]))
    scratch = np.ones(min(SCRATCH_BYTES, num_cols * max(row_bytes)) // 4, np.float32)
    found = {}
    for size in row_bytes:
        rows = scratch[: len(scratch) * 4 // size * (size // 4)].reshape(-1, size // 4)
        near = indices[arcs] % np.array(len(rows), indices.dtype)
        choice = tune(
            sample - sample[0], near, rows, seconds=seconds / len(row_bytes), candidates=[*map(Tuning, AHEAD)]
        )
        found[size] = choice._replace(blocked=int(_blocks_pay(indptr, indices, num_cols, rows, choice)))
    return found


def _blocks_pay(indptr, indices, num_cols, feats, choice):
    """Whether sums by blocks of sources are clearly quicker; not tried where they cannot be (`block_rows`)."""
    rows = block_rows(len(indptr) - 1, num_cols, int(indptr[-1] - indptr[0]), feats.shape[1] * feats.itemsize)
    if not rows or len(feats) < num_cols:
        return False
    sample = _sample(indptr, BLOCKED_ARCS)
    near = indices[int(sample[0]) : int(sample[-1])]
    blocked = block_csr(sample - sample[0], near, num_cols, rows)
    out = empty_rows((len(sample) - 1, feats.shape[1]), feats.dtype)
    spent = {"plain": np.inf, "blocked": np.inf}
    for _ in range(3):
        for name, call in (
            ("plain", lambda: spmm(sample - sample[0], near, feats, out=out, tuning=choice)),
            ("blocked", lambda: spmm_blocked(blocked, feats, out=out)),
        ):
            start = time.perf_counter()
            call()
            spent[name] = min(spent[name], time.perf_counter() - start)
    return spent["blocked"] < BLOCKS_WORTH * spent["plain"]


def _sample(indptr, num_arcs):
    """The middle rows with about num_arcs arcs, as a slice of indptr."""
    middle = (int(indptr[0]) + int(indptr[-1])) // 2
    first, last = np.searchsorted(indptr, [middle - num_arcs // 2, middle + num_arcs // 2])
    first = min(int(first), len(indptr) - 1)
    return indptr[first : max(int(last), first) + 1]
