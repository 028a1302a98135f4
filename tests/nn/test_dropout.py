"""Masks belong to vertices: the same for any number of ranks, new in every step, site and call."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph

from distgnn import nn as dnn
from distgnn.comm import sum_over_ranks
from distgnn.system.other_libraries import import_dgl


@pytest.fixture(scope="module")
def dgl():
    return import_dgl()


def mask(graph, module, width: int = 33) -> np.ndarray:
    rows = torch.ones(graph.num_owned, width, dtype=torch.float64)
    return gather_rows(graph, module(rows, graph))


@pytest.mark.mpi(3)
def test_the_mask_does_not_depend_on_ranks(comm):
    data = random_graph()
    np.testing.assert_array_equal(
        mask(dist_graph(data, comm), dnn.Dropout(0.5)), mask(whole_graph(data), dnn.Dropout(0.5))
    )


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
        assert 0.45 < agreement < 0.55  # 13,200 fair coins: 0.5 ± 0.0044
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


@pytest.mark.mpi(2)
def test_the_gradient_has_the_same_mask(comm):
    graph = dist_graph(random_graph(), comm)
    rows = torch.ones(graph.num_owned, 8, dtype=torch.float64, requires_grad=True)
    out = dnn.Dropout(0.3)(rows, graph)
    out.sum().backward()
    torch.testing.assert_close(rows.grad, out.detach())


@pytest.mark.mpi(1)
def test_evaluation_and_zero_leave_rows_alone(comm):
    graph = dist_graph(random_graph(), comm)
    assert dnn.Dropout(0.0)(graph.feats, graph) is graph.feats
    assert dnn.Dropout(0.5).eval()(graph.feats, graph) is graph.feats
    with pytest.raises(ValueError, match="expected a probability"):
        dnn.Dropout(1.0)
    with pytest.raises(ValueError, match="knows no graph"):
        dnn.Dropout(0.5)(graph.feats)


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


def arc_mask(graph, data, module, heads: int = 3) -> np.ndarray:
    """Masks by global arc id, on every rank."""
    rows = module(torch.ones(graph.num_edges(), heads, 1, dtype=torch.float64), graph)
    everything = np.zeros((2 * data.edge_list().num_edges, heads, 1))
    everything[graph.local.arc_ids] = rows
    return sum_over_ranks(graph.comm, everything)


@pytest.mark.mpi(3)
def test_masks_of_arcs_do_not_depend_on_ranks(comm):
    data = random_graph()
    masks = [
        arc_mask(graph, data, dnn.Dropout(0.5, over="arcs")) for graph in (dist_graph(data, comm), whole_graph(data))
    ]
    np.testing.assert_array_equal(*masks)
    drawn = masks[0][whole_graph(data).local.arc_ids]
    assert 0.9 < drawn.mean() < 1.1
    assert (drawn[:, 0] != drawn[:, 1]).any()  # heads draw for themselves


@pytest.mark.mpi(3)
def test_dgls_attention_dropout_belongs_to_arcs(comm, dgl):
    from dgl.nn import GATConv

    data = random_graph()
    outs = []
    for graph in (dist_graph(data, comm), whole_graph(data)):
        torch.manual_seed(0)
        layer = GATConv(8, 2, 4, feat_drop=0.3, attn_drop=0.4, allow_zero_in_degree=True).double()
        dnn.distribute(layer, graph)
        assert [layer.feat_drop.over, layer.attn_drop.over] == ["vertices", "arcs"]
        outs.append(gather_rows(graph, layer(graph, graph.feats).detach()))
    np.testing.assert_allclose(*outs, rtol=1e-10)


@pytest.mark.mpi(2)
def test_rows_of_arcs_in_a_dropout_of_vertices_are_refused(comm):
    graph = dist_graph(random_graph(), comm)
    model = torch.nn.ModuleDict({"weights": torch.nn.Dropout(0.5)})
    rows = torch.ones(graph.num_edges(), 1)
    with pytest.raises(ValueError, match=r"arc_dropout=\[...\]"):
        dnn.distribute(model, graph)["weights"](rows)
    model = torch.nn.ModuleDict({"weights": torch.nn.Dropout(0.5)})
    assert dnn.distribute(model, graph, arc_dropout=["weights"])["weights"](rows).shape == rows.shape
