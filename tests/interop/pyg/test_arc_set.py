"""Some of the arcs, by masks and draws, and maxima over arcs: what plain PyG gives, on any cut."""

import pytest
import torch
from pyg_arcs import D, N, same_along_arcs

nn = pytest.importorskip("torch_geometric.nn")
explain = pytest.importorskip("torch_geometric.explain")
utils = pytest.importorskip("torch_geometric.utils")


@pytest.mark.mpi(1, 3)
@pytest.mark.filterwarnings("ignore::UserWarning")  # dropout_adj is old
def test_draws_of_arcs_are_those_of_plain_pyg(comm):
    choices = (
        lambda e: e[:, torch.rand(e.size(1)) < 0.6],
        lambda e: utils.dropout_edge(e, p=0.3)[0],
        lambda e: utils.dropout_adj(e, p=0.3)[0],
        lambda e: e[:, torch.randperm(e.size(1))[:50]],
    )
    for choose in choices:
        same_along_arcs(comm, lambda data: [nn.GCNConv(D, 4).double()(data.x, choose(data.edge_index))])  # noqa: B023


@pytest.mark.mpi(1, 3)
def test_a_maximum_over_arcs_keeps_nan_as_pyg_does(comm):
    """By a layer, by messages, and over weighted rows with loops: maxima and minima."""

    def run(data):
        x = data.x.detach().clone()
        x[3, 1], x[9, 4], x[4, 2] = torch.nan, torch.inf, -torch.inf
        layers = [nn.SAGEConv(D, 4, aggr=aggr).double() for aggr in ("max", "min")]
        row, col = utils.add_self_loops(data.edge_index, num_nodes=N)[0]
        return *(layer(x, data.edge_index) for layer in layers), utils.scatter(x[row] * 2.0, col, 0, N, "max")

    same_along_arcs(comm, run)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = nn.GCNConv(D, 8).double(), nn.GCNConv(8, 4).double()

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


def explained(model, data, algorithm):
    config = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
    explainer = explain.Explainer(
        model, algorithm, "model", model_config=config, node_mask_type="attributes", edge_mask_type="object"
    )
    return explainer(data.x, data.edge_index, index=5)


@pytest.mark.mpi(1, 3)
def test_gnn_explainer_explains(comm):
    def run(data):
        made = explained(Net(), data, explain.GNNExplainer(epochs=5))
        return made.node_mask, made.edge_mask

    same_along_arcs(comm, run, rtol=1e-5, atol=1e-7)  # masks are float32
