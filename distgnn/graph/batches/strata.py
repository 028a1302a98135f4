"""Which vertices a step takes: one micro-part of every stratum, drawn without a state.

    place p of a vertex in the cluster order, 0 … N - 1        (the partition folder has it; it does not know of ranks)
    micro-part  q = p S M / N, rounded down                    S strata of M neighbouring micro-parts each
    stratum     q / M, rounded down
    pass e      stratum s takes its micro-parts in the order of a permutation of (seed, e, s): step k takes the k-th

So a pass is M steps that meet every vertex once, and neither depends on the number of ranks.

Legend: N vertices, S strata, M micro-parts of each.
"""

import numpy as np

from distgnn.kernels.simd.philox import derive_key, philox_python

STRATA_TAG = 0x73747261  # "stra"
LOW = 0xFFFFFFFF


def micro_parts(places: np.ndarray, num_nodes: int, num_strata: int, num_micro: int) -> np.ndarray:
    """The micro-part of each vertex, int64, from its place in the cluster order."""
    return places.astype(np.int64) * (num_strata * num_micro) // max(num_nodes, 1)


def orders(seed: int, pass_number: int, num_strata: int, num_micro: int) -> np.ndarray:
    """The order in which each stratum takes its micro-parts in a pass, int64 [S, M]: each row is a permutation."""
    key = derive_key(seed, pass_number, 0, STRATA_TAG)
    stratum, micro = (axis.astype(np.uint64) for axis in np.indices((num_strata, num_micro)))
    counter = (micro & LOW, micro >> 32, stratum, np.uint64(key[2]))
    high, low, *_ = philox_python(counter, (int(key[0]), int(key[1])))
    return np.argsort(high << np.uint64(32) | low, axis=1, kind="stable")


def chosen_micro_parts(order: np.ndarray, step: int) -> np.ndarray:
    """Whether step `step` of a pass takes each micro-part, bool [S M]; order: of `orders`."""
    num_strata, num_micro = order.shape
    chosen = np.zeros((num_strata, num_micro), dtype=bool)
    chosen[np.arange(num_strata), order[:, step]] = True
    return chosen.ravel()
