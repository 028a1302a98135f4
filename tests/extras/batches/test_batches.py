"""Which vertices a step takes: each once per pass, others in each pass, from the seed alone."""

import numpy as np

from distgnn.extras.batches.batches import STRATA_TAG, chosen_micro_parts, micro_parts, orders
from distgnn.graph.edge_pairs import NEGATIVE_TAG
from distgnn.kernels.simd.random_vectors import DROPOUT_TAG, ROUNDING_TAG


def test_a_pass_takes_every_vertex_once_and_every_step_a_micro_part_of_each_stratum():
    strata, micro, nodes = 5, 4, 103
    parts = micro_parts(np.random.default_rng(0).permutation(nodes), nodes, strata, micro)
    assert np.bincount(parts, minlength=20).min() >= nodes // 20 and parts.max() == 19
    order = orders(7, 2, strata, micro)
    steps = [chosen_micro_parts(order, step) for step in range(micro)]
    assert all(taken.reshape(strata, micro).sum(1).tolist() == [1] * strata for taken in steps)
    np.testing.assert_array_equal(sum(taken[parts].astype(int) for taken in steps), 1)


def test_passes_seeds_and_strata_draw_each_its_own_order():
    drawn = {
        orders(seed, number, 3, 50)[stratum].tobytes() for seed in (0, 1) for number in (0, 1) for stratum in range(3)
    }
    assert len(drawn) == 12
    np.testing.assert_array_equal(orders(3, 4, 2, 6), orders(3, 4, 2, 6))
    assert STRATA_TAG not in (DROPOUT_TAG, ROUNDING_TAG, NEGATIVE_TAG)
