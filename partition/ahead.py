"""The first cut on a machine: a second process compiles what comes last, while this one compiles what comes first.

Compiling is Python's work, so threads would only take turns. Whoever needs a kernel that the other one is at waits for
its lock, then loads it (kernels/runtime/jit.py).
"""

import contextlib
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator

import numpy as np

from distgnn.config import num_threads
from distgnn.kernels.runtime import jit


@contextlib.contextmanager
def compiling_ahead(*, wanted: bool) -> Iterator[None]:
    """A second process from the first kernel on that is not in the cache; it ends with the block, or with this one."""
    started: list[subprocess.Popen[bytes]] = []

    def start(_: float) -> None:
        if not started and jit.cache_folder() is not None:
            words, null = [sys.executable, "-m", __name__], subprocess.DEVNULL
            started.append(subprocess.Popen(words, stdin=subprocess.PIPE, stdout=null, stderr=null))

    wanted = wanted and num_threads() > 1
    if wanted:
        jit.listeners.append(start)
    try:
        yield
    finally:
        if wanted:
            jit.listeners.remove(start)
        for process in started:
            process.kill()
            process.communicate()


def compile_last_steps() -> None:
    """Move the borders of a small cut by flows, choose owners and write the parts, in a process of its own."""
    from distgnn.datasets import GraphData
    from distgnn.partition.cmr.improve import refine_borders
    from distgnn.partition.cmr.levels import Levels
    from distgnn.partition.core.edges import endpoint_degrees
    from distgnn.partition.core.effort import EFFORTS
    from distgnn.partition.core.owners import balanced_owners
    from distgnn.partition.core.shares import part_shares
    from distgnn.partition.core.vertex_cut import VertexCut
    from distgnn.partition.pipeline import write_partition
    from distgnn.partition.sorting.renumber import ordered_edges

    size = 400
    draw = np.random.default_rng(0)
    ends = np.sort(draw.integers(0, size, (2, 4 * size)), axis=0)
    feats, labels = draw.random((size, 4), dtype=np.float32), np.arange(size) % 2
    graph = GraphData.from_arrays(ends, directed=False, feats=feats, labels=labels)
    edge_list, shares = graph.edge_list(), part_shares(2, None)
    degrees = endpoint_degrees(edge_list)
    one = np.zeros(size, dtype=np.int32)
    edges, order, vertices = ordered_edges(edge_list, degrees, one)
    parts = (np.arange(len(order)) * 2 // len(order)).astype(np.int16)
    parts[order] = refine_borders(edges, parts, Levels([one]), degrees[vertices], shares, EFFORTS["fast"])
    cut = VertexCut(2, parts, balanced_owners(edge_list, parts, shares))
    with tempfile.TemporaryDirectory() as folder:
        write_partition(graph, edge_list, cut, f"{folder}/parts")


def _end_with_parent() -> None:
    """Its end of the pipe is closed when it dies, of whatever."""
    os.read(0, 1)
    os._exit(0)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    compile_last_steps()
