"""DiskBook: a `PartitionBook` over edges that lie on disk, dealt out by part.

Shapes: N vertices, M edges, P parts, W words of a part mask.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.part_masks import AHEAD, WORD, empty_mask, set_bit
from distgnn.partition.core.sorted_edges import Empty, SortedEdges, Step
from distgnn.partition.core.vertex_cut import VertexCut
from distgnn.partition.on_disk.edge_spool import SpooledEdges

PIECE = 1 << 23
BLOCK_BYTES = 1 << 26


class DealtEdges(NamedTuple):
    """src, dst: int32 [M], edge_ids [M], all by part; begins: int64 [P + 1], where each part begins."""

    src: np.ndarray
    dst: np.ndarray
    edge_ids: np.ndarray
    begins: np.ndarray


def deal_edges(
    edges: SortedEdges, parts: np.ndarray, number: np.ndarray, num_parts: int, two_way: bool, empty: Empty, step: Step
) -> tuple[DealtEdges, np.ndarray, np.ndarray]:
    """Deal sorted edges out to their parts, under the old numbers of vertices.

    Args: parts: [M]; number: [N], new number of each vertex; empty: `empty(name, size, dtype)` makes an array.
    Returns: DealtEdges; masks uint64 [N, W] of the parts where arcs leave from and arrive at each vertex (one and the
        same array if edges are two-way).
    """
    size = len(parts)
    # In pieces: the mapped arrays pass through memory once, and progress is reported.
    pieces = [slice(begin, min(begin + PIECE, size)) for begin in range(0, size, PIECE)]
    counts = np.zeros(num_parts, dtype=np.int64)
    for piece in pieces:
        counts += np.bincount(parts[piece], minlength=num_parts)
    begins = np.concatenate([[0], np.cumsum(counts)])
    places = begins[:-1].copy()  # of the next edge of each part
    dealt = DealtEdges(
        empty("part_src", size, np.int32),
        empty("part_dst", size, np.int32),
        empty("part_row", size, np.int32 if size < 2**31 else np.int64),
        begins,
    )
    vertices = np.empty(len(number), dtype=np.int32)
    vertices[number] = np.arange(len(number), dtype=np.int32)
    sources = empty_mask(len(number), num_parts)
    targets = sources if two_way else np.zeros_like(sources)
    for piece in pieces:
        some = SortedEdges(*(column[piece] for column in edges))
        _deal(some, parts[piece], vertices, places, dealt, sources, targets)
        step(piece.stop, size)
    # Masks were marked under the new numbers, in which neighbours in the sorted edges are neighbours in memory; the
    # book needs the old ones.
    sources = sources[number]
    return dealt, sources, sources if two_way else targets[number]


# The ends are looked up in no order, so what is known of them is asked for `AHEAD` edges earlier.
@kernel(counted=False)
def _deal(edges, parts, vertices, places, dealt, sources, targets):
    words = np.int64(sources.shape[1])
    for e in range(parts.shape[0]):
        soon = edges.high[min(e + AHEAD, parts.shape[0] - 1)]
        prefetch(WORD, vertices, soon)
        prefetch(WORD, sources, words * np.int64(soon))
        prefetch(WORD, targets, words * np.int64(soon))
        p = np.int64(parts[e])
        u, v = edges.low[e], edges.high[e]
        if uint64(edges.tag[e]) & uint64(1):  # the lower end is the target
            u, v = v, u
        place = places[p]
        places[p] += 1
        dealt.src[place] = vertices[u]
        dealt.dst[place] = vertices[v]
        dealt.edge_ids[place] = np.int64(uint64(edges.tag[e]) >> uint64(1))
        set_bit(sources, u, p)
        set_bit(targets, v, p)


class DiskBook(PartitionBook):
    """Who has what, from edges dealt out by part and the masks of vertices.

    Args: edge_list: `SpooledEdges`; cut: a `VertexCut` without `edge_part`; dealt, sources, targets: of `deal_edges`.
    """

    edge_list: SpooledEdges

    def __init__(
        self, edge_list: SpooledEdges, cut: VertexCut, dealt: DealtEdges, sources: np.ndarray, targets: np.ndarray
    ) -> None:
        self.edge_list = edge_list
        self.cut = cut
        self._dealt = dealt
        self.source_mask, self.target_mask = sources, targets
        # The masks are known already: nothing reads all edges once more.
        self._derive()
        self.num_arcs = np.diff(dealt.begins)
        if edge_list.two_way:
            # Every edge is two arcs in its part, but a self-loop one.
            loops = [np.count_nonzero(np.equal(*self._columns(p)[:2])) for p in range(cut.num_parts)]
            self.num_arcs: np.ndarray = 2 * self.num_arcs - np.array(loops, dtype=np.int64)

    def prepare(self) -> None:
        _ = self.in_degrees, self.out_degrees

    def _columns(self, part_id: int) -> list[np.ndarray]:
        span = slice(*self._dealt.begins[part_id : part_id + 2])
        return [column[span] for column in self._dealt[:3]]

    def arcs(self, part_id: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        src, dst, edge_ids = self._columns(part_id)
        # Dealt in the order of the sort: a part lists its arcs by edge, as in memory, so that its files have the same
        # bytes.
        order = np.argsort(edge_ids)
        src, dst, edge_ids = src[order], dst[order], edge_ids[order].astype(np.int64)
        if not self.edge_list.two_way:
            return src, dst, edge_ids
        # A self-loop has no reverse arc.
        back = np.flatnonzero(src != dst)
        ids = np.concatenate([edge_ids, edge_ids[back] + self.edge_list.num_edges])
        return np.concatenate([src, dst[back]]), np.concatenate([dst, src[back]]), ids


class OwnedRows:
    """Rows [O, D] of a part in the order of ascending ids; indexed by global ids."""

    def __init__(self, ids: np.ndarray, rows: np.ndarray) -> None:
        self._ids, self._rows = ids, rows
        self.shape: tuple[int, ...] = rows.shape
        self.dtype: np.dtype = rows.dtype

    def __getitem__(self, ids: np.ndarray) -> np.ndarray:
        # Ids ascend, and only ids of this part are asked for: where an id stands is where its row lies.
        return self._rows[np.searchsorted(self._ids, ids)]


def deal_feats(feats: Any, owner: np.ndarray, num_owned: np.ndarray, array: np.ndarray, step: Step) -> None:
    """Write the rows of each part one after the other into `array` [N, D], in the order of ascending ids."""
    places = np.concatenate([[0], np.cumsum(num_owned)])[:-1]
    block = max(1, BLOCK_BYTES // max(1, feats.shape[1] * feats.dtype.itemsize))
    # One pass from front to back: reading the rows of each part by id would read the file once for each part.
    for begin in range(0, len(owner), block):
        rows = np.asarray(feats[begin : begin + block], dtype=array.dtype)
        parts = owner[begin : begin + block]
        # Stable: inside a part rows stay in the order of ids. Of 16 bits numpy sorts by digits, in a fifth of the time.
        order = np.argsort(parts.astype(np.int16), kind="stable")
        counts = np.bincount(parts, minlength=len(num_owned))
        firsts = np.cumsum(counts) - counts
        for p in np.flatnonzero(counts):
            array[places[p] : places[p] + counts[p]] = rows[order[firsts[p] : firsts[p] + counts[p]]]
        places += counts
        step(min(begin + block, len(owner)), len(owner))
