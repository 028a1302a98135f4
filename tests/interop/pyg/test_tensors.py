"""Weights of arcs in the source's order, ordinary and learned: layers give what they give on PyG's own edge_index."""

import pytest
import torch
from pyg_arcs import D, same_along_arcs

nn = pytest.importorskip("torch_geometric.nn")

LAYERS = {
    "GCN": lambda: nn.GCNConv(D, 4),
    "GCN without loops": lambda: nn.GCNConv(D, 4, add_self_loops=False),
    "SG": lambda: nn.SGConv(D, 4, K=2),
    "APPNP": lambda: nn.APPNP(3, 0.2),
    "GCN2": lambda: nn.GCN2Conv(D, 0.5, 0.3, 1),
    "Cheb": lambda: nn.ChebConv(D, 4, 3),
    "TAG": lambda: nn.TAGConv(D, 4),
    "ARMA": lambda: nn.ARMAConv(D, 4),
    "Graph": lambda: nn.GraphConv(D, 4),
    "SSG": lambda: nn.SSGConv(D, 4, 0.2),
    "LG": lambda: nn.LGConv(),
    "model": lambda: nn.GCN(D, 8, 2, 4),
}


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("learned", [False, True], ids=["ordinary", "learned"])
def test_weights_of_arcs(comm, learned):
    for name, make in LAYERS.items():

        def run(data, name=name, make=make):
            layer, weight = make().double(), torch.rand(data.num_edges, dtype=torch.float64) + 0.1
            weight = torch.nn.Parameter(weight) if learned else weight
            x = data.x.detach().clone().requires_grad_()
            given = (x, x) if name == "GCN2" else (x,)
            out = layer(*given, data.edge_index, edge_weight=weight)
            out.sin().sum().backward()
            grads = [x.grad, *[p.grad for p in layer.parameters()], *([weight.grad] if learned else [])]
            return [out, *grads]

        same_along_arcs(comm, run, ["sorted"])
