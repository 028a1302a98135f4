"""A partition folder under a memory limit: edges and features on disk, only what is known of vertices in memory.

Phases: edges (ends and degrees), sort_0, cluster, sort_1, the passes of assign.py, deal (edges by part), owners, feats,
write.

Shapes: N vertices, M edges, P parts, W words of a part mask, D feature width.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition.cmr.levels import CLUSTERS_PER_PART
from distgnn.partition.core.edges import EdgeArrays
from distgnn.partition.core.local_graph import build_local
from distgnn.partition.core.owners import even_kinds, owners_among
from distgnn.partition.core.sorted_edges import (
    NAMES,
    Numbering,
    SortedEdges,
    number_by_cluster,
    number_by_degree,
    renumber_edges,
    sort_edges,
)
from distgnn.partition.core.vertex_cut import VertexCut, part_dtype
from distgnn.partition.folder.manifest import Clock, describe_graph
from distgnn.partition.folder.writer import MOST_WRITERS, write_part, write_parts
from distgnn.partition.on_disk.assign import assign
from distgnn.partition.on_disk.cluster import cluster_by_edges
from distgnn.partition.on_disk.disk_book import DiskBook, OwnedRows, deal_edges, deal_feats
from distgnn.partition.on_disk.edge_spool import MOST_THREADS, SpooledEdges, spool_edges
from distgnn.partition.on_disk.workspace import MemoryLimit, Workspace, resident

FILLED = 0.9  # of the limit: own memory must stay below
BUFFERS = 400_000_000  # blocks of edges in passing
ARC_BYTES = 64  # of a part that is written


def own_bytes(
    num_nodes: int, num_edges: int, num_parts: int, two_way: bool, table: int | None = None, writers: int = 1
) -> dict[str, Any]:
    """What each phase needs in memory of its own, in bytes, beside the graph and the interpreter.

    Args: table: bytes of the table of counts, where degrees are known; else its bound; writers: parts written at once.
    """
    words = (num_parts + 63) // 64
    # One mask where every copy has both roles, else one for each role.
    masks = 8 * words * (1 if two_way else 2)
    if table is None:
        # A bound: whichever layout a vertex has, it takes at most a byte for each part, and at most 4 for each of its
        # edges' ends, 2 M in all.
        table = 16 * num_nodes + min(num_parts * num_nodes, 8 * num_edges)
    # Of the largest part.
    arcs = 1.03 * num_edges * (2 if two_way else 1) / num_parts
    return {
        "edges": 12 * (MOST_THREADS + 1) * num_nodes,
        "sort": 16 * num_nodes,
        "cluster": 56 * num_nodes,
        "place and refine": table + 24 * num_nodes,
        "deal": (2 * masks + 8) * num_nodes,
        "owners": (masks + 32) * num_nodes,
        # Each writer has a number for every vertex, beside its part.
        "write": int((masks + 60 + 8 * (writers - 1)) * num_nodes + writers * ARC_BYTES * arcs),
    }


def check_fits(needs: dict[str, Any], own: int, limit: int, name: str) -> None:
    """Raise `InputError` with numbers where a phase needs more than the limit leaves."""
    phase = max(needs, key=lambda name: needs[name])
    total = own + BUFFERS + needs[phase]
    if total > FILLED * limit:
        raise InputError(
            f"graph {name!r} cannot be cut within {limit / 1e9:.1f} GB: {phase!r} needs {needs[phase] / 1e9:.1f} GB, "
            f"beside {own / 1e9:.1f} GB for the program and what of the graph is in memory; give "
            f"--memory {total / FILLED / 1e9 + 0.1:.1f}GB or more"
        )


class DiskCut:
    """One run: every method is a phase or more, and leaves its large arrays in the workspace.

    Args: shares: [P]; space: an entered `Workspace`; memory: an entered `MemoryLimit`. measured: of each phase seconds,
        CPU seconds and peaks of memory.
    """

    def __init__(
        self, graph: GraphData, shares: np.ndarray, space: Workspace, memory: MemoryLimit, clock: Clock
    ) -> None:
        self.graph = graph
        self.shares = shares
        self.space = space
        self.memory = memory
        self.clock = clock
        self.num_parts: int = len(shares)
        self.own: int = resident()[1]
        self.measured: dict[str, dict[str, float]] = {}

    def edges(self, direction: str, self_loops: str) -> SpooledEdges:
        with self._phase("edges"):
            return spool_edges(self.graph, direction, self_loops, self.space, self.clock.step)

    def book(self, edge_list: SpooledEdges, capacities: Sequence[float] | None) -> DiskBook:
        """Cut, and who has what. The edge list has no edges any more afterwards, only their number."""
        edges, numbering, number = self._sort(edge_list)
        parts = self.space.empty("parts", len(edges.low), part_dtype(self.num_parts))
        degrees = np.empty(len(number), dtype=np.int32)
        degrees[number] = edge_list.ends
        ends = EdgeArrays(edges.low, edges.high, len(number), edge_list.two_way, edge_list.num_arcs)
        assign(ends, numbering.begins, degrees, self.shares, parts, self.space.empty, self.clock.step, self._phase)
        self.space.drop("members", "counts")
        del degrees, ends, numbering
        with self._phase("deal"):
            dealt, sources, targets = deal_edges(
                edges, parts, number, self.num_parts, edge_list.two_way, self.space.empty, self.clock.step
            )
        del edges, parts
        self.space.drop(*NAMES, "parts")
        with self._phase("owners"):
            owner = owners_among(sources, targets, self.shares)
            even_kinds(sources, targets, owner, self.shares, edge_list.node_kinds)
        given = None if capacities is None else np.array(capacities, dtype=np.float64)
        cut = VertexCut(self.num_parts, np.empty(0, dtype=np.int16), owner, order=number, capacities=given)
        return DiskBook(edge_list, cut, dealt, sources, targets)

    def _sort(self, edge_list: SpooledEdges) -> tuple[SortedEdges, Numbering, np.ndarray]:
        """Edges sorted by cluster; clusters, of vertices numbered by degree; the number [N] of each vertex."""
        empty, step = self.space.empty, self.clock.step
        by_degree = number_by_degree(edge_list.ends)
        with self._phase("sort_0"):
            edges = sort_edges(edge_list, edge_list.ends, by_degree, empty, step)
        edge_list.forget_edges()
        self.space.drop("src", "dst")
        with self._phase("cluster"):
            # Degrees sum to twice the edges.
            cap = 2 * edge_list.num_edges / (CLUSTERS_PER_PART * self.num_parts)
            numbering = number_by_cluster(*cluster_by_edges(edges, -np.sort(-edge_list.ends), cap, step))
        with self._phase("sort_1"):
            edges = renumber_edges(edges, numbering.number, empty, step)
        self.space.drop(*(f"first_{name}" for name in NAMES))
        return edges, numbering, numbering.number[by_degree]

    def write(self, edge_list: SpooledEdges, book: DiskBook, folder: Path) -> list[dict[str, Any]]:
        """All part folders; returns their sections of the manifest."""
        feats = self._deal_feats(book)
        masks, about = self.graph.split_masks(), describe_graph(self.graph, edge_list)

        def write(part_id: int) -> dict[str, Any]:
            # Features were dealt out by owner in one pass: each part then reads its own, in a row.
            graph, span = self.graph, slice(*book.owned_indptr[part_id : part_id + 2])
            if feats is not None:
                rows = OwnedRows(np.sort(book.owned_ids[span]), feats[span])
                graph = dataclasses.replace(graph, feats=rows)
            return write_part(folder, build_local(book, part_id, about), graph, edge_list, masks)

        # As many parts at once as the limit has room for.
        sizes = edge_list.num_nodes, edge_list.num_edges, self.num_parts, edge_list.two_way
        room = FILLED * self.memory.limit - BUFFERS - self.own
        writers = 1 + sum(own_bytes(*sizes, writers=n)["write"] <= room for n in range(2, MOST_WRITERS + 1))
        with self._phase("write", self.num_parts):
            book.prepare()
            return write_parts(self.num_parts, write, self.clock.step, writers)

    def _deal_feats(self, book: DiskBook) -> np.ndarray | None:
        """Features on disk by owner; None where they are in memory, or there are none."""
        feats = self.graph.feats
        if feats is None or sparse.issparse(feats) or not is_mapped(feats):
            return None
        with self._phase("feats"):
            array = self.space.empty("feats", feats.shape, np.float32)
            deal_feats(feats, book.owner, book.num_owned, array, self.clock.step)
        return array

    @contextlib.contextmanager
    def _phase(self, name: str, total: int = 1) -> Iterator[None]:
        self.memory.take_peaks()
        seconds, cpu = time.perf_counter(), time.process_time()
        self.clock.start(name, total)
        yield
        seconds, cpu = time.perf_counter() - seconds, time.process_time() - cpu
        peak, own = self.memory.take_peaks()
        self.measured[name] = {
            "seconds": round(seconds, 3),
            "cpu_seconds": round(cpu, 3),
            "peak_rss_bytes": peak,
            "peak_own_bytes": own,
        }


def is_mapped(array: Any) -> bool:
    """Whether an array is a view of a mapped file."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False
