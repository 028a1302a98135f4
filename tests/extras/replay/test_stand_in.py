"""A rank among stand-ins does what it does among real ranks: the same messages, the same bytes."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.comm import make_bins
from distgnn.config import ModelConfig, TrainConfig
from distgnn.extras.replay.stand_in import StandIn
from distgnn.extras.replay.worker import Recorder
from distgnn.nn import build_model
from distgnn.train import Trainer

EPOCHS = 9


def trainer_of(comm, name: str, **options) -> Trainer:
    graph = dist_graph(random_graph(1), comm, algorithm=name, **options)
    torch.manual_seed(0)
    model = build_model(ModelConfig("sage", 8, 3), graph.num_feats, graph.num_classes)
    return Trainer(model, graph, TrainConfig(epochs=EPOCHS))


def bins_told(comm, plan, delay: int) -> list[np.ndarray]:
    """What the others told this rank of their bins."""
    told: list[np.ndarray] = []

    def alltoall(mine, theirs):
        comm.Alltoall(mine, theirs)
        told.append(theirs.copy())

    make_bins(plan, delay, SimpleNamespace(Alltoall=alltoall))
    return told


@pytest.mark.mpi(3)
@pytest.mark.parametrize(
    "name, options",
    [
        ("cd-0", {}),
        ("cd-0", {"update": "copies"}),
        ("cd-2", {"wire": "int8", "dtype": "float32"}),
        ("0c", {"update": "copies"}),
    ],
)
def test_bytes_are_those_of_a_real_run(comm, name, options):
    real = trainer_of(comm, name, **options)
    delay = real.graph.algorithm.delay or 0
    for epoch in range(EPOCHS):
        real.train_epoch(epoch)
    real.graph.drain()
    answers = bins_told(comm, real.graph.plan, delay) if delay else []
    alone = StandIn(comm.rank, comm.size, answers)
    replayed = trainer_of(alone, name, **options)
    replayed.trace = recorder = Recorder(replayed.graph.transport, alone.log)
    for epoch in range(EPOCHS):
        alone.log.on = epoch >= 3
        recorder.begin()
        replayed.train_epoch(epoch)
    assert recorder.sent_to == [list(counts) for counts in real.sent_to[3:]]
    check_events(recorder, delay, overlaps=options.get("update") != "copies")


def check_events(recorder: Recorder, delay: int, overlaps: bool) -> None:
    """Sends add up to the bytes counted; late messages are waited for after the delay, sent buffers before reuse."""
    for events, counts in zip(recorder.epochs, recorder.sent_to, strict=True):
        assert sum(event[3] for event in events if event[0] == "send") == sum(counts)
    last = recorder.epochs[-1]
    if overlaps and sum(recorder.sent_to[-1]):
        assert ("progress",) in last  # calls between kernels, in which messages move
    ages = {age for event in last if event[0] == "wait" for age, _ in event[1]}
    assert ages <= {0, 1, delay} and (not delay or not sum(recorder.sent_to[-1]) or delay in ages)
    assert all(event[2] >= 0 for event in last if event[0] == "compute")


def test_rows_that_arrive_look_like_rows_that_were_sent():
    comm = StandIn(0, 3)
    sent, received = np.arange(6, dtype=np.uint8), np.zeros(15, np.uint8)
    request = comm.Irecv([received, None], 1, 4)
    comm.Isend([sent, None], 2, 4)
    request.Waitall([request])
    np.testing.assert_array_equal(received, [*range(6), *range(6), 0, 1, 2])
