"""The table of copies against a plain matrix of counts, and the list of a thread's own ends against the plain loop."""

import numpy as np
import pytest

from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.core.edges import own_ends
from distgnn.partition.refinement.replica_table import (
    COPIES,
    SATURATED,
    add_edge,
    count_copies,
    empty_table,
    is_dense,
    num_edges_in,
    remove_edge,
)

PARTS = 9
DEGREES = np.array([1, 2, 3, 40, 2 * SATURATED], dtype=np.int32)  # two sparse vertices, three dense ones


@kernel
def _own_ends(low, high, src, dst, own, list_edges):
    return own_ends(low, high, 0, src.shape[0], src, dst, own, list_edges)


@pytest.mark.parametrize("list_edges", [True, False])
def test_own_ends_are_those_of_the_plain_loop(list_edges):
    generator = np.random.default_rng(0)
    src, dst = generator.integers(0, 12, (2, 300)).astype(np.int32)
    assert (src == dst).any()
    for low, high in [(0, 12), (3, 7), (5, 5), (0, 1), (11, 12)]:
        expected = []
        for e, (u, v) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
            ends = [(u, v)] if u == v and list_edges else [(u, v), (v, u)]
            expected += [(end, e if list_edges else other) for end, other in ends if low <= end < high]
        own = np.empty((2 * len(src), 2), dtype=np.int64)
        found = _own_ends(low, high, src, dst, own, list_edges)
        assert [tuple(pair) for pair in own[:found].tolist()] == expected


def test_counts_are_those_of_a_matrix_and_stay_at_255():
    """Edges come and go at random; the model is a matrix in which a dense vertex's count of 255 never changes."""
    table, counts = empty_table(DEGREES, PARTS), np.zeros((len(DEGREES), PARTS), dtype=np.int64)
    left = counts.copy()  # what is really there
    generator = np.random.default_rng(1)
    for step in range(4000):
        v = int(generator.integers(len(DEGREES)))
        p = int(generator.integers(PARTS)) if v < 4 else int(generator.integers(2))
        dense = 4 * DEGREES[v] >= PARTS
        assert is_dense(table, v) == dense
        if left[v].sum() < DEGREES[v] and step % 3:
            before = counts[v, p]
            more = min(int(generator.integers(1, 4)), DEGREES[v] - left[v].sum()) if step % 2 else 1
            if step % 2:
                add_edge(table, v, p, more)
            else:
                assert add_edge(table, v, p, 1) == (before == 0)
            left[v, p] += more
            counts[v, p] = min(before + more, SATURATED) if dense else before + more
        elif left[v, p]:
            stuck = dense and counts[v, p] == SATURATED
            left[v, p] -= 1
            counts[v, p] -= not stuck
            assert remove_edge(table, v, p) == (counts[v, p] == 0)
        assert num_edges_in(table, v, p) == counts[v, p] and table.vertex[v, COPIES] == np.count_nonzero(counts[v])
    assert (counts[4] == SATURATED).any() and (counts != left).any()
    num_copies = np.zeros(PARTS, dtype=np.int64)
    count_copies(table, num_copies)
    np.testing.assert_array_equal(num_copies, np.count_nonzero(counts, axis=0))
