"""Cutting within a memory limit: what fits, and the phases, with only what is known of vertices in memory.

Edges and features are on disk. Phases: edges (ends and degrees), sort_0, cluster, sort_1, place, refine_0 and others,
deal (edges by part), owners, feats, write.

Shapes: N vertices, E edges of the input, M of the edge list, P parts, W words of a part mask, D feature width.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from distgnn.config.cut import CutConfig
from distgnn.datasets import GraphData
from distgnn.datasets.registry import loading_bytes
from distgnn.errors import InputError
from distgnn.partition.cmr.levels import CLUSTERS_PER_PART
from distgnn.partition.core.edges import EdgeArrays
from distgnn.partition.core.local_graph import build_local
from distgnn.partition.core.owners import even_kinds, owners_among
from distgnn.partition.core.sorted_edges import (
    NAMES,
    SortedEdges,
    number_by_cluster,
    number_by_degree,
    renumber_edges,
    sort_edges,
)
from distgnn.partition.core.vertex_cut import VertexCut, part_dtype, part_shares
from distgnn.partition.folder.manifest import Clock, check_size, describe_cut, describe_graph
from distgnn.partition.folder.writer import MOST_WRITERS, num_writers, write_part, write_parts
from distgnn.partition.on_disk.cluster import assign, cluster_by_edges
from distgnn.partition.on_disk.disk_book import DiskBook, OwnedRows, deal_edges, deal_feats
from distgnn.partition.on_disk.edge_spool import SpooledEdges, spool_edges
from distgnn.partition.on_disk.workspace import MemoryLimit, Workspace, resident
from distgnn.partition.refinement.replica_table import table_bytes

FILLED = 0.9  # of the limit: own memory must stay below
BUFFERS = 400_000_000  # blocks of edges in passing
ARC_BYTES = 64  # of a part that is written

# Generous, edge list included.
EDGE_BYTES = {"cmr": 80, "libra": 40, "metis": 120, "kahypar": 400, "random": 40}
REFINE_EDGE_BYTES = 60
NODE_BYTES = 160


def in_memory_bytes(graph: GraphData, num_parts: int, config: CutConfig) -> int:
    """What a cut, and writing its parts, needs beside the graph if all arrays are in memory: a generous estimate."""
    refined, both = config.refined, config.direction == "both"
    edge = max(EDGE_BYTES[config.method], REFINE_EDGE_BYTES if refined else 0)
    merges = 24 if both and graph.directed else 0
    arcs = len(graph.edges) * (1 if graph.directed and not both else 2)
    edges = len(graph.edges) * (edge + merges)
    vertices = graph.num_nodes * (NODE_BYTES + num_parts // 4)
    return edges + vertices + int(ARC_BYTES * arcs * num_writers(num_parts) / num_parts)


def check_loading(source: str | Path, data_root: str | Path | None, limit: int) -> None:
    """Raise `InputError` where what loading alone takes in memory is known to be beyond the limit."""
    need, own = loading_bytes(source, data_root), resident()[1]
    if need and need + own > limit:
        raise InputError(
            f"loading {source} takes about {need / 1e9:.1f} GB beside the {own / 1e9:.1f} GB of this process, the "
            f"limit is {limit / 1e9:.1f} GB: text and generated graphs are in memory; save it as a graph folder "
            "(edges.npy, feats.npy), which is mapped"
        )


def check_normalizing(graph: GraphData, limit: int) -> None:
    """Raise `InputError` where normalised features, which are in memory, are beyond the limit."""
    need = 4 * graph.num_nodes * graph.num_feats
    if not sparse.issparse(graph.feats) and need + resident()[1] > limit:
        raise InputError(
            f"normalised features of graph {graph.name!r} take {need / 1e9:.1f} GB in memory, the limit is "
            f"{limit / 1e9:.1f} GB: normalise feats.npy beforehand"
        )


def works_on_disk(
    graph: GraphData, num_parts: int, config: CutConfig, limit: int, say: Callable[[str], None] | None = None
) -> bool:
    """Whether the cut is to be made on disk: `cmr` where it does not fit."""
    total = in_memory_bytes(graph, num_parts, config) + resident()[1]
    if total <= FILLED * limit:
        return False
    about = f"needs about {total / FILLED / 1e9:.1f} GB, the limit is {limit / 1e9:.1f} GB"
    if config.method != "cmr" or config.groups > 1:
        raise InputError(
            f"{config.method} of graph {graph.name!r} into {num_parts} parts {about}; cmr in one level works on disk"
        )
    if say is not None:
        say(f"cmr {about}: it works on disk, with more copies")
        if config.effort != "normal":
            say(f"effort {config.effort} makes no difference on disk: leave memory out, or raise it")
    return True


def partition_on_disk(
    graph: GraphData, num_parts: int, config: CutConfig, folder: Path, memory: MemoryLimit, clock: Clock
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Cut a loaded graph with all large arrays on disk and write the parts.

    Args: folder: an empty one to be filled, and for the work; memory: entered.
    Returns: what the manifest says of the cut, and its sections of the parts.
    """
    own, two_way = resident()[1], config.direction == "both" or not graph.directed
    # Before anything is written, with what is known by now; again below, when degrees are known.
    needs = own_bytes(graph.num_nodes, len(graph.edges), num_parts, two_way, table=0)
    check_fits(needs, own, memory.limit, graph.name)
    with Workspace(folder / "work") as space:
        clock.start("edges", 1)
        edge_list = spool_edges(graph, config.direction, config.self_loops, space, clock.step)
        check_size(edge_list, num_parts, graph.name)
        sizes = graph.num_nodes, edge_list.num_edges, num_parts, two_way
        check_fits(own_bytes(*sizes, table_bytes(edge_list.ends, num_parts)), own, memory.limit, graph.name)
        book = _cut(edge_list, num_parts, config, space, clock)
        # As many parts at once as the limit has room for.
        room = FILLED * memory.limit - BUFFERS - own
        writers = 1 + sum(own_bytes(*sizes, writers=n)["write"] <= room for n in range(2, MOST_WRITERS + 1))
        parts = _write(graph, edge_list, book, folder, writers, space, clock)
        seconds = clock.seconds()
        manifest = describe_cut(graph, edge_list, book, describe_graph(graph, edge_list))
    times = {"seconds": round(sum(seconds.values()), 3), "phase_seconds": seconds}
    return manifest | times | {"memory_limit_bytes": memory.limit}, parts


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
        "edges": 24 * num_nodes,
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


def _cut(edge_list: SpooledEdges, num_parts: int, config: CutConfig, space: Workspace, clock: Clock) -> DiskBook:
    """Who has what. The edge list has no edges any more afterwards, only their number."""
    shares, two_way = part_shares(num_parts, config.capacities), edge_list.two_way
    edges, begins, number = _sort(edge_list, num_parts, space, clock)
    parts = space.empty("parts", len(edges.low), part_dtype(num_parts))
    degrees = np.empty(len(number), dtype=np.int32)
    degrees[number] = edge_list.ends
    ends = EdgeArrays(edges.low, edges.high, len(number), two_way, edge_list.num_arcs)
    assign(ends, begins, degrees, shares, parts, space.empty, clock)
    space.drop("members", "counts")
    del degrees, ends
    clock.start("deal", 1)
    dealt, sources, targets = deal_edges(edges, parts, number, num_parts, two_way, space.empty, clock.step)
    del edges, parts
    space.drop(*NAMES, "parts")
    clock.start("owners", 1)
    owner = owners_among(sources, targets, shares)
    even_kinds(sources, targets, owner, shares, edge_list.node_kinds)
    given = None if config.capacities is None else np.array(config.capacities, dtype=np.float64)
    cut = VertexCut(num_parts, np.empty(0, dtype=np.int16), owner, order=number, capacities=given)
    return DiskBook(edge_list, cut, dealt, sources, targets)


def _sort(
    edge_list: SpooledEdges, num_parts: int, space: Workspace, clock: Clock
) -> tuple[SortedEdges, np.ndarray, np.ndarray]:
    """Edges sorted by cluster; the first vertex of each cluster [K + 1]; the new number [N] of each vertex."""
    by_degree = number_by_degree(edge_list.ends)
    clock.start("sort_0", 1)
    edges = sort_edges(edge_list, edge_list.ends, by_degree, space.empty, clock.step)
    edge_list.forget_edges()
    space.drop("src", "dst")
    clock.start("cluster", 1)
    # Degrees sum to twice the edges.
    cap = 2 * edge_list.num_edges / (CLUSTERS_PER_PART * num_parts)
    number, begins = number_by_cluster(*cluster_by_edges(edges, -np.sort(-edge_list.ends), cap, clock.step))
    clock.start("sort_1", 1)
    edges = renumber_edges(edges, number, space.empty, clock.step)
    space.drop(*(f"first_{name}" for name in NAMES))
    return edges, begins, number[by_degree]


def _write(
    graph: GraphData,
    edge_list: SpooledEdges,
    book: DiskBook,
    folder: Path,
    writers: int,
    space: Workspace,
    clock: Clock,
) -> list[dict[str, Any]]:
    """All part folders; returns their sections of the manifest."""
    masks, about, feats = graph.split_masks(), describe_graph(graph, edge_list), None
    if is_mapped(graph.feats):
        # Dealt out by owner in one pass: each part then reads its own, in a row.
        clock.start("feats", 1)
        feats = space.empty("feats", graph.feats.shape, np.float32)
        deal_feats(graph.feats, book.owner, book.num_owned, feats, clock.step)

    def write(part_id: int) -> dict[str, Any]:
        part_graph, span = graph, slice(*book.owned_indptr[part_id : part_id + 2])
        if feats is not None:
            rows = OwnedRows(np.sort(book.owned_ids[span]), feats[span])
            part_graph = dataclasses.replace(graph, feats=rows)
        return write_part(folder, build_local(book, part_id, about), part_graph, edge_list, masks)

    clock.start("write", book.num_parts)
    book.prepare()
    return write_parts(book.num_parts, write, clock.step, writers)


def is_mapped(array: Any) -> bool:
    """Whether an array is a view of a mapped file."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False
