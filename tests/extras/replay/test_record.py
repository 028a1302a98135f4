"""Recorded epochs: what was sent is in them, late rows are waited for after their delay, and nothing is changed."""

from pathlib import Path

import pytest
import torch
from cut_graphs import random_graph

from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.errors import InputError
from distgnn.extras.replay import predict
from distgnn.extras.replay.network import Network
from distgnn.extras.replay.record import RecordedComm, _Log, check_recordable, record
from distgnn.graph.loader import load
from distgnn.nn import model_for
from distgnn.partition import partition_graph
from distgnn.train import Trainer

CASES = [("cd-0", "float32"), ("cd-2", "int8")]


@pytest.fixture
def parts(comm, shared_tmp_path):
    if comm.rank == 0:
        partition_graph(random_graph(1), comm.size, shared_tmp_path / "parts", method="libra")
    comm.Barrier()
    return str(shared_tmp_path / "parts")


@pytest.mark.mpi(3)
def test_what_ranks_send_is_recorded(comm, parts):
    """One rank has a core at a time; each algorithm has turns of two epochs."""
    train, sage = TrainConfig(), ModelConfig("sage", 8, 3)
    asked = [Settings(train, sage, RunConfig(algorithm=name), Schedule(wire=wire)).checked() for name, wire in CASES]
    both = comm.bcast(record(parts, asked, comm, repeats=2, at_once=1, epochs=2))
    for (name, _), found in zip(CASES, both, strict=True):
        check_recordings(name, found)
    assert len(comm.bcast(record(parts, asked[1:], comm, repeats=1, epochs=1))[0][0].epochs) == 4


def check_recordings(name, found):
    delay = {"cd-0": 1, "cd-2": 2}[name]
    for recording in found:
        assert len(recording.epochs) == 6 and recording.cycle == delay
        for number, (events, counts) in enumerate(zip(recording.epochs, recording.sent_to, strict=True)):
            assert sum(event[3] for event in events if event[0] == "send") == sum(counts)
            assert recording.compute_seconds(number) > 0 and all(e[2] >= 0 for e in events if e[0] == "compute")
        last = recording.epochs[-1]
        ages = {age for event in last if event[0] == "wait" for age, _ in event[1]}
        assert ages <= {0, 1, delay} and (delay == 1 or delay in ages)
    slow, quick = (predict.epoch(found, Network(bandwidth=rate)) for rate in (1e3, 1e10))
    assert slow.low < slow.seconds < slow.high and slow.pair_bytes == quick.pair_bytes
    assert slow.sent_bytes == sum(map(sum, slow.pair_bytes))
    assert slow.seconds > 1.5 * quick.seconds and slow.messages > 0
    assert quick.phases["aggregate"] > 0 and 0 < quick.efficiency <= 1


@pytest.mark.mpi(3)
def test_recording_changes_no_loss(comm, parts):
    losses = []
    for log in (None, _Log(comm, Path(parts) / "part-0")):
        graph = load(parts, "cd-2", RecordedComm(comm, log) if log else comm, say=None, plain_tensors=True)
        torch.manual_seed(0)
        trainer = Trainer(model_for(ModelConfig("sage", 8, 2), graph, "node"), graph, TrainConfig())
        if log is None:
            losses.append([trainer.train_epoch(epoch)["loss"] for epoch in range(6)])
        else:
            with log.on():
                losses.append([trainer.train_epoch(epoch)["loss"] for epoch in range(6)])
        graph.drain()
    assert losses[0] == losses[1]


@pytest.mark.parametrize(
    "train, parts, says",
    [
        (TrainConfig(task="link"), 2, "replay is of node and regression"),
        (TrainConfig(verify_every=2), 2, "verify_every"),
        (TrainConfig(), 1, "a single part sends nothing"),
    ],
)
def test_what_is_not_recorded(train, parts, says):
    with pytest.raises(InputError, match=says):
        check_recordable(Settings(train), parts)
