"""How far ahead to prefetch and how wide a pass to make, measured on some rows of the graph at hand.

The choice changes the time of a sum, never its bits: each column is summed in CSR order whatever the pass.
"""

import time

import numpy as np

from .aggregate import spmm
from .arrays import index_array, indptr_array
from .tiles import DEFAULT, Tuning

SAMPLE_ARCS = 1 << 19
WORTH = 0.97  # a choice replaces the default if its time is below this share of the default's


def tune(indptr, indices, feats, *, seconds=0.8):
    """The fastest Tuning for sums of these rows over this graph on this machine.

    Args: indptr, indices, feats: as for spmm; seconds: time to spend, compilation included.
    Returns: Tuning: plain integers, to be kept with the partition folder (`Tuning(**saved)`).
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    sample = _sample(indptr)
    out = np.empty((len(sample) - 1, *feats.shape[1:]), np.float32 if feats.dtype == np.uint16 else feats.dtype)
    deadline, best = time.perf_counter() + seconds, {}
    candidates = [DEFAULT, *(Tuning(ahead) for ahead in (8, 32, 64)), Tuning(16, 8), Tuning(16, 4)]
    for turn in range(4):
        for choice in candidates:
            if turn and time.perf_counter() > deadline:
                break
            if choice.vectors and time.perf_counter() > deadline - seconds / 2 and choice not in best:
                continue  # another width of pass must be compiled first: only if there is time
            start = time.perf_counter()
            spmm(sample, indices, feats, out=out, tuning=choice)
            spent = time.perf_counter() - start
            best[choice] = min(best.get(choice, np.inf), spent if turn else np.inf)
    fastest = min(best, key=best.get)
    return fastest if best[fastest] < WORTH * best[DEFAULT] else DEFAULT


def _sample(indptr):
    """The middle rows with about SAMPLE_ARCS arcs, as a slice of indptr."""
    middle = (int(indptr[0]) + int(indptr[-1])) // 2
    first, last = np.searchsorted(indptr, [middle - SAMPLE_ARCS // 2, middle + SAMPLE_ARCS // 2])
    first = min(int(first), len(indptr) - 1)
    return indptr[first : max(int(last), first) + 1]
