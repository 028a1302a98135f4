"""Norms over the vertices of all ranks equal the same norm on all rows: output, gradients, running statistics."""

import copy

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_cut, random_graph

from distgnn import nn as dnn
from distgnn.comm import sum_over_ranks

TOLERANCE = {"rtol": 1e-10, "atol": 1e-11}  # float64 sums in another order
WIDTH = 5


def numbers(data) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(8)
    return 3 + 2 * random.standard_normal((data.num_nodes, WIDTH)), random.standard_normal((data.num_nodes, WIDTH))


def run(module, rows: np.ndarray, weight: np.ndarray, *graph):
    x = torch.from_numpy(rows).requires_grad_()
    module.zero_grad()
    out = module(x, *graph)
    (out * torch.from_numpy(weight)).sum().backward()
    return out.detach(), x.grad, {name: p.grad.numpy() for name, p in module.named_parameters()}


def same_on_ranks(graph, data, ours, theirs) -> None:
    """`ours` on this rank's rows beside `theirs` on all rows."""
    rows, weight = numbers(data)
    expected = run(theirs, rows, weight)
    mine = weight[graph.row_ids]
    mine[graph.num_owned :] = 0  # halo copies have no part in the loss
    got = run(ours, rows[graph.row_ids], mine, graph)
    np.testing.assert_allclose(got[0], expected[0][graph.row_ids], **TOLERANCE)
    np.testing.assert_allclose(gather_rows(graph, got[1]), expected[1], **TOLERANCE)
    for name, grad in got[2].items():
        np.testing.assert_allclose(sum_over_ranks(graph.comm, grad), expected[2][name], err_msg=name, **TOLERANCE)


def randomised(module):
    torch.manual_seed(2)
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    return module.double()


@pytest.mark.mpi(3)
@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_equals_torchs_on_all_rows(comm, momentum):
    data = random_graph()
    graph = dist_graph(data, comm)
    theirs = randomised(torch.nn.BatchNorm1d(WIDTH, momentum=momentum))
    ours = dnn.BatchNorm1d(WIDTH, momentum=momentum).double()
    ours.load_state_dict(theirs.state_dict())
    for _ in range(3):
        same_on_ranks(graph, data, ours, theirs)
    for name, buffer in ours.state_dict().items():
        torch.testing.assert_close(buffer, theirs.state_dict()[name])
    same_on_ranks(graph, data, ours.eval(), theirs.eval())


@pytest.mark.mpi(3)
def test_batch_norm_without_statistics_and_weights(comm):
    data = random_graph()
    graph = dist_graph(data, comm)
    settings = {"affine": False, "track_running_stats": False}
    same_on_ranks(
        graph, data, dnn.BatchNorm1d(WIDTH, **settings).eval(), torch.nn.BatchNorm1d(WIDTH, **settings).eval()
    )


@pytest.mark.mpi(2)
def test_distribute_swaps_batch_norm_and_keeps_its_parameters(comm):
    data = random_graph()
    cut = random_cut(data.edge_list(), comm.size)
    cut.owner[:] = 0
    graph = dist_graph(data, comm, cut)  # rank 1 has no rows, and takes part
    torch.manual_seed(0)  # the same weights on both ranks, also where this test runs alone
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), randomised(torch.nn.BatchNorm1d(WIDTH))).double()
    whole, parameters = copy.deepcopy(model), list(model.parameters())
    dnn.distribute(model, graph)
    assert type(model[1]) is dnn.BatchNorm1d
    assert all(left is right for left, right in zip(model.parameters(), parameters, strict=True))
    assert dnn.distribute(model, graph)[1] is model[1]
    rows, weight = numbers(data)
    expected = run(whole, rows, weight)
    got = run(model, rows[graph.owned_ids], weight[graph.owned_ids])
    np.testing.assert_allclose(gather_rows(graph, got[0]), expected[0], **TOLERANCE)
    np.testing.assert_allclose(sum_over_ranks(comm, got[2]["0.weight"]), expected[2]["0.weight"], **TOLERANCE)


class WholeGraphNorm(dnn.GraphNorm):
    """The formula on all rows."""

    def forward(self, rows):
        out = rows - self.mean_scale * rows.mean(0)
        return self.weight * out / (out.square().mean(0) + self.eps).sqrt() + self.bias


@pytest.mark.mpi(3)
def test_graph_norm(comm):
    data = random_graph()
    theirs = randomised(WholeGraphNorm(WIDTH))
    ours = dnn.GraphNorm(WIDTH).double()
    ours.load_state_dict(theirs.state_dict())
    same_on_ranks(dist_graph(data, comm), data, ours, theirs)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("individually", [False, True])
def test_pair_norm(comm, individually):
    def whole(rows):
        rows = rows - rows.mean(0)
        if individually:
            return 1.5 * rows / (1e-5 + rows.norm(dim=1, keepdim=True))
        return 1.5 * rows / (1e-5 + rows.square().sum(1).mean()).sqrt()

    theirs = torch.nn.Module()
    theirs.forward = whole
    data = random_graph()
    same_on_ranks(dist_graph(data, comm), data, dnn.PairNorm(1.5, individually), theirs)
