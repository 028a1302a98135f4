"""Negative edges: pairs at random, drawn anew in each step, the same for any number of ranks.

A pair's negatives are a function of (seed, step, the pair's row in its split, which of its negatives): see
`kernels/simd/philox.py`. Nothing is exchanged for them, and nothing is stored.
"""

from typing import Any

import numpy as np

from distgnn.config import check_choice
from distgnn.config.task import NEGATIVES
from distgnn.errors import InputError
from distgnn.graph.links.edge_pairs import EdgePairs
from distgnn.kernels.simd.philox import derive_key, philox_python

NEGATIVE_TAG = 0x6E656761  # "nega"
SITE = -1  # counted like a site of dropout: who draws twice in a step gets other pairs
LOW, HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def negative_edges(graph: Any, pairs: EdgePairs, per_positive: int = 1, kind: str = "uniform") -> np.ndarray:
    """Pairs of vertices at random for the training pairs of this rank in this step (`graph.step`).

    Args:
        pairs: of `graph.edge_pairs("train")`.
        per_positive: negatives for each pair.
        kind: "uniform": both ends at random; "source": the pair's source with a target at random, as in ogbl-citation2.

    Returns: int64 [m · per_positive, 2], a pair's one after the other.

    Notes: any pair of vertices may come, also an edge: on a sparse graph hardly ever.

    Example:
        >>> graph = dg.load("links")
        >>> pairs = graph.edge_pairs("train")
        >>> dg.negative_edges(graph, pairs, per_positive=2).shape == (2 * pairs.num_pairs, 2)
        True
    """
    check_choice("negatives", kind, NEGATIVES)
    if per_positive < 1:
        raise InputError(f"num_negatives is {per_positive}: expected at least 1")
    key = derive_key(graph.seed, graph.step, graph.random_keys.next_call(SITE), NEGATIVE_TAG)
    ids = np.repeat(pairs.ids, per_positive)
    draws = np.tile(np.arange(per_positive), len(pairs.ids))
    # Two 64-bit numbers for each (row, draw).
    rows, key_words = ids.astype(np.uint64), (int(key[0]), int(key[1]))
    counter = draws.astype(np.uint64), rows & LOW, rows >> HALF, np.uint64(key[2])
    words = philox_python(counter, key_words)
    first, second = words[0] | words[1] << HALF, words[2] | words[3] << HALF
    count = np.uint64(graph.num_global_nodes)
    targets = (second % count).astype(np.int64)  # of 2^64 numbers: all vertices alike but for 1 in 10^9
    sources = np.repeat(pairs.pairs[:, 0], per_positive) if kind == "source" else (first % count).astype(np.int64)
    return np.stack([sources, targets], axis=1)
