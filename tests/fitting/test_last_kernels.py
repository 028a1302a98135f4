import pytest
from cut_graphs import dist_graph, random_graph

import distgnn as dg
from distgnn.config import ModelConfig, RunConfig, Settings, TrainConfig
from distgnn.fitting.last_kernels import compile_kernels, last_kernels
from distgnn.kernels.runtime import jit
from distgnn.nn import model_for
from distgnn.partition import partition_graph, read_manifest


@pytest.mark.parametrize("norm", ["layer", "none"])
@pytest.mark.parametrize("name", ["sage", "gcn"])
def test_the_second_process_compiles_all_kernels_of_a_step(name, norm, tmp_path):
    folder = tmp_path / "parts"
    partition_graph("communities:nodes=200,feats=20,classes=7", 1, folder)
    config, known = ModelConfig(name, hidden_feats=24, norm=norm), jit.compilation
    graph = dg.load(folder, plain_tensors=True, say=None)
    words = last_kernels(Settings(model=config), read_manifest(folder))
    compile_kernels(words, 1, 1)
    before = known()
    dg.Trainer(model_for(config, graph, "node"), graph, TrainConfig(log=None)).train_epoch(0)
    assert known() == before


@pytest.mark.mpi(2)
def test_ranks_of_a_machine_share_the_kernels_of_a_step(comm):
    data = random_graph(1, num_nodes=200, num_edges=800, num_feats=20)
    graph = dist_graph(data, comm, dtype="float32")
    config = ModelConfig("sage", hidden_feats=40)
    words = ["", "sage", "layer", "20", "40", str(graph.num_classes)]
    compile_kernels(words, comm.rank, comm.size)
    before = jit.compilation()
    dg.Trainer(model_for(config, graph, "node"), graph, TrainConfig(log=None)).train_epoch(0)
    assert jit.compilation() == before


@pytest.mark.parametrize(
    "settings",
    [
        Settings(model=ModelConfig("gat")),
        Settings(run=RunConfig(dtype="bfloat16")),
        Settings(train=TrainConfig(task="link")),
    ],
)
def test_other_runs_start_no_process(settings, tmp_path):
    partition_graph("communities:nodes=200", 1, tmp_path / "parts")
    assert last_kernels(settings, read_manifest(tmp_path / "parts")) == []
