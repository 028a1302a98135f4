"""One row per graph, and gradients, equal a reduction of the whole graph's rows; the same bits on every rank."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph

from distgnn import ops

TOLERANCE = {"rtol": 1e-12, "atol": 1e-12}  # float64 sums in another order


def expected_rows(x: torch.Tensor, ids: np.ndarray, reduce: str) -> torch.Tensor:
    """By one graph after the other; graph 1 has no vertices."""
    rows = []
    for number in range(ids.max() + 1):
        mine = x[ids == number]
        whole = mine.sum(0) if reduce != "mean" else mine.sum(0) / max(len(mine), 1)
        rows.append(mine[mine.argmax(0), torch.arange(x.shape[1])] if reduce == "max" and len(mine) else whole)
    return torch.stack(rows)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("reduce", ["sum", "mean", "max"])
def test_rows_and_gradients_equal_those_of_the_whole_graph(comm, reduce):
    data = random_graph(2)
    data.graph_ids = np.random.default_rng(7).choice([0, 2, 3], data.num_nodes)
    graph = dist_graph(data, comm)
    x = np.random.default_rng(0).integers(-3, 3, (data.num_nodes, 4)).astype(float)  # maxima that several have
    rows = torch.from_numpy(x[graph.owned_ids]).requires_grad_()
    found = ops.readout(graph, rows, reduce)
    weight = torch.from_numpy(np.random.default_rng(1).standard_normal(found.shape))
    graph.global_mean(found * weight).backward()
    whole = torch.from_numpy(x).requires_grad_()
    expected = expected_rows(whole, data.graph_ids, reduce)
    (expected * weight).mean().backward()
    np.testing.assert_allclose(found.detach(), expected.detach(), **TOLERANCE)
    np.testing.assert_allclose(gather_rows(graph, rows.grad), whole.grad, **TOLERANCE)
    assert len({array.tobytes() for array in comm.allgather(found.detach().numpy())}) == 1


@pytest.mark.mpi(1)
def test_what_is_refused(comm):
    graph = dist_graph(random_graph(), comm)
    rows = torch.zeros(graph.num_owned, 1, dtype=torch.float64)
    with pytest.raises(ValueError, match="no graph ids"):
        ops.readout(graph, rows)
    data = random_graph()
    data.graph_ids = np.zeros(data.num_nodes, dtype=int)
    with pytest.raises(ValueError, match="unknown readout 'median'"):
        ops.readout(dist_graph(data, comm), rows, "median")
