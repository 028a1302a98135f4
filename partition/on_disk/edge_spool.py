"""The edges of a graph as fixed-width arrays on disk, with degrees, in one pass; duplicates by buckets.

The same edges, in the same order, as `GraphData.edge_list` makes in memory.

Shapes: N vertices, E edges of the input, M edges of the edge list.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import uint64

from distgnn.datasets import GraphData
from distgnn.datasets.edge_list import EdgeList, check_choices, node_kinds
from distgnn.datasets.pairs import repeated_edges
from distgnn.errors import InputError
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.part_masks import AHEAD, WORD, mix
from distgnn.partition.core.sorted_edges import Step
from distgnn.partition.on_disk.workspace import Workspace

BLOCK_EDGES = 1 << 22
BUCKET_EDGES = 1 << 22


class SpooledEdges(EdgeList):
    """An edge list on disk, with the degrees of its vertices.

    Args: counts: int32 [N, 3], edges at each vertex (a self-loop twice: `ends`), those that leave it, self-loops.
    """

    def __init__(self, *args: Any, counts: np.ndarray, **fields: Any) -> None:
        super().__init__(*args, **fields)
        self.ends, self._outs, self._loops = (np.ascontiguousarray(column) for column in counts.T)

    @property
    def num_self_loops(self) -> int:
        """Edges that are self-loops."""
        return int(self._loops.sum(dtype=np.int64))

    def forget_edges(self) -> None:
        """Let go of the edges: only their number is known from now on."""
        self.src = self.dst = np.broadcast_to(np.int32(0), len(self.src))

    def in_degrees(self) -> np.ndarray:
        """[N] int32: arcs that arrive at each vertex."""
        return self.ends - (self._loops if self.two_way else self._outs)

    def out_degrees(self) -> np.ndarray:
        """[N] int32: arcs that leave each vertex."""
        return self.ends - self._loops if self.two_way else self._outs


def spool_edges(graph: GraphData, direction: str, self_loops: str, space: Workspace, step: Step) -> SpooledEdges:
    """Write the edge list of a graph to a workspace; `step` is told of progress, in edges of the input.

    Notes: memory 24 bytes for each vertex; disk 8 for each edge, and 12 while edges are merged.
    """
    check_choices(direction, self_loops, graph.edge_types is not None)
    if graph.num_nodes >= 2**31:
        raise InputError(f"{graph.num_nodes} vertices are more than can be cut on disk (2**31 - 1)")
    size, num_nodes = len(graph.edges), int(graph.num_nodes)
    merge = direction == "both" and graph.directed and graph.edge_types is None
    again = _repeated(graph, space, step) if merge else None
    merged = 0 if again is None else int(np.count_nonzero(again))
    if merged and (graph.edge_weight is not None or graph.edge_feats is not None):
        carried = "edge features" if graph.edge_feats is not None else "edge weights"
        raise InputError(f"direction 'both' would merge {merged} parallel or reciprocal rows that carry {carried}")
    # Room for all that may come.
    extra = num_nodes if self_loops == "add" else 0
    names = ["src", "dst", *(["edge_weight"] if graph.edge_weight is not None else [])]
    # Only then is an edge not the one with the same number in the input.
    if merged or self_loops != "keep":
        names.append("edge_ids")
    dtypes = {"edge_weight": np.float32, "edge_ids": np.int64}
    columns = {name: space.empty(name, size + extra, dtypes.get(name, np.int32)) for name in names}
    counts = np.zeros((num_nodes, 3), dtype=np.int32)
    # An undirected edge is the same in both directions.
    swap = direction == "reversed" and graph.directed
    place = removed = 0
    for begin in range(0, size, BLOCK_EDGES):
        block_ids = slice(begin, min(begin + BLOCK_EDGES, size))
        src, dst = graph.edges[block_ids, 1 if swap else 0], graph.edges[block_ids, 0 if swap else 1]
        kept = None if again is None else ~again[block_ids]
        if self_loops != "keep":
            # "add" takes existing loops away too, so that every vertex has exactly one.
            loops = src == dst
            removed += int(np.count_nonzero(loops if kept is None else loops & kept))
            kept = ~loops if kept is None else kept & ~loops
        block = {"src": src, "dst": dst, "edge_ids": np.arange(block_ids.start, block_ids.stop)}
        if graph.edge_weight is not None:
            block["edge_weight"] = graph.edge_weight[block_ids]
        place = _append(columns, block, kept, place, counts)
        step(block_ids.stop, size)
    if extra:
        ids = np.arange(num_nodes)
        block = {"src": ids, "dst": ids, "edge_ids": np.full(num_nodes, -1), "edge_weight": np.ones(num_nodes)}
        place = _append(columns, block, None, place, counts)
    report = {"input_rows": size, "merged_rows": merged, "removed_self_loops": removed, "added_self_loops": extra}
    arrays = {name: column[:place] for name, column in columns.items()}
    space.drop("again", "keys", "rows")
    two_way = direction == "both" or not graph.directed
    return SpooledEdges(
        graph.num_nodes,
        two_way=two_way,
        direction=direction,
        self_loops=self_loops,
        report=report,
        counts=counts,
        node_kinds=node_kinds(graph),
        **arrays,
    )


def _append(columns: dict, block: dict, kept: np.ndarray | None, place: int, counts: np.ndarray) -> int:
    """Put edges after those that are there; returns how many there are then."""
    # a copy is made only where something is left out
    if kept is not None and not kept.all():
        block = {name: values[kept] for name, values in block.items()}
    end = place + len(block["src"])
    for name, column in columns.items():
        column[place:end] = block[name]
    _count(columns["src"][place:end], columns["dst"][place:end], counts)
    return end


@kernel(counted=False)
def _count(src, dst, counts):
    """counts[v] += edges at v, edges that leave v, self-loops: side by side, since they are in no order."""
    for e in range(src.shape[0]):
        soon = min(e + AHEAD, src.shape[0] - 1)
        prefetch(WORD, counts, 3 * np.int64(src[soon]))
        prefetch(WORD, counts, 3 * np.int64(dst[soon]))
        counts[src[e], 0] += 1
        counts[dst[e], 0] += 1
        counts[src[e], 1] += 1
        counts[src[e], 2] += src[e] == dst[e]


def _repeated(graph: GraphData, space: Workspace, step: Step) -> np.ndarray:
    """bool [E] on disk: edges whose pair of ends, in either order, some earlier edge has.

    Pairs are dealt into buckets by a hash, with their edges; each bucket is looked at by itself.
    """
    size, num_nodes = len(graph.edges), int(graph.num_nodes)
    buckets = max(1, -(-size // BUCKET_EDGES))
    places = np.zeros(buckets + 1, dtype=np.int64)
    keys = space.empty("keys", size, np.int64)
    edge_ids = space.empty("rows", size, np.uint32 if size < 2**32 else np.int64)
    # First every bucket is counted, then pairs are written where the counts say: equal pairs are in one bucket.
    for write in (False, True):
        for begin in range(0, size, BLOCK_EDGES):
            block = graph.edges[begin : begin + BLOCK_EDGES]
            _deal_keys(block[:, 0], block[:, 1], begin, num_nodes, write, places, keys, edge_ids)
            step((begin + len(block)) // 2, size) if not write else None
        if not write:
            # places[b + 1] was the count of bucket b. Now places[b] is where the bucket begins, and rises as it is
            # filled.
            places = np.cumsum(places)
            starts = places.copy()
    again = space.empty("again", size, np.bool_)
    for bucket in range(buckets):
        begin, end = starts[bucket], starts[bucket + 1]
        again[edge_ids[begin:end][repeated_edges(keys[begin:end])]] = True
    return again


@kernel
def _deal_keys(src, dst, first_edge, num_nodes, write, places, keys, edge_ids):
    """Count the pairs of each bucket into places[bucket + 1], or write them from places[bucket] on."""
    buckets = uint64(places.shape[0] - 1)
    for e in range(src.shape[0]):
        # Without direction: u -> v and v -> u have the same key.
        u, v = np.int64(src[e]), np.int64(dst[e])
        key = min(u, v) * num_nodes + max(u, v)  # below 2**62, because vertices are fewer than 2**31
        bucket = np.int64(mix(uint64(key)) % buckets)
        if write:
            keys[places[bucket]] = key
            edge_ids[places[bucket]] = first_edge + e
            places[bucket] += 1
        else:
            places[bucket + 1] += 1
