"""Passes beside a step: where a loss that is no number came from, and how far a narrow step is from the exact one."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph
from trainers import trainer_of

from distgnn.config import ModelConfig, TrainConfig
from distgnn.errors import RunError
from distgnn.train import Trainer
from distgnn.train.checkpoint import files as files


@pytest.mark.mpi(3)
def test_a_loss_that_is_not_a_number_stops_all_ranks(comm):
    graph = dist_graph(random_graph(1), comm)
    graph.feats[:] = float("inf")
    with pytest.raises(RunError, match="in epoch 0: the input features on rank 0 are not finite") as caught:
        trainer_of(graph).fit()
    assert caught.value.agreed


@pytest.mark.mpi(2)
def test_a_loss_that_is_not_a_number_names_epoch_and_layer_and_leaves_the_weights(comm, shared_tmp_path):
    class Breaks(torch.nn.Module):
        def __init__(self, graph):
            super().__init__()
            self.graph, self.dense = graph, torch.nn.Linear(8, 8)

        def forward(self, rows):
            bad = self.training and self.graph.step == 4 and self.graph.rank == 1
            return self.dense(rows) * (float("nan") if bad else 1.0)

    class Model(torch.nn.Module):
        def __init__(self, graph):
            super().__init__()
            self.first, self.second = torch.nn.Linear(8, 8), Breaks(graph)
            self.last = torch.nn.Linear(8, 4)

        def forward(self, graph, feats):
            return self.last(self.second(self.first(feats)))

    graph = dist_graph(random_graph(8), comm, dtype="float32")
    run = shared_tmp_path / "run"
    trainer = Trainer(Model(graph), graph, TrainConfig(epochs=9, run_dir=str(run), checkpoint_every=2))
    with pytest.raises(RunError, match="nan in epoch 4: it began in layer second on rank 1") as caught:
        trainer.fit()
    assert caught.value.agreed
    assert all(bool(torch.isfinite(p).all()) for p in trainer.model.parameters())
    assert files.find_checkpoints(run)[0].name == "epoch-00000004"


@pytest.mark.mpi(1, 2)
def test_an_exact_run_verifies_as_exact_and_a_narrow_one_does_not(comm):
    for options, narrow in (({"dtype": "float32"}, False), ({"dtype": "float32", "wire": "int8"}, True)):
        runs = []
        for every in (0, 2):
            graph = dist_graph(random_graph(9), comm, **options)
            sizes = ModelConfig("gcn", 8, norm="batch")
            runs.append(trainer_of(graph, sizes, epochs=4, verify_every=every).fit())
        plain, result = runs
        assert result.losses == plain.losses  # looking changes nothing
        found = [record["gradient_error"] for record in result.records if "gradient_error" in record]
        assert len(found) == 2
        low, high = (0, 0) if not narrow else (1e-6, 0.1) if comm.size > 1 else (0, 1e-6)  # alone: rounding only
        assert all(low <= error <= high for error in found)


@pytest.mark.mpi(2)
def test_a_verified_step_is_compared_before_it_is_clipped(comm):
    record = trainer_of(dist_graph(random_graph(1), comm), clip_grad=1e-3, verify_every=1).train_epoch(0)
    assert record["gradient_error"] < 1e-12
