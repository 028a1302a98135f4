"""Rows beyond the largest message travel in pieces, alike at both ends; arrays on pages of their own are zeros."""

import gc
import mmap
import weakref

import numpy as np
import pytest
from cut_graphs import dist_graph, random_graph

from distgnn.comm import Transport
from distgnn.comm.transport import page_aligned_zeros
from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import build_model
from distgnn.train import Trainer


def losses(comm, largest: int | None, **options) -> tuple[list[float], int]:
    import torch

    graph = dist_graph(random_graph(1), comm, dtype="float32", **options)
    graph.transport.largest_message = largest or graph.transport.largest_message
    torch.manual_seed(0)
    model = build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes)
    result = Trainer(model, graph, TrainConfig(epochs=6)).fit()
    return result.losses, graph.transport.counters.sent_bytes


@pytest.mark.mpi(3)
@pytest.mark.parametrize(
    "options", [{}, {"algorithm": "cd-2", "wire": "int8"}, {"algorithm": "cd-2"}], ids=["cd-0", "cd-2 int8", "cd-2"]
)
def test_pieces_train_to_the_same_bits(comm, options):
    assert losses(comm, 100, **options) == losses(comm, None, **options)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 250])
def test_a_message_in_pieces_of_100_bytes(comm, size):
    transport = Transport(comm)
    transport.largest_message = 100
    tag = transport.begin("test", 1)
    rows, received = np.full(size, comm.rank, np.uint8), np.full(size, 7, np.uint8)
    requests = transport.receive(received, 1 - comm.rank, tag)
    requests += transport.send(rows, 1 - comm.rank, tag)
    assert len(requests) == 2 * -(-size // 100)
    transport.wait(requests)
    assert (received == 1 - comm.rank).all()
    assert transport.counters.sent_bytes == size


@pytest.mark.slow
@pytest.mark.mpi(2)
def test_more_than_two_gigabytes(comm):
    transport = Transport(comm)
    size = (2**31 + 4096) // 8
    tag = transport.begin("test", 1)
    received = np.zeros(size if comm.rank == 1 else 0)
    if comm.rank == 0:
        rows = np.arange(size, dtype=np.float64)
        transport.wait(transport.send(rows, 1, tag))
        assert transport.counters.sent_bytes == 8 * size > 2**31
    else:
        transport.wait(transport.receive(received, 0, tag))
        for start in (0, size // 2, size - 1000):
            assert (received[start : start + 1000] == np.arange(start, start + 1000)).all()


@pytest.mark.parametrize("shape", [(0, 5), (3, 5), (7,), (300_000, 16)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_zeros_that_begin_at_a_page(shape, dtype):
    rows = page_aligned_zeros(shape, dtype)
    assert (rows.shape, rows.dtype) == (shape, dtype)
    assert rows.flags.c_contiguous and rows.flags.writeable and not rows.any()
    assert rows.size == 0 or rows.ctypes.data % mmap.PAGESIZE == 0
    rows[...] = 1
    assert rows.sum() == rows.size


def test_pages_go_with_the_last_view():
    rows = page_aligned_zeros((4, 4), np.float32)
    pages = rows
    while isinstance(pages, np.ndarray):
        pages = pages.base
    gone, view = weakref.ref(pages.obj if isinstance(pages, memoryview) else pages), rows[1]
    del rows, pages
    gc.collect()
    assert gone() is not None and view.sum() == 0
    del view
    gc.collect()
    assert gone() is None
