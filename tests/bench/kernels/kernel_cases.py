"""The graphs of bench_kernels.py, and their transposes."""

import functools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from distgnn import kernels

GRAPHS = {
    "rmat": ("rmat:scale=18,edge_factor=32,feats=0,classes=0", "stored"),
    "dense": ("communities:nodes=60000,communities=60,avg_degree=300,feats=1,mixing=0.5", "both"),
    "communities": ("communities:nodes=500000,communities=2000,avg_degree=50,feats=1,mixing=0.3", "both"),
    "arxiv": ("ogbn-arxiv", "both"),
    "cached": ("rmat:scale=14,edge_factor=98,feats=0,classes=0", "stored"),  # rows fit a level 3 of 32 MiB
}
WIDTHS = (16, 47, 100, 128, 256, 602)


@dataclass(frozen=True, eq=False)
class Case:
    """One graph and its transpose: CSRs by target of (indptr, indices, positions)."""

    name: str
    num_nodes: int
    stored: Any
    transposed: Any

    @functools.cache  # noqa: B019 - a case lives as long as its graphs
    def dgl_graph(self, which: str) -> Any:
        """DGL's graph with the arcs of one of the CSRs ("stored", "transposed"), all formats made."""
        from distgnn.system.other_libraries import import_dgl

        indptr, indices = getattr(self, which)[:2]
        targets = np.repeat(np.arange(self.num_nodes, dtype=np.int32), np.diff(indptr))
        graph = import_dgl().graph((np.ascontiguousarray(indices), targets), num_nodes=self.num_nodes)
        graph = graph.formats(["coo", "csr", "csc"])
        graph.create_formats_()
        return graph


def make_case(name: str, data_root: str | None = None) -> Case:
    """Load a graph and transpose it."""
    from distgnn.datasets import load_graph

    source, arcs = GRAPHS[name]
    graph = load_graph(source, data_root)
    src, dst = graph.edges[:, 0].astype(np.int32), graph.edges[:, 1].astype(np.int32)
    if arcs == "both":
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    stored = kernels.csr_from_edges(src, dst, graph.num_nodes)
    transposed = kernels.transpose_csr(stored[0], stored[1], graph.num_nodes)
    return Case(name, graph.num_nodes, stored, transposed)


def interleaved(functions: Any, repeats: Any, slow_seconds: Any = 1.0) -> Any:
    """Seconds of each call of the named functions, run in turn; the first turn (compilation, page faults) is left out.

    Args: functions that need more than slow_seconds in the first turn run in two more turns only.
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(repeats):
        for name, function in functions.items():
            if turn > 2 and seconds[name][0] > slow_seconds:
                continue
            start = time.perf_counter()
            result = function()
            seconds[name].append(time.perf_counter() - start)
            del result
    return {name: values[1:] for name, values in seconds.items()}
