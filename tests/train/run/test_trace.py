"""The timeline: one file of all ranks that covers each step without overlaps, and nothing where it is off."""

import json
import os
from itertools import pairwise

import pytest
from cut_graphs import dist_graph, random_graph
from trainers import trainer_of


@pytest.mark.mpi(2)
def test_one_file_of_all_ranks(comm, tmp_path):
    folder = comm.bcast(str(tmp_path / "run"))
    graph = dist_graph(random_graph(1), comm, dtype="float32")
    trainer_of(graph, epochs=3, run_dir=folder, trace=True).fit()
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
    assert {event["name"] for event in inside} == {"aggregate", "dense", "pack", "wait", "all_reduce"}
    covered = sum(event["dur"] for event in inside)
    assert covered == pytest.approx(sum(event["dur"] for event in epochs), rel=0.01)
    for one, other in pairwise(inside):
        assert one["ts"] + one["dur"] <= other["ts"] + 0.5  # rounded to tenths of microseconds
