"""The end of a rank: messages are complete, and garbage is not looked for any more."""

import atexit
import gc

from mpi4py import MPI

from distgnn.comm import Transport
from distgnn.comm.ending import quick_exit


def test_messages_are_completed_and_objects_left_alone(monkeypatch):
    registered, finished = [], []
    monkeypatch.setattr(atexit, "register", registered.append)
    monkeypatch.setattr(quick_exit, "living", lambda: [transport])  # not those of other tests
    quick_exit.end_quickly.cache_clear()
    transport = Transport(MPI.COMM_SELF)
    transport.finish_sending = lambda: finished.append(gc.get_freeze_count())
    gc.unfreeze()  # what other tests' graphs froze
    quick_exit.end_quickly()
    quick_exit.end_quickly()  # a second graph
    try:
        assert len(registered) == 1
        registered[0]()
        assert finished == [0]
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
