"""A second process that compiles what a cut needs, from its last step to its first, into the same cache.

numba compiles one kernel at a time in a process, whatever its threads. On a machine that has never cut a graph a helper
starts at the other end of the pipeline, on a graph of 300 vertices; locks keep both from compiling the same kernel
(kernels/runtime/jit.py), and what the helper has made is loaded.

    python -m distgnn.partition.compile_ahead      what the helper runs
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from distgnn.config.threads import num_threads
from distgnn.datasets import load_graph
from distgnn.kernels.runtime import jit
from distgnn.kernels.runtime.threads import set_num_threads
from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.local_graph import build_local
from distgnn.partition.methods import cut_edges
from distgnn.system.processes import die_with_parent

GRAPH = "communities:nodes=300,communities=6,avg_degree=8,feats=4,classes=2,seed=1"


def compile_all() -> None:
    """Compile what `cmr` and the part folders need, last steps first."""
    edge_list = load_graph(GRAPH).edge_list()
    # Any cut will do for the last step.
    dealt = cut_edges(edge_list, 2, "random")
    build_local(PartitionBook(edge_list, dealt), 0)
    cut_edges(edge_list, 2, "random", refine=True)  # moves of edges and flows
    cut_edges(edge_list, 2, "cmr")


@contextlib.contextmanager
def compile_ahead() -> Iterator[None]:
    """Start the helper when the first kernel has to be compiled inside the block; end it with the block."""
    helpers: list[subprocess.Popen] = []

    def start(seconds: float) -> None:
        if not helpers:
            command = [sys.executable, "-m", "distgnn.partition.compile_ahead"]
            helpers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL, preexec_fn=die_with_parent()))

    # No second core to compile on, nothing to compile, or no cache through which the helper's work would arrive.
    if num_threads() == 1 or os.environ.get("NUMBA_DISABLE_JIT") or jit.cache_folder() is None:
        yield
        return
    jit.listeners.append(start)
    try:
        yield
    finally:
        jit.listeners.remove(start)
        for helper in helpers:
            # Nothing is lost: numba writes a file under another name and renames it.
            helper.terminate()
            helper.wait()


if __name__ == "__main__":
    set_num_threads(1)
    compile_all()
