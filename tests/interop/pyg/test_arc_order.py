"""Numbers per arc in the source's order: ordinary and learned weights, and masks, as plain PyG has them, on any cut."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows
from distgnn.rows import rows_of

nn = pytest.importorskip("torch_geometric.nn")
transforms = pytest.importorskip("torch_geometric.transforms")
utils = pytest.importorskip("torch_geometric.utils")
Data = pytest.importorskip("torch_geometric.data").Data
N, D = 30, 6


def source_arcs(order: str) -> torch.Tensor:
    """The arcs of an undirected graph with doubles, as scripts have them."""
    pairs = torch.from_numpy(np.random.default_rng(2).integers(0, N, (90, 2)).T)
    pairs = pairs[:, pairs[0] != pairs[1]]
    pairs = torch.cat([pairs, pairs[:, :5]], 1)
    both = torch.cat([pairs, pairs.flip(0)], 1)
    if order == "doubled":
        return both
    loops = torch.cat([both, torch.tensor([[3, 9], [3, 9]])], 1)
    return loops[:, np.lexsort(loops.numpy()[::-1])] if order == "sorted" else loops


def scene(comm, order: str):
    """(the whole graph, the graph on ranks), in float64."""
    torch.manual_seed(4)
    x, y = torch.randn(N, D, dtype=torch.float64), torch.randint(0, 3, (N,))
    data = Data(x=x, edge_index=source_arcs(order), y=y, num_nodes=N)
    graph = with_rows(dist_graph(GraphData.from_pyg(data, directed=False), comm))
    graph.x = x
    return data, graph


@pytest.fixture(params=["doubled", "sorted"])
def graphs(request, comm):
    return scene(comm, request.param)


def whole(value):
    return value.whole() if hasattr(value, "whole") else value


@pytest.mark.mpi(1, 3)
def test_places_of_arcs_are_those_of_the_source(comm, graphs):
    data, graph = graphs
    assert torch.equal(GraphData.from_pyg(data, directed=False).to_pyg().edge_index, data.edge_index)
    numbers = torch.arange(data.num_edges, dtype=torch.float64)
    graph.edata["number"] = numbers
    assert torch.equal(graph.edata["number"].whole(), numbers)
    for row, role in enumerate(("source", "target")):
        ends = rows_of(graph.edge_index[row].arcs.ids(role), graph.arc_space)
        assert torch.equal(ends.whole(), data.edge_index[row])


@pytest.mark.mpi(3)
def test_another_order_is_refused_and_what_the_line_says_works(comm):
    data, graph = scene(comm, "mixed")
    with pytest.raises(InputError, match="whose order in the source is not known: sort them"):
        nn.GCNConv(D, 2).double()(graph.x, graph.edge_index, torch.rand(data.num_edges, dtype=torch.float64))
    assert GraphData.from_pyg(data.coalesce(), directed=False).arc_order == "sorted"


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("directed", [True, False])
def test_coalesced_arcs_are_in_the_order_that_pyg_gives_them(comm, directed):
    data, _ = scene(comm, "mixed")
    data.x, data.edge_index = data.x.float().double(), torch.unique(data.edge_index, dim=1).flip(1).roll(7, 1)
    numbers = torch.arange(data.num_edges, dtype=torch.float64)
    graph = with_rows(dist_graph(GraphData.from_pyg(data, directed=directed), comm))
    conv = nn.GraphConv(D, 2).double()
    conv(graph.x, graph.edge_index)  # what the graph keeps of its own order
    ours, theirs = graph.coalesce(), data.coalesce()
    assert (graph.is_coalesced(), ours.is_coalesced()) == (data.is_coalesced(), True)
    for change in (utils.coalesce, utils.sort_edge_index, utils.to_undirected, transforms.ToUndirected()):
        if directed and "ndirected" in str(change):
            continue
        found = change(graph if isinstance(change, transforms.BaseTransform) else graph.edge_index)
        found = getattr(found, "edge_index", found)
        torch.testing.assert_close(conv(graph.x, found, numbers).whole(), conv(theirs.x, theirs.edge_index, numbers))
    expected = conv(theirs.x, theirs.edge_index, numbers)
    torch.testing.assert_close(conv(ours.x, ours.edge_index, numbers).whole(), expected)
    ours.edata["number"] = numbers
    ours.y = graph.y.clamp(max=1)
    assert ours.num_classes == 2 and graph.num_classes == 3
    assert torch.equal(ours.edata["number"].whole(), numbers) and "number" not in graph.edata


LAYERS = {
    "GCN": lambda: nn.GCNConv(D, 3),
    "GCN without loops": lambda: nn.GCNConv(D, 3, add_self_loops=False),
    "SG": lambda: nn.SGConv(D, 3, K=2),
    "APPNP": lambda: nn.APPNP(3, 0.2),
    "GCN2": lambda: nn.GCN2Conv(D, 0.5, 0.3, 1),
    "Cheb": lambda: nn.ChebConv(D, 3, 3),
    "TAG": lambda: nn.TAGConv(D, 3),
    "ARMA": lambda: nn.ARMAConv(D, 3),
    "Graph": lambda: nn.GraphConv(D, 3),
    "SSG": lambda: nn.SSGConv(D, 3, 0.2),
    "LG": lambda: nn.LGConv(),
    "model": lambda: nn.GCN(D, 8, 2, 3),
}


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("learned", [False, True], ids=["ordinary", "learned"])
@pytest.mark.parametrize("name", LAYERS)
def test_weights_of_arcs(comm, name, learned):
    found = []
    for data in scene(comm, "sorted"):
        torch.manual_seed(1)
        layer, weight = LAYERS[name]().double(), torch.rand(data.num_edges, dtype=torch.float64) + 0.1
        weight = torch.nn.Parameter(weight) if learned else weight
        x = data.x.detach().clone().requires_grad_()
        given = (x, x) if name == "GCN2" else (x,)
        out = layer(*given, data.edge_index, edge_weight=weight)
        out.sin().sum().backward()
        found.append([whole(one) for one in (out, x.grad, *[p.grad for p in layer.parameters()])])
        found[-1] += [weight.grad] if learned else []
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-11)


CHOICES = {
    "a mask": lambda e, g: e[:, torch.rand(e.size(1)) < 0.6],
    "dropout_edge": lambda e, g: utils.dropout_edge(e, p=0.3)[0],
    "dropout_adj": lambda e, g: utils.dropout_adj(e, p=0.3)[0],
    "ids": lambda e, g: e[:, torch.randperm(e.size(1))[:50]],
}


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.filterwarnings("ignore::UserWarning")  # dropout_adj is old
def test_draws_of_arcs_are_those_of_plain_pyg(comm, graphs, name):
    found = []
    for data in graphs:
        torch.manual_seed(3)
        layer = nn.GCNConv(D, 3).double()
        out = layer(data.x, CHOICES[name](data.edge_index, data))
        found.append(whole(out))
    torch.testing.assert_close(found[1], found[0], rtol=1e-9, atol=1e-11)


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
def test_loops_and_their_weights(comm, graphs, name):
    found = []
    for data in graphs:
        torch.manual_seed(3)
        (row, col), weight = WITH_LOOPS[name](data)
        x = data.x.detach().clone().requires_grad_()
        out = torch.zeros_like(x).index_add(0, col, x[row] * weight[:, None])
        attention = nn.GATConv(D, 3).double()(x, torch.stack([row, col])) if name == "laplacian, loops removed" else 0
        (out.sin().sum() + (out + 0 * x).mean(0).pow(2).sum() + (torch.as_tensor(attention) * 1.0).sum()).backward()
        degree = torch.zeros(N, dtype=torch.float64).scatter_add_(0, col, weight.detach())
        found.append([whole(one) for one in (out, x.grad, weight, degree)])
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-11)


def maxima(data, x):
    """By a layer, by messages, and over weighted rows with loops: maxima and minima."""
    layers = [nn.SAGEConv(D, 3, aggr=aggr).double() for aggr in ("max", "min")]
    row, col = utils.add_self_loops(data.edge_index, num_nodes=N)[0]
    own = utils.scatter(x[row] * 2.0, col, 0, N, "max")
    return [*(layer(x, data.edge_index) for layer in layers), own]


@pytest.mark.mpi(1, 3)
def test_a_maximum_over_arcs_keeps_nan_as_pyg_does(comm, graphs):
    found = []
    for data in graphs:
        torch.manual_seed(2)
        x = data.x.detach().clone()
        x[3, 1], x[9, 4], x[4, 2] = torch.nan, torch.inf, -torch.inf
        found.append([whole(one) for one in maxima(data, x)])
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-9, atol=1e-11, equal_nan=True)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = nn.GCNConv(D, 8).double(), nn.GCNConv(8, 3).double()

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def explained(model, data, algorithm):
    explain = pytest.importorskip("torch_geometric.explain")
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    explainer = explain.Explainer(
        model, algorithm, "model", model_config=config, node_mask_type="attributes", edge_mask_type="object"
    )
    return explainer(data.x, data.edge_index, index=5)


@pytest.mark.mpi(1, 3)
def test_gnn_explainer_explains(comm, graphs):
    explain = pytest.importorskip("torch_geometric.explain")
    found = []
    for data in graphs:
        torch.manual_seed(5)
        made = explained(Net(), data, explain.GNNExplainer(epochs=5))
        found.append([whole(made.node_mask), whole(made.edge_mask)])
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-5, atol=1e-7)  # masks are float32


@pytest.mark.mpi(1, 3)
def test_what_is_written_into_degrees_and_norms_stays_there(comm):
    """MFConv writes into degrees; a script into the weights of `gcn_norm`."""
    data, graph = scene(comm, "sorted")
    found = []
    for x, edge_index in ((data.x, data.edge_index), (graph.x, graph.edge_index)):
        torch.manual_seed(0)
        utils.degree(edge_index[1], N, dtype=torch.long).clamp_(max=1)
        index, weight = nn.conv.gcn_conv.gcn_norm(edge_index, None, N, dtype=torch.float64)
        weight.mul_(0.5)
        weight[:] = weight * 0.5
        found.append((nn.GraphConv(D, 3).double()(x, index, weight), utils.degree(edge_index[1], N, dtype=torch.long)))
    for expected, given in zip(*found, strict=True):
        torch.testing.assert_close(given.whole(), expected)
