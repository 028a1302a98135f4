"""Smoothing: a held row is a moving average of what arrives."""

import numpy as np
import pytest
from cut_graphs import broadcast_and_reduce, dist_graph, random_graph


@pytest.mark.mpi(3)
def test_smoothing_is_a_moving_average_of_what_arrives(comm):
    graph = dist_graph(random_graph(3), comm, algorithm="cd-1", late_row_average=0.75)
    late = graph.forward_arcs.delayed
    expected = 0.0
    for epoch in range(6):
        rows = np.full((graph.num_owned, 2), float(epoch + 1))
        sources, _ = broadcast_and_reduce(late.at(0, epoch), rows, np.zeros((graph.local.num_target_halos, 2)))
        if epoch == 0:
            expected = 1.0  # the warm-up epoch
        elif epoch > 1:  # what was sent in the last epoch arrives
            expected = 0.75 * expected + 0.25 * epoch
        np.testing.assert_allclose(sources, expected, rtol=1e-14)
    late.drain()
