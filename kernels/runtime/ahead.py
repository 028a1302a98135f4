"""The first run on a machine: a second process compiles what comes last, while this one compiles what comes first.

Compiling is Python's work, so threads would only take turns. Whoever needs a kernel that the other one is at waits for
its lock, then loads it (kernels/runtime/jit.py).
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

from distgnn.config import num_threads
from distgnn.kernels.runtime import jit
from distgnn.system.free_memory import available_bytes

ROOM = 3_000_000_000  # bytes free, for a process that takes some 300 MB beside one that grows


@contextlib.contextmanager
def compiling_ahead(words: list[str]) -> Iterator[None]:
    """A second process from the first kernel on that is not in the cache; it ends with the block, or with this one.

    Args: words: its module, and arguments behind the folder for its files; none: there is no such process. It has one
        thread, and ends when its standard input does.
    """
    if not words or num_threads() == 1:
        yield
        return
    with contextlib.ExitStack() as ends:

        def start(_: float) -> None:
            jit.listeners.remove(start)
            ends.pop_all()
            cache = jit.cache_folder()
            if cache is None or not os.access(cache, os.W_OK) or available_bytes() < ROOM:
                return
            with contextlib.suppress(OSError):  # no room for it: this process compiles all
                folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="distgnn-"))
                program, null = [sys.executable, "-m", words[0], folder, *words[1:]], subprocess.DEVNULL
                alone = os.environ | {"DISTGNN_NUM_THREADS": "1"}
                process = subprocess.Popen(program, env=alone, stdin=subprocess.PIPE, stdout=null, stderr=null)
                ends.callback(process.communicate)
                ends.callback(process.kill)

        jit.listeners.append(start)
        ends.callback(jit.listeners.remove, start)
        yield


def end_with_parent(folder: str) -> None:
    """In the second process: its end of the pipe is closed when the first one dies, of whatever."""
    threading.Thread(target=_wait_for_end, args=(folder,), daemon=True).start()


def _wait_for_end(folder: str) -> None:
    os.read(0, 1)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(0)
