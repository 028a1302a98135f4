"""The timeline: one file of all ranks that covers each step without overlaps, and nothing where it is off."""

import json
import os
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import build_model
from distgnn.train import Trainer


def trainer_of(comm, **settings) -> Trainer:
    graph = dist_graph(random_graph(1), comm, dtype="float32")
    torch.manual_seed(0)
    model = build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes)
    return Trainer(model, graph, TrainConfig(epochs=3, **settings))


@pytest.mark.mpi(1, 2)
def test_one_file_of_all_ranks(comm, tmp_path):
    folder = comm.bcast(str(tmp_path / "run"))
    trainer = trainer_of(comm, run_dir=folder, trace=True)
    trainer.fit()
    comm.Barrier()
    assert os.listdir(f"{folder}/trace") == ["trace.json"]
    with open(f"{folder}/trace/trace.json") as file:
        every = json.load(file)["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in every if event["ph"] == "M"}
    assert names == {rank: f"rank {rank}" for rank in range(comm.size)}
    events = [event for event in every if event["pid"] == comm.rank]
    spans = [event for event in events if event["ph"] == "X"]
    epochs = [event for event in spans if event["cat"] == "epoch"]
    assert [event["name"] for event in epochs] == ["epoch 0", "epoch 1", "epoch 2"]
    inside = [event for event in spans if event["cat"] == "step"]
    expected = {"aggregate", "dense"} | ({"pack", "wait", "all_reduce"} if comm.size > 1 else set())
    assert {event["name"] for event in inside} == expected
    covered = sum(event["dur"] for event in inside)
    assert covered == pytest.approx(sum(event["dur"] for event in epochs), rel=0.01)
    for one, other in pairwise(inside):
        assert one["ts"] + one["dur"] <= other["ts"] + 0.5  # rounded to tenths of microseconds


@pytest.mark.mpi(1, 2)
def test_a_trace_that_cannot_be_written_ends_no_finished_run(comm, tmp_path, capsys):
    folder = comm.bcast(str(tmp_path / "run"))
    trainer = trainer_of(comm, run_dir=folder, trace=True)
    if comm.rank == 0:
        (Path(folder) / "trace").write_text("in its place")
    assert len(trainer.fit().losses) == 3
    if comm.rank == 0:
        assert "cannot write to the run folder" in capsys.readouterr().err
        assert (Path(folder) / "summary.json").is_file()


@pytest.mark.mpi(3)
def test_records_have_the_waiting_of_each_exchange(comm):
    trainer = trainer_of(comm)
    assert trainer.graph.transport.counters.trace is None  # off by default
    for epoch in range(2):
        record = trainer.train_epoch(epoch)
    waits = record["exchange_waits"]
    kinds = [name.split()[:2] for name in waits]
    assert [kind for _, kind in kinds] == ["broadcast", "reduce"] * 4  # 2 layers beyond the kept one, there and back
    assert [int(number) for number, _ in kinds] == list(range(8))
    for least, mean, most in waits.values():
        assert 0 <= least <= mean <= most
    assert sum(mean for _, mean, _ in waits.values()) <= record["wait_seconds_mean"] * 1.001
    assert record["wait_seconds_min"] <= record["wait_seconds_mean"] <= record["wait_seconds"]
