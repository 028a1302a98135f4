"""`dg.init`: what `load` changes in its process, one by one, and what it is told to leave."""

import logging
import sys

import pytest
import torch
from mpi4py import MPI

from distgnn.errors import InputError
from distgnn.graph.loader import EFFECTS, init


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("wanted", [None, "threads", "memory"])
def test_it_sets_what_is_not_left(wanted, threads, monkeypatch, caplog):
    monkeypatch.setenv("DISTGNN_NUM_THREADS", "2")
    hook, out = sys.excepthook, sys.stdout
    with caplog.at_level(logging.INFO, "distgnn"):
        comm = init(leave=[name for name in EFFECTS if name != wanted])
    assert torch.get_num_threads() == (2 if wanted == "threads" else 1)
    assert (comm, sys.excepthook, sys.stdout) == (MPI.COMM_WORLD, hook, out)
    assert [record.getMessage() for record in caplog.records] == [f"set in this process: {wanted or 'nothing'}"]


def test_an_unknown_effect_is_refused():
    with pytest.raises(InputError, match="unknown leave 'thread'"):
        init(leave=["thread"])
