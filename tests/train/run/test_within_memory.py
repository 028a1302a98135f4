"""Options that make a run fit: `--memory auto` takes them, and a refusal names them."""

import re
from dataclasses import replace

import pytest
from cut_graphs import random_graph

from distgnn.config import ModelConfig, Settings, TrainConfig
from distgnn.errors import RunError
from distgnn.partition import partition_graph
from distgnn.train.run import estimate
from distgnn.train.run.within_memory import MemoryLimit, choose

MODEL = {"name": "sage", "num_layers": 3, "hidden_feats": 64}
RUN = {"dtype": "float32", "algorithm": "cd-0"}
SETTINGS = {"model": MODEL, "run": RUN}


@pytest.mark.mpi(1)
def test_a_refusal_names_the_options_that_would_fit(comm, tmp_path):
    manifest = partition_graph(random_graph(0), 1, tmp_path / "parts", method="libra")
    manifest["parts"][0] |= {"owned": 5_000_000, "rows": 5_000_000}
    deep = SETTINGS | {"model": SETTINGS["model"] | {"num_layers": 8}}
    smaller = [{"run": deep["run"] | {"dtype": "bfloat16"}}, {"model": deep["model"] | {"remat": True}}]
    needed, *others = (estimate.estimate_bytes(manifest, 0, deep | other) for other in ({}, *smaller))
    assert max(others) < needed
    for words in ("take --dtype bfloat16 (", "--remat ("):
        with pytest.raises(RunError, match=re.escape(words)):
            estimate.check_memory(comm, manifest, deep, needed - 1)
    least = estimate.estimate_bytes(manifest, 0, deep | {"train": {"offload": "folder"}})
    with pytest.raises(RunError, match=re.escape(": take --offload DIR (")):
        estimate.check_memory(comm, manifest, deep, min(others) - 1)
    with pytest.raises(RunError, match=": take more parts"):
        estimate.check_memory(comm, manifest, deep, least - 1)


@pytest.mark.mpi(1)
def test_memory_auto_keeps_all_then_takes_remat_then_offload(comm, tmp_path):
    manifest = partition_graph(random_graph(0), 1, tmp_path / "parts", method="libra")
    manifest["parts"][0] |= {"owned": 5_000_000, "rows": 5_000_000}
    settings = Settings(TrainConfig(run_dir=str(tmp_path / "run")), ModelConfig("sage", 64, 8)).checked()
    again = replace(settings, model=replace(settings.model, remat=True))
    kept, made = (estimate.estimate_bytes(manifest, 0, one.sections()) for one in (settings, again))
    assert made < kept
    chosen = [choose(comm, manifest, settings, MemoryLimit(limit, True)) for limit in (kept, kept - 1, made, made - 1)]
    assert [one.model.remat for one, _ in chosen] == [False, True, True, False]
    assert [one.train.offload for one, _ in chosen] == [None, None, None, str(tmp_path)]
    assert [line.split(" (")[0] for _, line in chosen[:2]] == [
        "memory auto: all rows stay in memory",
        "memory auto: --remat",
    ]
