import pytest

import distgnn as dg
from distgnn.config import ModelConfig, RunConfig, Settings, TrainConfig
from distgnn.fitting.last_kernels import compile_last_kernels, last_kernels
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
    in_feats, hidden, classes = map(int, words[3:])
    compile_last_kernels(words[1], words[2], in_feats, hidden, classes)
    before = known()
    dg.Trainer(model_for(config, graph, "node"), graph, TrainConfig(log=None)).train_epoch(0)
    assert known() == before


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
