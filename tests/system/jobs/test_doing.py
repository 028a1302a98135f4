"""What threads say that they do, and what is seen of those that say nothing: frames, and nothing kept."""

import gc
import importlib
import sys
import threading
import weakref
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from numba.core import event

from distgnn.kernels.runtime import jit
from distgnn.system.jobs import doing


def test_a_thread_that_compiles_is_seen():
    """A kernel's look-up, which may wait for another process, and a user's own function."""
    inside, over = threading.Event(), threading.Event()

    def wait(signature):
        inside.set()
        over.wait(300)

    compile_once = jit._under_lock(wait, SimpleNamespace(stats=numba.njit(lambda: 0).stats, _cache=jit.NoCache()))
    doing.hear_of_compiling()
    assert doing.compiling == []
    thread = threading.Thread(target=compile_once, args=((),))
    thread.start()
    try:
        assert inside.wait(300) and doing.compiling == ["a kernel"]
    finally:
        over.set()
        thread.join()
    assert doing.compiling == []
    seen = []

    class Sees(event.Listener):
        on_end = staticmethod(lambda _: None)
        on_start = staticmethod(lambda _: seen.append(doing.compiling[:]))

    with event.install_listener("numba:run_pass", Sees()):
        numba.njit(double)(2)
    assert seen and "double" in seen[0] and doing.compiling == []


def double(x):
    return 2 * x


@pytest.mark.parametrize(("folder", "counts"), [("site-packages", True), ("own", False)])
def test_a_thread_that_imports_is_seen(tmp_path, monkeypatch, folder, counts):
    """A library's module: what begins in a user's own may be the loop itself."""
    inside, over = threading.Event(), threading.Event()
    gate = SimpleNamespace(inside=inside, over=over)
    (tmp_path / folder).mkdir()
    (tmp_path / folder / f"slow_{folder[:4]}.py").write_text("import gate\ngate.inside.set()\ngate.over.wait(300)\n")
    monkeypatch.syspath_prepend(str(tmp_path / folder))
    monkeypatch.setitem(sys.modules, "gate", gate)
    thread = threading.Thread(target=importlib.import_module, args=(f"slow_{folder[:4]}",))
    thread.start()
    try:
        assert inside.wait(300) and doing.importing(thread.ident) is counts
    finally:
        over.set()
        thread.join()
    assert not doing.importing(thread.ident)


def test_frames_are_taken_without_a_collection_and_nothing_else_is(monkeypatch):
    """CPython 3.11 was seen to give a Trainer, or an Exchange, where the frame of the thread that trains had been."""
    collects = []

    class Frame:
        def __init__(self, caller):
            self.caller = caller

        @property
        def f_back(self):
            collects.append(gc.isenabled())
            return self.caller

    outer = Frame("a Trainer")
    inner = Frame(outer)
    current = {threading.get_ident(): inner, 1: inner, 2: "an Exchange"}
    monkeypatch.setattr(doing, "FrameType", Frame)
    monkeypatch.setattr(sys, "_current_frames", lambda: collects.append(gc.isenabled()) or current)
    assert doing.stacks() == {1: [inner, outer], 2: []}
    assert collects == [False, False, False] and gc.isenabled()


def test_what_a_thread_held_is_free_when_it_ends_however_often_it_was_looked_at():
    inside, over, seen = threading.Event(), threading.Event(), []

    def hold():
        rows = np.zeros(3)
        seen.append(weakref.ref(rows))
        inside.set()
        over.wait(300)

    gc.disable()
    try:
        thread = threading.Thread(target=hold)
        thread.start()
        assert inside.wait(300) and doing.stacks()[thread.ident] and seen[0]() is not None
        over.set()
        thread.join()
        assert seen[0]() is None
    finally:
        gc.enable()
