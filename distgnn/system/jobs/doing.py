"""What the threads of this process do, as they say it: wait for other ranks, or compile. And where they are, for lines.

    with waiting("Allreduce"): …     a wait says so itself, whatever file it stands in
    compiling                        kernels that are looked up or made: numba's events say so (`hear_of_compiling`)

Files and lines are read for messages only.
"""

import gc
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

waits: dict[int, tuple[str, float]] = {}  # by thread: what it waits for in MPI, and since when
compiling: list[str] = []  # kernels, by threads that compile, or wait for one that does
_looking = threading.Lock()  # by a thread that looks at others: it alone turns collections off and on
OTHERS = (  # than the user's own files: this program, Python's library
    *(f"{Path(__file__).parents[up] / name}{os.sep}" for up, name in ((2, ""), (3, "kernels"), (3, "partition"))),
    sysconfig.get_path("stdlib") + os.sep,
    "<frozen",
    "<eval_with_key>",  # torch.fx
)


@contextmanager
def waiting(name: str) -> Iterator[None]:
    """The block waits for other ranks."""
    me = threading.get_ident()
    before = waits.get(me)
    waits[me] = before or (name, time.monotonic())
    try:
        yield
    finally:
        if before is None:
            del waits[me]


@cache
def hear_of_compiling() -> None:
    """From now on `compiling` is kept: the lock around numba's compiler also covers our look-up and other processes."""
    from numba.core import event

    class Hears(event.Listener):
        def on_start(self, event: Any) -> None:
            dispatcher = event.data.get("dispatcher") if isinstance(event.data, dict) else None
            compiling.append(getattr(dispatcher, "__name__", "a kernel"))

        def on_end(self, event: Any) -> None:
            if compiling:  # it may have begun before
                compiling.pop()

    for kind in ("numba:compiler_lock", "numba:compile"):
        event.register(kind, Hears())


def stacks() -> dict[int, list[FrameType]]:
    """What each other thread runs: its frames, the innermost first.

    Not the caller's own: it would hold what was found here, in a cycle, and so the activations of a training step up to
    the next collection, through an evaluation. Frame objects are made while other threads stand still. A collection
    that this sets off may let them go on, and CPython 3.11 then gives an object that has taken the frame's place: no
    collection before the outermost frame is found, and no such.
    """
    found: dict[int, list[FrameType]] = {}
    with _looking:
        collects = gc.isenabled()
        gc.disable()
        try:
            current = sys._current_frames()
            del current[threading.get_ident()]
            for thread, innermost in current.items():
                frame: FrameType | None = innermost
                found[thread] = []
                while isinstance(frame, FrameType):
                    found[thread].append(frame)
                    frame = frame.f_back
        finally:
            if collects:
                gc.enable()
    return found


def is_users(frame: FrameType) -> bool:
    """Whether the code of a frame is the user's own: neither of this program nor of a library, nor written by one.

    PyG writes a file for each class of layers; its name begins with the module's and ends in another way on each rank.
    """
    file = frame.f_code.co_filename
    written = Path(file).stem.startswith(f"{frame.f_globals.get('__name__')}_")
    return not (file.startswith(OTHERS) or "site-packages" in file or written)


def importing(thread: int) -> bool:
    """Whether a thread imports a module: a first step reads much of torch, from a disk that all ranks share.

    Not where the module is the user's own and has begun: it may hold the loop.
    """
    for frame in stacks().get(thread, []):
        if frame.f_code.co_filename.startswith("<frozen importlib."):
            return True
        if is_users(frame):
            return False
    return False


def line_of(thread: int, users: bool = False) -> str:
    """The innermost line that a thread runs, or the user's program's; empty where there is none."""
    for frame in stacks().get(thread, []):
        if not users or is_users(frame):
            return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}"
    return ""
