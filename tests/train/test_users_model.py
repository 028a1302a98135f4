"""A user's model in the Trainer sees rows of all ranks: what P ranks record is what one records."""

import contextlib

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, on_rank_0, random_graph, whole_graph
from torch import nn
from torch.nn import functional as F

import distgnn as dg
from distgnn.errors import InputError
from distgnn.graph.face.row_graph import with_rows
from distgnn.ops.function import is_watched


class Own(nn.Module):
    """Statistics of all rows, torch's own norm and both forms of dropout around a layer of ours."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.drop = dg.nn.SAGEConv(8, 8, "mean"), nn.BatchNorm1d(8), nn.Dropout(0.2)
        self.read = nn.Linear(8, 4)

    def forward(self, graph, feats):
        rows = self.norm(self.first(graph, feats - feats.mean(0)))
        return self.read(F.dropout(self.drop(rows).relu(), 0.3, self.training))


def focal(graph, logits):
    losses = F.cross_entropy(logits[graph.train_mask], graph.labels[graph.train_mask], reduction="none")
    return ((1 - torch.exp(-losses)) ** 2 * losses).mean()


def right(graph, logits):
    return (logits.argmax(1) == graph.labels)[graph.test_mask].double().mean()


def records(graph, model=Own, inductive=False, **options):
    torch.manual_seed(1)
    trained = model()
    torch.manual_seed(graph.rank)  # what ranks drew before does not matter to a step
    config = dg.TrainConfig(epochs=3, eval_every=1, lr=0.05, inductive=inductive)
    found = dg.Trainer(trained, graph, config, **options).fit().records
    names = (*options.get("metrics", ()), "loss", "valid_metric")
    return [{name: record[name] for name in names} for record in found]


@pytest.mark.mpi(3)
@pytest.mark.parametrize(
    "options",
    [{}, {"loss": focal, "metrics": {"right": right}}, {"inductive": True}, {"optimizer": torch.optim.SGD}],
    ids=["plain", "own loss", "inductive", "torch's optimiser"],
)
def test_p_ranks_record_what_one_records(comm, options):
    data = random_graph(3)
    alone = on_rank_0(comm, lambda: records(with_rows(whole_graph(data)), **options))
    found = records(with_rows(dist_graph(data, comm)), **options)
    for one, other in zip(found, alone, strict=True):
        assert one == pytest.approx(other, rel=1e-9)


@pytest.mark.mpi(2)
def test_the_loss_is_that_of_the_program_and_predictions_are_rows(comm):
    graph = with_rows(dist_graph(random_graph(3), comm))

    def usual(graph, logits):
        known = graph.train_mask & (graph.labels >= 0)
        return F.cross_entropy(logits[known], graph.labels[known])

    model = lambda: dg.nn.GraphSAGE(8, 8, 4).double()  # noqa: E731
    assert records(graph, model, loss=usual) == [pytest.approx(one, rel=1e-9) for one in records(graph, model)]
    trainer = dg.Trainer(Own(), graph, dg.TrainConfig(epochs=1))
    logits = trainer.predict()
    assert logits.shape == (60, 4) and graph.gather_rows(logits, root=None).shape == (60, 4)
    with pytest.raises(InputError, match="rows of all ranks: take their"):
        dg.Trainer(Own(), graph, loss=lambda graph, logits: logits.square().sum(1)).fit()


class Some(Own):
    def forward(self, graph, feats):
        return super().forward(graph, feats)[graph.train_mask]


@pytest.mark.mpi(2)
def test_a_model_that_gives_some_rows_is_refused(comm):
    graph = with_rows(dist_graph(random_graph(3), comm))
    with pytest.raises(InputError, match=r"Some gave a tensor \[29, 4\] for 60 vertices"):
        dg.Trainer(Some(), graph, dg.TrainConfig(epochs=1)).fit()


@pytest.mark.mpi(2)
def test_norms_are_of_the_rows_that_they_get(comm):
    graph = with_rows(dist_graph(random_graph(3), comm))
    rows, plain = graph.feats[graph.train_mask], graph.plain
    torch.manual_seed(0)
    for norm in (dg.nn.BatchNorm1d(8), dg.nn.GraphNorm(8), dg.nn.PairNorm()):
        out = norm.double()(rows, graph)
        np.testing.assert_allclose(out.mean(0).detach(), np.zeros(8), atol=1e-9)
        with pytest.raises(InputError, match="a norm over all vertices got"):
            norm(plain.feats[plain.train_mask], plain)
    theirs, ours = nn.BatchNorm1d(8).double(), dg.nn.BatchNorm1d(8).double()
    theirs(rows), ours(rows, graph)
    torch.testing.assert_close(ours.state_dict(), theirs.state_dict())


class Catches(nn.Module):
    """Its layer fails, which it takes in its stride; then it says what is wrong itself."""

    def __init__(self):
        super().__init__()
        self.lin, self.seen = nn.Linear(3, 4), []

    def forward(self, graph, feats):
        self.seen.append(is_watched(self.lin))
        with contextlib.suppress(RuntimeError):
            self.lin(feats)
        raise ValueError("the user's own words")


@pytest.mark.mpi(1)
def test_what_a_model_says_itself_stays_and_no_hook_is_on_its_modules(comm):
    graph, model = with_rows(dist_graph(random_graph(3), comm)), Catches()
    with pytest.raises(ValueError, match="the user's own words"):
        dg.Trainer(model, graph, dg.TrainConfig(epochs=1)).fit()
    assert model.seen == [False]
    boxes = nn.Sequential(nn.Sequential(nn.Linear(3, 4))).double()
    boxes.forward = lambda graph, feats: nn.Sequential.forward(boxes, graph, feats)  # takes one argument
    boxes.own = Own()  # a user's module: rows of all ranks
    with pytest.raises((InputError, TypeError), match="positional arguments"):
        dg.Trainer(boxes, graph, dg.TrainConfig(epochs=1)).fit()
