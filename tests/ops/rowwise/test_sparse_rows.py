"""Features that are stored sparse: a tensor to every layer, dense only where a layer needs that, the same results."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph
from scipy import sparse
from torch import nn
from torch.nn import functional as F

from distgnn.datasets import GraphData
from distgnn.ops.rowwise.sparse_rows import SparseRows
from distgnn.system.other_libraries import import_dgl

WIDTH = 40


def sparse_graph(seed: int = 0) -> tuple[GraphData, GraphData]:
    """A graph with features stored sparse, one non-zero in 20, and the same with dense ones."""
    data = random_graph(seed)
    feats = sparse.random(data.num_nodes, WIDTH, 0.05, "csr", dtype=np.float32, random_state=seed)
    dense = GraphData(**vars(data) | {"feats": feats.toarray()})
    return GraphData(**vars(data) | {"feats": feats}), dense


@pytest.fixture
def rows():
    matrix = sparse.random(50, 30, 0.1, "csr", random_state=3)
    return SparseRows(matrix, torch.float64), torch.from_numpy(matrix.toarray())


def is_dense(rows: SparseRows) -> bool:
    return "_dense" in rows.__dict__


@pytest.mark.parametrize("multiply", [F.linear, lambda x, w: x @ w.T, lambda x, w: torch.mm(x, w.T)])
def test_products_with_weights_stay_sparse(rows, multiply):
    found, expected = rows
    weights = [torch.randn(4, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) for _ in range(2)]
    for x, weight in zip((found, expected), weights, strict=True):
        weight.requires_grad_()
        (multiply(x, weight) ** 2).sum().backward()
    torch.testing.assert_close(weights[0].grad, weights[1].grad)
    torch.testing.assert_close(multiply(found, weights[0]), multiply(expected, weights[0]))
    assert not is_dense(found)


def test_linear_with_bias_factors_and_dropout_that_drops_nothing(rows):
    found, expected = rows
    layer, factors = nn.Linear(30, 4).double(), torch.rand(50, 1, dtype=torch.float64)
    torch.testing.assert_close(layer(nn.Dropout(0.0)(found * factors)), layer(expected * factors))
    torch.testing.assert_close(layer(nn.Dropout(0.5).eval()(0.5 * found)), layer(0.5 * expected))
    assert not is_dense(found)


@pytest.mark.parametrize(
    "use",
    [torch.relu, lambda x: x + 1, lambda x: x[3:9], lambda x: torch.cat([x, x], 1), lambda x: x.T, lambda x: x * x],
)
def test_everything_else_sees_the_dense_rows(rows, use):
    found, expected = rows
    torch.testing.assert_close(use(found), use(expected))
    assert is_dense(found)
    assert found.dense() is found.dense()


def test_duplicates_in_the_matrix_are_added():
    matrix = sparse.csr_matrix((np.ones(3), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    assert SparseRows(matrix, torch.float32).dense().tolist() == [[0, 2], [1, 0]]


@pytest.mark.mpi(2)
@pytest.mark.parametrize("layer", ["SAGEConv", "GraphConv", "GATConv", "GINConv", "own linear"])
def test_models_give_what_they_give_with_dense_features(comm, layer):
    dgl_nn = import_dgl().nn

    class OwnLinear(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.conv = nn.Linear(WIDTH, 8), dgl_nn.SAGEConv(8, 4, "mean")

        def forward(self, graph, feats):
            return self.conv(graph, self.first(feats))

    def model():
        torch.manual_seed(0)
        made = {
            "SAGEConv": lambda: dgl_nn.SAGEConv(WIDTH, 4, "mean"),
            "GraphConv": lambda: dgl_nn.GraphConv(WIDTH, 4, allow_zero_in_degree=True),
            "GATConv": lambda: dgl_nn.GATConv(WIDTH, 4, 2, allow_zero_in_degree=True),
            "GINConv": lambda: dgl_nn.GINConv(nn.Linear(WIDTH, 4)),
            "own linear": OwnLinear,
        }
        return made[layer]().double()

    grads, outs = [], []
    for data in sparse_graph():
        graph, network = dist_graph(data, comm), model()
        out = network(graph, graph.ndata["feat"])
        (out**2).sum().backward()
        outs.append(out.detach())
        grads.append([parameter.grad for parameter in network.parameters()])
        if isinstance(graph.feats, SparseRows):
            assert is_dense(graph.feats) == (layer == "GINConv")  # which aggregates before it multiplies
    torch.testing.assert_close(*outs)
    for found, expected in zip(*grads, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.mpi(2)
def test_features_stored_sparse_are_kept_so(comm):
    kept, dense = (dist_graph(data, comm).feats for data in sparse_graph())
    assert isinstance(kept, SparseRows)
    assert not isinstance(dense, SparseRows)
    asked = dist_graph(sparse_graph()[0], comm, sparse_feats=False).feats
    assert not isinstance(asked, SparseRows)
    assert torch.equal(asked, kept.dense())
