"""A partition folder under a memory limit: edges, features and every finished phase on disk, only vertices in memory.

Phases: edges (ends and degrees), sort_0, cluster, sort_1, the passes of `stream_cut`, deal (edges by part), owners,
feats, write (one for each part). A run that was killed goes on after the last one it finished.

Shapes: N vertices, M edges, P parts, W words of a part mask, D feature width.
"""

from __future__ import annotations

import dataclasses
import shutil
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from distgnn.datasets import GraphData
from distgnn.errors import InputError
from distgnn.partition.core.local_graph import build_local
from distgnn.partition.core.owners import owners_among
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
from distgnn.partition.folder.manifest_file import part_folder
from distgnn.partition.folder.writer import MOST_WRITERS, write_part, write_parts
from distgnn.partition.on_disk.disk_book import DealtEdges, DiskBook, OwnedRows, deal_edges, deal_feats
from distgnn.partition.on_disk.edge_spool import MOST_THREADS, SpooledEdges, spool_edges
from distgnn.partition.on_disk.workspace import MemoryLimit, Workspace, resident
from distgnn.partition.stream.cluster import cluster_by_edges
from distgnn.partition.stream.method import CLUSTERS_PER_PART, PASSES, Assignment

DEALT = ("part_src", "part_dst", "part_row")
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
        "edges": 12 * MOST_THREADS * num_nodes,
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
    """One run: the graph, the settings and the workspace; every method is a phase and leaves its result there.

    Args: graph: `GraphData`; shares: [P]; space: an entered `Workspace`; memory: an entered `MemoryLimit`;
        clock: has `start(phase, total)` and `step(done)`.
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
        self.measured: dict[str, dict[str, Any]] = space.notes("measured")

    def edges(self, direction: str, self_loops: str) -> SpooledEdges:
        self._begin("edges", len(self.graph.edges))
        edge_list = spool_edges(self.graph, direction, self_loops, self.space, self.clock.step)
        self._end("edges")
        return edge_list

    def cut(self, edge_list: SpooledEdges) -> tuple[DealtEdges, np.ndarray, np.ndarray, np.ndarray]:
        """Edges by part; number [N] of each vertex by cluster; masks [N, W] where arcs leave and arrive."""
        if self.space.facts("deal") is None:
            numbering = self._cluster(edge_list)
            edges = self._sort(edge_list)
            parts = self._assign(edge_list, edges, numbering)
            self._deal(edge_list, edges, parts, numbering.number)
        edge_list.forget_edges()
        facts = self.space.facts("deal")
        begins = np.array(facts["begins"] if facts else [])
        src, dst, edge_ids = (self.space.load(name) for name in DEALT)
        dealt = DealtEdges(src, dst, edge_ids, begins)
        sources = np.array(self.space.load("sources"))
        targets = sources if edge_list.two_way else np.array(self.space.load("targets"))
        return dealt, np.array(self.space.load("number")), sources, targets

    def _first_sort(self, edge_list: SpooledEdges) -> SortedEdges:
        names = tuple(f"first_{name}" for name in NAMES)
        if self.space.facts("sort_0") is None:
            self._begin("sort_0", 1)
            # A copy in memory: they are looked up in no order.
            degrees = np.array(edge_list.ends)
            edges = sort_edges(edge_list, degrees, number_by_degree(degrees), self.space.empty, self.clock.step)
            self._finish("sort_0", {}, names, drop=("src", "dst"))
            return edges
        return SortedEdges(*(self.space.load(name) for name in names))

    def _cluster(self, edge_list: SpooledEdges) -> Numbering:
        if self.space.facts("cluster") is None:
            edges = self._first_sort(edge_list)
            self._begin("cluster", 1)
            # As in cmr_stream: degrees sum to twice the edges.
            cap = 2 * edge_list.num_edges / (CLUSTERS_PER_PART * self.num_parts)
            labels, volumes = cluster_by_edges(edges, -np.sort(-edge_list.ends), cap, self.clock.step)
            number, begins = number_by_cluster(labels, volumes)
            del labels, volumes
            # Two numberings: from the numbers by degree, for the second sort; from the numbers of the graph, for all
            # that follows.
            self.space.empty("second", len(number), np.int32)[:] = number
            self.space.empty("number", len(number), np.int32)[:] = number[number_by_degree(edge_list.ends)]
            self.space.empty("begins", len(begins), np.int64)[:] = begins
            self._finish("cluster", {}, ("number", "second", "begins"))
        return Numbering(np.array(self.space.load("number")), np.array(self.space.load("begins")))

    def _sort(self, edge_list: SpooledEdges) -> SortedEdges:
        if self.space.facts("sort_1") is None:
            edges = self._first_sort(edge_list)
            self._begin("sort_1", 1)
            edges = renumber_edges(edges, np.array(self.space.load("second")), self.space.empty, self.clock.step)
            self._finish("sort_1", {}, NAMES, drop=("second", *(f"first_{name}" for name in NAMES)))
            return edges
        return SortedEdges(*(self.space.load(name) for name in NAMES))

    def _assign(self, edge_list: SpooledEdges, edges: SortedEdges, numbering: Numbering) -> np.ndarray:
        """Parts of sorted edges. A pass works on a copy of them, so that one that was killed has not begun."""
        names = [f"parts_{name}" for name in PASSES]
        # Passes are finished in order: an earlier run has done the first ones.
        done = sum(self.space.facts(name) is not None for name in PASSES)
        work = None
        for number in range(done, len(PASSES)):
            self._begin(PASSES[number], len(edges.low))
            parts = self.space.empty(names[number], len(edges.low), part_dtype(self.num_parts))
            if number:
                parts[:] = self.space.load(names[number - 1])
            if work is None:
                degrees = np.empty(len(numbering.number), dtype=np.int32)
                degrees[numbering.number] = edge_list.ends
                two_way, num_arcs = edge_list.two_way, edge_list.num_arcs
                work = Assignment(edges, parts, degrees, two_way, num_arcs, self.shares)
                del degrees
            work.parts = parts
            if number == 0:
                work.place(numbering.begins, self.space.empty, self.clock.step)
                self._finish(PASSES[number], {}, (names[number],), drop=("members", "counts"))
                continue
            # A full count of the table stays full when edges leave, a fresh count of the same edges may not be: the
            # places of full counts are kept for the next pass.
            full = self.space.load(f"full_{number - 1}") if number > 1 else ()
            work.refine(number - 1, self.clock.step, full)
            full = work.saturated_counts()
            self.space.empty(f"full_{number}", len(full), np.int64)[:] = full
            drop = (*names[:number], f"full_{number - 1}")
            self._finish(PASSES[number], {}, (names[number], f"full_{number}"), drop=drop)
        return self.space.load(names[-1])

    def _deal(self, edge_list: SpooledEdges, edges: SortedEdges, parts: np.ndarray, number: np.ndarray) -> None:
        self._begin("deal", len(parts))
        two_way = edge_list.two_way
        dealt, sources, targets = deal_edges(
            edges, parts, number, self.num_parts, two_way, self.space.empty, self.clock.step
        )
        names = ("sources",) if two_way else ("sources", "targets")
        for name, mask in zip(names, (sources, targets), strict=False):
            self.space.empty(name, mask.shape, np.uint64)[:] = mask
        last, full = f"parts_{PASSES[-1]}", f"full_{len(PASSES) - 1}"
        self._finish("deal", {"begins": dealt.begins.tolist()}, (*DEALT, *names), drop=(*NAMES, last, full, "begins"))

    def book(self, edge_list: SpooledEdges, capacities: Sequence[float] | None) -> DiskBook:
        """Cut, and who has what."""
        dealt, number, sources, targets = self.cut(edge_list)
        if self.space.facts("owners") is None:
            self._begin("owners", 1)
            self.space.empty("owner", len(sources), np.int32)[:] = owners_among(sources, targets, self.shares)
            self._finish("owners", {}, ("owner",))
        owner = np.array(self.space.load("owner"))
        given = None if capacities is None else np.array(capacities, dtype=np.float64)
        cut = VertexCut(self.num_parts, np.empty(0, dtype=np.int16), owner, order=number, capacities=given)
        return DiskBook(edge_list, cut, dealt, sources, targets)

    def write(self, edge_list: SpooledEdges, book: DiskBook) -> list[dict[str, Any]]:
        """All part folders, in `parts` of the workspace; returns their sections of the manifest."""
        feats = self._deal_feats(book)
        masks, about = self.graph.split_masks(), describe_graph(self.graph, edge_list)
        folder = self.space.folder / "parts"
        folder.mkdir(exist_ok=True)
        self._begin("write", self.num_parts)
        book.prepare()
        lock = threading.Lock()

        def write(part_id: int) -> dict:
            section, place = self.space.facts(f"part_{part_id}"), part_folder(folder, part_id)
            if section is None or not place.is_dir():  # one that was on its way to its place is written again
                # A part without its record was not whole when the run was killed.
                shutil.rmtree(place, ignore_errors=True)
                # Features were dealt out by owner in one pass: each part then reads its own, in a row.
                graph, span = self.graph, slice(*book.owned_indptr[part_id : part_id + 2])
                if feats is not None:
                    rows = OwnedRows(np.sort(book.owned_ids[span]), feats[span])
                    graph = dataclasses.replace(graph, feats=rows)
                section = write_part(folder, build_local(book, part_id, about), graph, edge_list, masks)
                # Records are numbered.
                with lock:
                    self.space.finish(f"part_{part_id}", section)
            return section

        # As many parts at once as the limit has room for.
        sizes = edge_list.num_nodes, edge_list.num_edges, self.num_parts, edge_list.two_way
        room = FILLED * self.memory.limit - BUFFERS - self.own
        writers = 1 + sum(own_bytes(*sizes, writers=n)["write"] <= room for n in range(2, MOST_WRITERS + 1))
        sections = write_parts(self.num_parts, write, self.clock.step, writers)
        self._end("write")
        return sections

    def _deal_feats(self, book: DiskBook) -> np.ndarray | None:
        """Features on disk by owner; None where they are in memory, or there are none."""
        feats = self.graph.feats
        if feats is None or sparse.issparse(feats) or not is_mapped(feats):
            return None
        if self.space.facts("feats") is None:
            self._begin("feats", len(feats))
            array = self.space.empty("feats", feats.shape, np.float32)
            deal_feats(feats, book.owner, book.num_owned, array, self.clock.step)
            self._finish("feats", {}, ("feats",))
        return self.space.load("feats")

    def _begin(self, phase: str, total: int) -> None:
        self.memory.take_peaks()
        self._began = time.perf_counter(), time.process_time()
        self.clock.start(phase, total)

    def _finish(self, phase: str, facts: dict, arrays: tuple[str, ...], drop: tuple[str, ...] = ()) -> None:
        self._end(phase)
        self.space.finish(phase, facts, arrays, drop)

    def _end(self, phase: str) -> None:
        peak, own = self.memory.take_peaks()
        seconds, cpu = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        # A phase that was stopped and gone on with adds up.
        old = self.measured.get(phase, {"seconds": 0, "cpu_seconds": 0, "peak_rss_bytes": 0, "peak_own_bytes": 0})
        self.measured[phase] = {
            "seconds": round(old["seconds"] + seconds, 3),
            "cpu_seconds": round(old["cpu_seconds"] + cpu, 3),
            "peak_rss_bytes": max(old["peak_rss_bytes"], peak),
            "peak_own_bytes": max(old["peak_own_bytes"], own),
        }
        self.space.note("measured", self.measured)


def is_mapped(array: Any) -> bool:
    """Whether an array is a view of a mapped file."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False
