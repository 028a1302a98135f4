"""A run as a plain model of DGL's layers: what ranks trained and predict, and folders that cannot be exported."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph
from plain_models import TYPED

import distgnn
from distgnn.config import ModelConfig, TrainConfig
from distgnn.errors import RunError
from distgnn.nn import model_for
from distgnn.train import Trainer


@pytest.mark.mpi(2)
@pytest.mark.parametrize("name", ["gcn", "rgcn", "edgegat"])  # weights, types and features of edges
def test_a_trained_run_in_three_lines(comm, tmp_path, name):
    """What ranks trained and predict equals what DGL predicts in one process."""
    data = random_graph(8, weighted=name == "gcn", typed=name in TYPED)
    graph = dist_graph(data, comm, dtype="float32")
    config = ModelConfig(name, 8, norm="batch", weighted=name == "gcn")
    run = comm.bcast(str(tmp_path / "run"))
    described = {"model": vars(config), "data": {"graph": graph.info}}
    trainer = Trainer(model_for(config, graph), graph, TrainConfig(epochs=3, run_dir=run), describe=described)
    trainer.fit()
    logits = gather_rows(graph, trainer.predict())
    plain = distgnn.to_dgl(run)
    whole = data.to_dgl(data.edge_list())
    with torch.no_grad():
        np.testing.assert_allclose(logits, plain(whole, whole.ndata["feat"]), rtol=1e-4, atol=1e-5)


def test_a_folder_that_cannot_be_exported_is_refused(tmp_path):
    with pytest.raises(RunError, match="is not a run folder"):
        distgnn.to_dgl(str(tmp_path))
    (tmp_path / "config.toml").write_text("[train]\nepochs = 3\n")
    with pytest.raises(RunError, match="trained from a script"):
        distgnn.to_dgl(str(tmp_path))
    (tmp_path / "config.toml").write_text('[model]\nname = "sage"\n')
    with pytest.raises(RunError, match="does not say what graph"):
        distgnn.to_dgl(str(tmp_path))
