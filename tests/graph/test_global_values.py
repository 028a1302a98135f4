"""Numbers of all ranks' rows: in the order of the source, once for each vertex, with one process's gradient."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.comm import sum_over_ranks
from distgnn.graph.face.row_graph import with_rows
from distgnn.graph.global_values import gather_rows, global_mean, is_global_mean


@pytest.mark.mpi(1, 3)
def test_rows_come_in_the_order_of_the_source(comm):
    """What stands behind the owned rows is left out; bfloat16 comes as float32, as numpy has no such type."""
    data = random_graph(3)
    graph = dist_graph(data, comm)
    rows = torch.cat([graph.feats, torch.full((2, 8), torch.nan, dtype=torch.float64)])
    for given in (rows, rows.numpy(), graph.feats.bfloat16()):
        found = gather_rows(graph, given, root=comm.size - 1)
        assert (found is not None) == (comm.rank == comm.size - 1)
        if found is not None:
            np.testing.assert_allclose(found, data.feats, rtol=2**-8 if found.dtype == np.float32 else 0)
    face = with_rows(graph)
    np.testing.assert_array_equal(face.gather_rows(face.labels, root=None), data.labels)


@pytest.mark.mpi(3)
def test_a_mean_is_of_all_values_and_known_again(comm):
    """A rank without a value takes part; the sum of the ranks' gradients is the mean's."""
    graph, scale = dist_graph(random_graph(3), comm), torch.ones((), dtype=torch.float64, requires_grad=True)
    values = torch.arange(2 * comm.rank, dtype=torch.float64) + 1  # none, [1, 2], [1, 2, 3, 4]
    mean = global_mean(graph, scale * values)
    mean.backward()
    assert mean.item() == pytest.approx(13 / 6)
    assert sum_over_ranks(comm, scale.grad.numpy().reshape(1))[0] == pytest.approx(13 / 6)
    assert is_global_mean(2 * mean, scale) and not is_global_mean(scale * 2, scale)
