"""The first cut on a machine: a second process compiles what comes last, while this one compiles what comes first.

Compiling is Python's work, so threads would only take turns. Whoever needs a kernel that the other one is at waits for
its lock, then loads it (kernels/runtime/jit.py).
"""

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from distgnn.config import num_threads
from distgnn.kernels.runtime import jit

LAST_STEPS = "distgnn.partition.last_steps"


@contextlib.contextmanager
def compiling_ahead(*, wanted: bool) -> Iterator[None]:
    """A second process from the first kernel on that is not in the cache; it ends with the block, or with this one."""
    if not wanted or num_threads() == 1:
        yield
        return
    with contextlib.ExitStack() as ends:

        def start(_: float) -> None:
            jit.listeners.remove(start)
            ends.pop_all()
            if jit.cache_folder() is None:
                return
            with contextlib.suppress(OSError):  # no room for it: this process compiles all
                folder = ends.enter_context(tempfile.TemporaryDirectory(prefix="distgnn-"))
                words, null = [sys.executable, "-m", LAST_STEPS, folder], subprocess.DEVNULL
                process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=null, stderr=null)
                ends.callback(process.communicate)
                ends.callback(process.kill)

        jit.listeners.append(start)
        ends.callback(jit.listeners.remove, start)
        yield
