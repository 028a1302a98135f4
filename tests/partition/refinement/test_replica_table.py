"""The table of copies against a plain matrix of counts, and the list of a thread's own ends against the plain loop."""

import numpy as np

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
