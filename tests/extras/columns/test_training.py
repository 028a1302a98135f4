"""Training on ranks that share parts: one rank's losses, and checkpoints."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph, whole_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import model_for
from distgnn.train import Trainer

SAGE = ModelConfig("sage", 8, 3)
MODELS = {
    "gcn, batch norm, weights": ModelConfig("gcn", 8, 3, norm="batch", weighted=True),
    "gcn2, graph norm": ModelConfig("gcn2", 8, 3, norm="graph"),
    "recomputed": ModelConfig("sage", 8, 3, remat=True),
}


def fit(graph, config: ModelConfig, task: str = "node", **options):
    torch.manual_seed(0)
    model = model_for(config, graph, task)
    return Trainer(model, graph, TrainConfig(**{"epochs": 6, "lr": 0.02, "task": task} | options)).fit()


@pytest.mark.mpi(4)
@pytest.mark.parametrize("name", MODELS)
def test_losses_are_those_of_one_rank(comm, name):
    data = random_graph(3, weighted=True)
    shared = fit(dist_graph(data, comm, split_columns=2), MODELS[name])
    alone = fit(whole_graph(data), MODELS[name])
    np.testing.assert_allclose(shared.losses, alone.losses, rtol=1e-9)
    assert shared.summary["test_metric"] == pytest.approx(alone.summary["test_metric"], abs=1e-9)


@pytest.mark.mpi(4)
def test_links(comm):
    data = random_graph(9).split_links(0.1, 0.2)
    config = ModelConfig(hidden_feats=8, num_layers=2)
    shared, alone = (
        fit(graph, config, "link") for graph in (dist_graph(data, comm, split_columns=2), whole_graph(data))
    )
    np.testing.assert_allclose(shared.losses, alone.losses, rtol=1e-9)
    assert shared.summary["test_metric"] == pytest.approx(alone.summary["test_metric"], abs=1e-9)


@pytest.mark.mpi(4)
def test_a_resumed_run_is_bit_identical(comm, shared_tmp_path):
    data = random_graph(1)

    def graph():
        return dist_graph(data, comm, split_columns=2)

    expected = fit(graph(), SAGE, run_dir=str(shared_tmp_path / "whole"), epochs=8)
    run = {"run_dir": str(shared_tmp_path / "run")}
    fit(graph(), SAGE, **run, epochs=5)
    resumed = fit(graph(), SAGE, **run, epochs=8, resume=True)
    assert resumed.losses == expected.losses


@pytest.mark.mpi(4)
def test_a_run_resumes_on_one_rank_a_part(comm, shared_tmp_path):
    data, run = random_graph(1), {"run_dir": str(shared_tmp_path / "run")}
    fit(dist_graph(data, comm, split_columns=2), SAGE, **run, epochs=5)
    resumed = fit(dist_graph(data, comm), SAGE, **run, epochs=8, resume=True)
    np.testing.assert_allclose(resumed.losses, fit(whole_graph(data), SAGE, epochs=8).losses, rtol=1e-9)
