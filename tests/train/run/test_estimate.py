"""The estimate beside what training takes: hidden rows of each model, rows of arcs, messages, late rows."""

from pathlib import Path

import pytest
from cut_graphs import random_graph

from distgnn.config import ModelConfig, Settings, TrainConfig
from distgnn.config.model import MODELS
from distgnn.graph.loader import load
from distgnn.kernels import give_back_freed_memory
from distgnn.nn import model_for
from distgnn.partition import partition_graph, read_manifest
from distgnn.system.sizes import peak_resident_bytes, resident
from distgnn.train import Trainer
from distgnn.train.run.estimate import estimate_blocks

NODES, WIDTH = 12_000, 128
ONCE = 20_000_000  # code that is read for the first time, what malloc rounds up


@pytest.fixture
def parts(comm, shared_tmp_path):
    """The folder of a graph with features and types of arcs."""
    if comm.rank == 0:
        data = random_graph(1, num_nodes=NODES, num_edges=2 * NODES, num_feats=32, typed=True, directed=False)
        partition_graph(data, comm.size, shared_tmp_path / "parts", method="libra")
    comm.Barrier()
    return str(shared_tmp_path / "parts")


@pytest.mark.mpi(1, 2)
@pytest.mark.parametrize(
    ("name", "algorithm"), [*((name, "cd-0") for name in MODELS), ("sage", "cd-2"), ("gcn", "cd-2")]
)
def test_training_takes_no_more_than_the_estimate(comm, parts, name, algorithm):
    graph = load(parts, comm=comm, algorithm=algorithm)
    config = ModelConfig(name, hidden_feats=WIDTH, num_layers=3)
    train = TrainConfig(log=None, timeout=0)
    model = model_for(config, graph)
    trainer = Trainer(model, graph, train)
    give_back_freed_memory()
    before = resident(exact=True).total
    Path("/proc/self/clear_refs").write_text("5")  # the peak of this process begins anew: other tests ran in it
    for epoch in range(3):
        trainer.train_epoch(epoch)
    trainer.predict()
    taken = peak_resident_bytes() - before
    settings = Settings(train=train, model=config)
    sections = settings.sections() | {"train": train.as_dict()}
    sections["run"] |= {"algorithm": algorithm, "update": "owners"}
    blocks = estimate_blocks(read_manifest(parts), comm.rank, sections)
    trained = sum(size for block, size in blocks.items() if block not in ("program", "features", "structure"))
    print(name, algorithm, comm.size, taken / 1e6, trained / 1e6, {k: round(v / 1e6, 1) for k, v in blocks.items()})
    assert taken < trained + ONCE
