"""Masks belong to vertices: the same for any number of ranks, new in every step, site and call."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph

from distgnn import nn as dnn
from distgnn.system.other_libraries import import_dgl


def mask(graph, module, width: int = 8) -> np.ndarray:
    rows = torch.ones(graph.num_owned, width, dtype=torch.float64)
    return gather_rows(graph, module(rows, graph))


@pytest.mark.mpi(1)
def test_steps_seeds_sites_and_calls_differ(comm):
    graph = dist_graph(random_graph(num_nodes=400), comm)
    module = dnn.Dropout(0.5)
    first, second = mask(graph, module), mask(graph, module)
    graph.step = 1
    next_step = mask(graph, module)
    graph.step = 0
    assert np.array_equal(mask(graph, dnn.Dropout(0.5)), first)
    graph.step = 0
    other_site = mask(graph, dnn.Dropout(0.5, site=1))
    graph.step, graph.seed = 0, 1
    other_seed = mask(graph, dnn.Dropout(0.5))
    for other in (second, next_step, other_site, other_seed):
        agreement = (other == first).mean()
        assert 0.45 < agreement < 0.55  # 3,200 fair coins: 0.5 ± 0.009
    assert first.mean() == pytest.approx(1, abs=0.05)
    assert set(np.unique(first)) == {0.0, 2.0}


@pytest.mark.mpi(1)
def test_masks_of_a_module_do_not_depend_on_what_ran_before_it(comm):
    graph = dist_graph(random_graph(), comm)
    model = dnn.distribute(torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Dropout(0.5)), graph)
    forward = [mask(graph, module) for module in model]
    graph.step = 0  # masks from the beginning of the step
    backward = [mask(graph, module) for module in reversed(model)]
    np.testing.assert_array_equal(forward, backward[::-1])
    assert (forward[0] != forward[1]).any()


@pytest.mark.mpi(1)
def test_evaluation_and_zero_leave_rows_alone(comm):
    graph = dist_graph(random_graph(), comm)
    assert dnn.Dropout(0.0)(graph.feats, graph) is graph.feats
    assert dnn.Dropout(0.5).eval()(graph.feats, graph) is graph.feats
    with pytest.raises(ValueError, match="expected a probability"):
        dnn.Dropout(1.0)


@pytest.mark.mpi(3)
def test_distribute_makes_a_torch_model_independent_of_ranks(comm):
    data = random_graph()

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)
            self.inner = torch.nn.Sequential(torch.nn.Dropout(0.1), torch.nn.ReLU())

        def forward(self, graph, rows):
            return self.inner(self.drop(self.drop(rows)))

    outs = []
    for graph in (dist_graph(data, comm), whole_graph(data)):
        model = dnn.distribute(Model(), graph)
        assert [type(model.drop), type(model.inner[0])] == [dnn.Dropout, dnn.Dropout]
        outs.append(gather_rows(graph, model(graph, graph.feats)))
    np.testing.assert_array_equal(*outs)
    with pytest.raises(ValueError, match="BatchNorm2d"):
        dnn.distribute(torch.nn.Sequential(torch.nn.BatchNorm2d(3)), graph)


def test_heads_draw_for_themselves():
    graph = whole_graph(random_graph())
    drawn = dnn.Dropout(0.5, over="arcs")(torch.ones(graph.num_edges(), 3, 1, dtype=torch.float64), graph)
    assert 0.9 < drawn.mean() < 1.1 and (drawn[:, 0] != drawn[:, 1]).any()


ARC_LAYERS = {  # name: how it is made, and what it is called with beside graph and rows
    "appnp": (lambda: dnn.APPNPConv(3, 0.1, edge_drop=0.4), {}),
    "appnp weighted": (lambda: dnn.APPNPConv(3, 0.1, edge_drop=0.4), {"edge_weight": 0.5}),
    "gat": (lambda: dnn.GATConv(8, 2, 4, 0.2, 0.4, allow_zero_in_degree=True), {}),
    "gatv2": (lambda: dnn.GATv2Conv(8, 2, 4, 0.2, 0.4, allow_zero_in_degree=True), {}),
    "dgl's gat": (lambda: import_dgl().nn.GATConv(8, 2, 4, 0.3, 0.4, allow_zero_in_degree=True), {}),
}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", ARC_LAYERS)
def test_dropped_arcs_do_not_depend_on_ranks(comm, name):
    data, (make, named), outs = random_graph(), ARC_LAYERS[name], []
    for graph in (dist_graph(data, comm), whole_graph(data)):
        torch.manual_seed(0)
        layer = dnn.distribute(torch.nn.ModuleList([make()]).double(), graph)[0]
        if hasattr(layer, "feat_drop"):
            assert [layer.feat_drop.over, layer.attn_drop.over] == ["vertices", "arcs"]
        weights = {key: value + torch.from_numpy(graph.local.arc_ids % 3).double() for key, value in named.items()}
        outs.append(gather_rows(graph, layer(graph, graph.feats, **weights).detach()))
    np.testing.assert_allclose(*outs, rtol=1e-10, atol=1e-12)


@pytest.mark.mpi(2)
def test_rows_of_arcs_in_a_dropout_of_vertices_are_refused(comm):
    graph = dist_graph(random_graph(), comm)
    model = torch.nn.ModuleDict({"weights": torch.nn.Dropout(0.5)})
    rows = torch.ones(graph.num_edges(), 1)
    with pytest.raises(ValueError, match=r"arc_dropout=\[...\]"):
        dnn.distribute(model, graph)["weights"](rows)
    model = torch.nn.ModuleDict({"weights": torch.nn.Dropout(0.5)})
    assert dnn.distribute(model, graph, arc_dropout=["weights"])["weights"](rows).shape == rows.shape
