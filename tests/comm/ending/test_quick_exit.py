"""The end of a rank: messages are complete, and garbage is not looked for any more."""

import atexit
import gc

from mpi4py import MPI

from distgnn.comm import Transport
from distgnn.comm.ending.quick_exit import end_quickly


def test_messages_are_completed_and_objects_left_alone(monkeypatch):
    registered, finished = [], []
    monkeypatch.setattr(atexit, "register", registered.append)
    transport = Transport(MPI.COMM_SELF)
    transport.finish_sending = lambda: finished.append(gc.get_freeze_count())
    end_quickly(transport)
    try:
        registered[0]()
        assert finished == [0]
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
    del transport
    registered[0]()  # a graph that is gone sends nothing
    gc.unfreeze()
