"""Training on one type of a typed graph: on P ranks the losses and rows of plain PyG on the whole graph."""

import copy
import warnings

import numpy as np
import pytest
import torch
from against_dgl import default_float64
from torch import nn
from torch.nn import functional
from typed_parts import CLASSES, random_typed, typed_graph

from distgnn.config import TrainConfig
from distgnn.errors import InputError
from distgnn.fitting.user_model import adapt
from distgnn.train import Trainer

pytest.importorskip("torch_geometric")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch_geometric import nn as pyg


class ByRelation(nn.Module):
    """(x_dict, edge_index_dict, edge_attr_dict)"""

    def __init__(self, keys, outputs):
        super().__init__()
        attend = {"heads": 2, "edge_dim": 4, "add_self_loops": False}
        self.first = pyg.HeteroConv({key: pyg.GATConv((-1, -1), 4, **attend) for key in keys})
        self.second = pyg.HeteroConv({key: pyg.SAGEConv((-1, -1), outputs) for key in keys})

    def forward(self, x_dict, edge_index_dict, edge_attr_dict):
        hidden = self.first(x_dict, edge_index_dict, edge_attr_dict=edge_attr_dict)
        return self.second({kind: rows.relu() for kind, rows in hidden.items()}, edge_index_dict)


class OneType(nn.Module):
    """(x, edge_index), for `to_hetero`."""

    def __init__(self, outputs):
        super().__init__()
        self.first, self.second = pyg.SAGEConv((-1, -1), 8), pyg.SAGEConv((-1, -1), outputs)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class OfData(nn.Module):
    """(data), and rows of the target alone"""

    def __init__(self, kind, widths, metadata, outputs):
        super().__init__()
        self.kind, self.conv = kind, pyg.HGTConv(widths, 8, metadata, heads=2)
        self.last = nn.Linear(8, outputs)

    def forward(self, data):
        return self.last(self.conv(data.x_dict, data.edge_index_dict)[self.kind])


def whole_graph(seed=0):
    """Papers have classes, authors two values each, venues several labels."""
    whole, random = random_typed(seed), np.random.default_rng(5)
    for kind in ("paper", "author", "venue"):
        parts = random.integers(0, 3, whole.counts[kind])
        masks = ("train_mask", "valid_mask", "test_mask")
        whole.columns[kind] |= {name: parts == place for place, name in enumerate(masks)}
    whole.columns["author"]["values"] = random.standard_normal((17, 2)).astype(np.float32)
    whole.columns["venue"]["labels"] = random.integers(0, 2, (17, CLASSES)).astype(np.int8)
    return whole


def cases(whole):
    """(model, how plain PyG calls it, target, task, outputs)"""
    metadata = list(whole.counts), list(whole.edges)
    widths = {kind: columns["feats"].shape[1] for kind, columns in whole.columns.items()}

    def attributed(model, data):
        return model(data.x_dict, data.edge_index_dict, data.edge_attr_dict)

    return [
        (ByRelation(whole.edges, CLASSES), attributed, "paper", "node"),
        (
            pyg.to_hetero(OneType(2), metadata),
            lambda model, data: model(data.x_dict, data.edge_index_dict),
            "author",
            "regression",
        ),
        (OfData("venue", widths, metadata, CLASSES), lambda model, data: model(data), "venue", "node"),
    ]


def plain_losses(model, call, data, kind, task):
    optimizer, losses, store = torch.optim.Adam(model.parameters(), lr=0.01), [], data[kind]
    mask = store.train_mask
    for _ in range(5):
        optimizer.zero_grad()
        rows = call(model, data)
        rows = rows[kind] if isinstance(rows, dict) else rows
        if task == "regression":
            loss = functional.mse_loss(rows[mask], store.y[mask])
        elif store.y.dim() > 1:
            loss = functional.binary_cross_entropy_with_logits(rows[mask], store.y[mask].double())
        else:
            loss = functional.cross_entropy(rows[mask], store.y[mask])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.mpi(3)
@default_float64()
def test_models_of_pyg_train_as_on_the_whole_graph(comm, tmp_path):
    whole = whole_graph()
    data = whole.to_pyg()
    for model, call, kind, task in cases(whole):
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call(model, data)  # lazy parameters
        torch.manual_seed(2)
        for weight in model.parameters():
            nn.init.normal_(weight, std=0.3)
        graph, mine = typed_graph(whole, comm), adapt(copy.deepcopy(model))
        trainer = Trainer(mine, graph, TrainConfig(epochs=5, lr=0.01, log=None, target=kind, task=task, eval_every=1))
        result = trainer.fit()
        np.testing.assert_allclose(result.losses, plain_losses(model, call, data, kind, task), rtol=1e-9)
        model.load_state_dict(mine.state_dict())
        with torch.no_grad():
            rows = call(model, data)
        rows = rows[kind] if isinstance(rows, dict) else rows
        torch.testing.assert_close(trainer.predict().whole(), rows, rtol=1e-9, atol=1e-9)
        mask = data[kind].test_mask
        if task == "regression":
            errors = (rows - data[kind].y)[mask]
            assert abs(result.summary["test_metric"] - float((errors**2).mean())) < 1e-9
        elif data[kind].y.dim() == 1:
            right = (rows.argmax(1) == data[kind].y)[mask]
            assert result.summary["test_accuracy"] == pytest.approx(float(right.double().mean()))


@pytest.mark.mpi(2)
@default_float64()
def test_what_a_task_cannot_be_on_is_refused_in_one_line(comm):
    whole = whole_graph()
    graph = typed_graph(whole, comm)

    class Gives(nn.Module):
        def __init__(self, made):
            super().__init__()
            self.made, self.weight = made, nn.Parameter(torch.ones(()))

        def forward(self, data):
            return self.made(data)

    def train(made, **options):
        Trainer(adapt(Gives(made)), graph, TrainConfig(epochs=1, log=None, **options)).fit()

    refused = {
        "paper and author and venue have labels: say which": lambda: train(lambda data: data.x_dict),
        "there is no type 'ship'": lambda: train(lambda data: data.x_dict, target="ship"),
        "rows of author, and the task is on 'paper'": lambda: train(
            lambda data: {"author": data["author"].x}, target="paper"
        ),
        "gave rows of type 'author'": lambda: train(lambda data: data["author"].x, target="paper"),
        "task node needs labels|training needs labels": lambda: train(lambda data: data.x_dict, target="field"),
    }
    for says, run in refused.items():
        with pytest.raises(InputError, match=says):
            run()
