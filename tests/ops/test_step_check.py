"""Ranks that take different things into a step of the Trainer, or of a loop with plain tensors, stop before it."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph
from torch.nn import functional as F

from distgnn.config import ModelConfig, TrainConfig
from distgnn.errors import RunError
from distgnn.graph.face.row_graph import with_rows
from distgnn.graph.global_values import global_mean
from distgnn.nn import build_model
from distgnn.ops.own_loop import DistributedOptimizer
from distgnn.ops.step_check import content_of, weight_of
from distgnn.train import Trainer


class Own(torch.nn.Module):
    """A user's model: it sees rows."""

    def __init__(self, graph, factor=1.0):
        super().__init__()
        self.layer, self.factor = torch.nn.Linear(graph.num_feats, int(graph.num_classes)), factor

    def forward(self, graph, x):
        return self.layer(x * self.factor)


class Act:
    """A callback that does something on rank 1 after the first epoch."""

    def __init__(self, act):
        self.act = act

    def on_train_epoch_end(self, trainer, record):
        if trainer.graph.rank == 1 and record["epoch"] == 0:
            self.act(trainer)


def weights(trainer):
    next(trainer.model.parameters()).data.mul_(1.5)


def mode(trainer):
    trainer.model.forward = _in_evaluation_mode(trainer.model)


def _in_evaluation_mode(model):
    forward = model.forward

    def run(*args):
        model.eval()
        return forward(*args)

    return run


def lr(trainer):
    trainer.optimizer.optimizer.param_groups[0]["lr"] = 0.5


def ours(graph):
    torch.manual_seed(0)
    return build_model(ModelConfig(hidden_feats=8, dropout=0.0), graph.num_feats, graph.num_classes)


def scheduler(rank):
    return lambda optimizer: torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5 if rank == 1 else 1.0)


def doubled_loss(rank):
    return lambda graph, logits: F.cross_entropy(logits[graph.train_mask], graph.y[graph.train_mask]) * (1.0 + rank)


SGD = torch.optim.SGD
ODD = {  # name -> (model, what the trainer is given, what is said, epochs that are done)
    "weights": (ours, lambda rank: {"callbacks": [Act(weights)]}, "the weights", 1),
    "mode": (ours, lambda rank: {"callbacks": [Act(mode)]}, "the modules.*training=False", 1),
    "lr": (ours, lambda rank: {"callbacks": [Act(lr)], "optimizer": SGD}, "the optimiser.*lr 0.01.*lr 0.5", 1),
    "schedule": (ours, lambda rank: {"optimizer": SGD, "scheduler": scheduler(rank)}, "the optimiser", 1),
    "optimiser": (ours, lambda rank: {"optimizer": lambda p: SGD(p, 0.1 + rank)}, "lr 0.1,.*lr 1.1", 0),
    "a loss": (ours, lambda rank: {"loss": doubled_loss(rank)}, "the loss", 0),
    "a model of rows": (lambda graph: Own(graph, 1.0 + graph.rank), lambda rank: {}, "a number beside rows", 0),
}


@pytest.mark.mpi(2)
@pytest.mark.parametrize("odd", ODD)
def test_the_trainer(comm, odd):
    make, given, said, epochs = ODD[odd]
    graph = with_rows(dist_graph(random_graph(), comm))
    trainer = Trainer(make(graph), graph, TrainConfig(epochs=3, lr=0.01, log=None, eval_every=3), **given(comm.rank))
    with pytest.raises(RunError, match=said):
        trainer.fit()
    assert len(trainer.sent_to) == epochs


@pytest.mark.mpi(2)
@pytest.mark.parametrize("odd", ["lr", "weights", "mode"])
def test_a_loop_with_plain_tensors(comm, odd):
    graph = dist_graph(random_graph(), comm)
    model = ours(graph).to(graph.weight_dtype)
    optimizer = DistributedOptimizer(SGD(model.parameters(), 0.1), graph)

    def step():
        optimizer.zero_grad()
        logits = model(graph, graph.feats)[graph.train_mask]
        global_mean(graph, F.cross_entropy(logits, graph.labels[graph.train_mask], reduction="none")).backward()
        optimizer.step()

    step()
    if comm.rank:
        {"lr": lambda: optimizer.param_groups[0].update(lr=0.2), "mode": model.eval}.get(
            odd, lambda: next(model.parameters()).data.add_(1.0)
        )()
    with pytest.raises(RunError, match={"lr": "lr 0.1.*lr 0.2", "mode": "the modules"}.get(odd, "the weights")):
        step()


@pytest.mark.mpi(2)
def test_a_closure(comm):
    graph = with_rows(dist_graph(random_graph(), comm))
    model = Own(graph).double()
    torch.nn.init.ones_(model.layer.weight), torch.nn.init.ones_(model.layer.bias)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1 + comm.rank)

    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(graph, graph.feats)[graph.train_mask], graph.y[graph.train_mask])
        loss.backward()
        return loss

    with pytest.raises(RunError, match="the weights"):  # of the second call of the closure
        optimizer.step(closure)


def test_a_weight_counts_as_its_bits_whatever_happens_to_it():
    for shape, dtype in (((3,), torch.float32), ((64, 200), torch.float32), ((40, 7), torch.bfloat16)):
        one = torch.nn.Parameter(torch.randn(shape).to(dtype))
        seen = [weight_of(one)]
        with torch.no_grad():
            one[-1] += 1
        seen.append(weight_of(one))
        one.data = one.data.clone()
        assert weight_of(one) == seen[-1] == content_of(one)
        one.data = torch.zeros(shape, dtype=dtype)
        seen.append(weight_of(one))
        one.data = torch.zeros((*shape, 1), dtype=dtype)
        seen.append(weight_of(one))
        assert len(set(seen)) == 4
