"""The training loop: early stopping, best weights, warnings and refusals."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph
from trainers import trainer_of

from distgnn.config import ModelConfig
from distgnn.datasets import GraphData
from distgnn.errors import InputError, RunError
from distgnn.nn import build_model
from distgnn.train import Trainer
from distgnn.train.users_model import check_forward


@pytest.mark.mpi(3)
def test_it_stops_early_on_all_ranks_and_ends_with_the_best_weights(comm):
    trainer = trainer_of(dist_graph(random_graph(1), comm), epochs=200, eval_every=1, patience=3, lr=0.05)
    weights = []  # of each epoch, on rank 0
    trainer.on_epoch = lambda record: weights.append(
        {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    )
    result = trainer.fit()
    assert len(result.records) < 200
    best = max(result.records, key=lambda record: (record["valid_metric"], -record["epoch"]))
    assert result.summary["best_epoch"] == best["epoch"]
    assert result.summary["valid_metric"] == best["valid_metric"]
    assert comm.allgather(result.losses) == [result.losses] * comm.size
    assert trainer.evaluate()["valid_metric"] == best["valid_metric"]
    if comm.rank == 0:
        at_best, last = weights[best["epoch"]], weights[-1]
        for name, tensor in trainer.model.state_dict().items():
            assert torch.equal(tensor, at_best[name])
        assert any(not torch.equal(last[name], at_best[name]) for name in last)


@pytest.mark.mpi(1)
def test_predictions_are_made_without_dropout(comm):
    trainer = trainer_of(dist_graph(random_graph(1), comm))
    assert any(getattr(module, "p", 0) for module in trainer.model.modules())
    trainer.train_epoch(0)
    found = trainer.predict()
    trainer.graph.step = 7  # where there is dropout its masks are others now
    assert torch.equal(trainer.predict(), found)


@pytest.mark.mpi(2)
def test_what_cannot_be_trained_is_refused_on_all_ranks(comm):
    data = random_graph(1)
    edges, feats = data.edges, data.feats
    for missing, says in {"feats": "no features", "labels": "no labels", "train": "no training vertex"}.items():
        fields = {"feats": feats, "labels": data.labels, "train": data.train}
        del fields[missing]
        graph = dist_graph(GraphData.from_arrays(edges, data.num_nodes, directed=False, **fields), comm)
        with pytest.raises(InputError, match=says):
            Trainer(torch.nn.Linear(8, 4), graph)
    with pytest.raises(InputError, match="rocauc needs two classes"):
        trainer_of(dist_graph(data, comm), metric="rocauc")


@pytest.mark.mpi(2)
def test_settings_that_differ_between_ranks_are_named(comm):
    with pytest.raises(RunError, match=r"ranks differ in lr: rank 0 has 0\.5, rank 1 has 0\.25"):
        trainer_of(dist_graph(random_graph(1), comm), lr=[0.5, 0.25][comm.rank])


@pytest.mark.mpi(1, 2)
def test_torchs_own_dropout_warns_on_several_ranks(comm, recwarn):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)
            self.dense = torch.nn.Linear(8, 4)

        def forward(self, graph, feats):
            return self.dense(self.drop(feats))

    Trainer(Model(), dist_graph(random_graph(1), comm))
    messages = [str(warning.message) for warning in recwarn]
    assert bool(messages) == (comm.size > 1 and comm.rank == 0)
    assert all("drop: torch's own module works per rank" in message for message in messages)


def test_a_forward_with_the_graph_second_is_refused():
    class Swapped(torch.nn.Module):
        def forward(self, x, graph):
            return x

    with pytest.raises(InputError, match=r"calls model\(graph, feats\), and Swapped.forward takes \(x, graph\)"):
        check_forward(Swapped())
    check_forward(torch.nn.Linear(2, 2))
    check_forward(build_model(ModelConfig(), 3, 2))
