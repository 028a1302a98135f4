"""Loops that scripts add to arcs, their weights, and GCN's normalisation: what plain PyG has, and may be written to."""

import pytest
import torch
from pyg_arcs import D, N, same_along_arcs

nn = pytest.importorskip("torch_geometric.nn")
utils = pytest.importorskip("torch_geometric.utils")


def with_loops(data, fill: float, removed: bool):
    """A Laplacian and a loop more at each vertex, as ChebNetII and BernNet write it."""
    edges, weight = utils.get_laplacian(data.edge_index, normalization="sym", num_nodes=N, dtype=torch.float64)
    if removed:
        edges, weight = utils.remove_self_loops(edges, weight)
    return utils.add_self_loops(edges, weight, fill_value=fill, num_nodes=N)


WITH_LOOPS = {
    "laplacian twice": lambda data: with_loops(data, -1.0, False),
    "laplacian, loops removed": lambda data: with_loops(data, -1.0, True),
    "thrice": lambda data: utils.add_self_loops(*with_loops(data, -1.0, False), fill_value=0.5, num_nodes=N),
    "gcn_norm of one's own": lambda data: utils.add_remaining_self_loops(
        data.edge_index, torch.ones(data.num_edges, dtype=torch.float64), 1.0, N
    ),
    "of weights": lambda data: utils.add_remaining_self_loops(
        data.edge_index, torch.arange(data.num_edges).double(), 2.0, N
    ),
    "some, then loops": lambda data: utils.add_self_loops(
        *utils.dropout_adj(data.edge_index, torch.arange(data.num_edges).double(), p=0.4), num_nodes=N
    ),
}


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("name", WITH_LOOPS)
@pytest.mark.filterwarnings("ignore::UserWarning")  # dropout_adj is old
def test_loops_and_their_weights(comm, name):
    def run(data):
        (row, col), weight = WITH_LOOPS[name](data)
        x = data.x.detach().clone().requires_grad_()
        out = torch.zeros_like(x).index_add(0, col, x[row] * weight[:, None])
        attention = nn.GATConv(D, 4).double()(x, torch.stack([row, col])) if name == "laplacian, loops removed" else 0
        (out.sin().sum() + (out + 0 * x).mean(0).pow(2).sum() + (torch.as_tensor(attention) * 1.0).sum()).backward()
        degree = torch.zeros(N, dtype=torch.float64).scatter_add_(0, col, weight.detach())
        return out, x.grad, weight, degree

    same_along_arcs(comm, run)


@pytest.mark.mpi(1, 3)
def test_what_is_written_into_degrees_and_norms_stays_there(comm):
    """MFConv writes into degrees; a script into the weights of `gcn_norm`."""

    def run(data):
        utils.degree(data.edge_index[1], N, dtype=torch.long).clamp_(max=1)
        index, weight = nn.conv.gcn_conv.gcn_norm(data.edge_index, None, N, dtype=torch.float64)
        weight.mul_(0.5)
        weight[:] = weight * 0.5
        degrees = utils.degree(data.edge_index[1], N, dtype=torch.long)
        return nn.GraphConv(D, 4).double()(data.x, index, weight), degrees

    same_along_arcs(comm, run, ["sorted"])
