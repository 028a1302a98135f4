"""Random numbers: each use has draws of its own."""

from distgnn.graph.edge_pairs import NEGATIVE_TAG
from distgnn.kernels.simd.random_vectors import DROPOUT_TAG, ROUNDING_TAG, derive_key


def test_each_use_of_random_numbers_has_draws_of_its_own():
    tags = DROPOUT_TAG, ROUNDING_TAG, NEGATIVE_TAG
    assert len({derive_key(1, 2, 3, tag) for tag in tags}) == len(tags)
