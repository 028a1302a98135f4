"""The inductive protocol: trained on the subgraph of training vertices, which is DGL's, for any number of ranks."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_cut, random_graph, whole_graph
from torch.nn import functional

from distgnn.config import ModelConfig, TrainConfig
from distgnn.datasets import GraphData
from distgnn.graph.induced import training_subgraph
from distgnn.nn import SAGEConv, distribute, model_for
from distgnn.system.other_libraries import import_dgl
from distgnn.train import Trainer
from distgnn.train.export.dgl import DGLModel
from distgnn.train.export.plain_model import GraphSizes
from distgnn.train.gradients import GradientBuffer
from distgnn.train.metrics import rank_loss

LARGER = ["communities", *(pytest.param(name, marks=pytest.mark.real) for name in ("cora", "tolokers"))]
MODELS = ("sage", "gat", "rgcn", "edgegat")


def dgl_subgraph(data):
    """What DGL makes of the training vertices."""
    return import_dgl().node_subgraph(data.to_dgl(data.edge_list()), torch.from_numpy(data.split_masks()["train"]))


def check_against_dgl(graph, data, config: ModelConfig) -> None:
    """Degrees, loss and gradients of one step."""
    sub, whole = training_subgraph(graph), dgl_subgraph(data)
    train = np.flatnonzero(data.split_masks()["train"])
    assert (sub.num_global_nodes, sub.comm.allreduce(sub.num_edges())) == (len(train), whole.num_edges())
    degrees = np.zeros((data.num_nodes, 2), dtype=np.int64)
    for ids, rows in graph.comm.allgather((sub.owned_ids, torch.stack([sub.in_degrees(), sub.out_degrees()], 1))):
        degrees[ids] = rows
    expected = torch.stack([whole.in_degrees(), whole.out_degrees()], 1)
    np.testing.assert_array_equal(degrees[train], expected)
    assert not np.delete(degrees, train, axis=0).any()
    names = ("num_feats", "num_classes", "num_edge_feats", "num_relations", "num_node_types")
    torch.manual_seed(0)
    model = model_for(config, sub).double()
    plain = DGLModel(config, GraphSizes(**{name: getattr(sub, name) for name in names})).double()
    plain.load_state_dict(model.state_dict())
    gradients = GradientBuffer(model, sub.comm)
    loss = rank_loss(sub, model(sub, sub.feats))
    loss.backward()
    gradients.sum()
    theirs = functional.cross_entropy(plain(whole, whole.ndata["feat"].double()), whole.ndata["label"])
    theirs.backward()
    assert sub.comm.allreduce(loss.item()) == pytest.approx(theirs.item(), rel=1e-10)
    others = dict(plain.named_parameters())
    for name, ours in model.named_parameters():
        np.testing.assert_allclose(ours.grad, others.pop(name).grad, rtol=1e-9, atol=1e-10, err_msg=name)
    assert not others


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", MODELS)
def test_a_step_equals_dgls_on_its_subgraph(comm, name):
    data = random_graph(41, weighted=name == "sage", typed=name in ("rgcn", "edgegat"), directed=True)
    config = ModelConfig(name, 8, dropout=0.0, norm="batch", weighted=name == "sage")
    cut = random_cut(data.edge_list(), comm.size, split_arcs=True)
    check_against_dgl(dist_graph(data, comm, cut), data, config)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("graph_name", LARGER)
def test_on_a_larger_graph(comm, graph_named, graph_name):
    data = graph_named(graph_name)
    check_against_dgl(dist_graph(data, comm), data, ModelConfig("sage", 8, 2, dropout=0.0))


def train(graph, epochs: int = 8, **config):
    torch.manual_seed(0)
    model = model_for(ModelConfig("sage", 8, norm="batch"), graph)
    trainer = Trainer(model, graph, TrainConfig(epochs=epochs, eval_every=4, inductive=True, **config))
    result = trainer.fit()
    return result, gather_rows(graph, trainer.predict()), trainer


@pytest.mark.mpi(3)
def test_training_does_not_depend_on_ranks(comm):
    data = random_graph(42)
    many, logits, _ = train(dist_graph(data, comm))
    one, expected, _ = train(whole_graph(data))
    np.testing.assert_allclose(many.losses, one.losses, rtol=1e-8)  # 8 Adam steps of float64 sums in another order
    np.testing.assert_allclose(logits, expected, rtol=1e-5, atol=1e-7)
    assert many.summary["test_metric"] == one.summary["test_metric"]


class Normed(torch.nn.Module):
    """A user's model with torch's own modules."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(width, momentum=None)
        self.drop = torch.nn.Dropout(0.3)
        self.conv = SAGEConv(width, classes)

    def forward(self, graph, rows):
        return self.conv(graph, self.drop(self.norm(rows)))


@pytest.mark.mpi(3)
def test_distributed_modules_work_on_the_subgraph(comm):
    data, losses = random_graph(44), []
    for graph in (dist_graph(data, comm), whole_graph(data)):
        torch.manual_seed(0)
        model = distribute(Normed(graph.num_feats, graph.num_classes), graph)
        result = Trainer(model, graph, TrainConfig(epochs=4, eval_every=1, inductive=True)).fit()
        losses.append(result.losses)
        mean = data.feats[data.split_masks()["train"]].mean(0)
        np.testing.assert_allclose(model.norm.running_mean, mean, rtol=1e-5, atol=1e-6)  # features are float32
    np.testing.assert_allclose(*losses, rtol=1e-8)


@pytest.mark.mpi(2)
def test_delayed_rows_and_dropout_are_those_of_the_subgraph(comm):
    """cd-1 runs on the subgraph's own exchanges, and evaluation stays exact and on the whole graph."""
    data = random_graph(43)
    graph = dist_graph(data, comm, algorithm="cd-1")
    _, logits, trainer = train(graph)
    assert trainer.graph.num_global_nodes < trainer.whole.num_global_nodes == data.num_nodes
    alone = whole_graph(data)
    with torch.no_grad():
        expected = trainer.model.eval()(alone, alone.feats)
    np.testing.assert_allclose(logits, gather_rows(alone, expected), rtol=1e-9, atol=1e-10)


@pytest.mark.mpi(2)
def test_training_vertices_without_an_arc_between_them_are_refused(comm):
    data = GraphData.from_arrays(
        [[0, 1], [2, 3]], 4, directed=False, feats=np.ones((4, 2)), labels=[0, 1, 0, 1], train=[0, 2], valid=[1]
    )
    with pytest.raises(ValueError, match="no arc joins two training vertices"):
        training_subgraph(dist_graph(data, comm))
