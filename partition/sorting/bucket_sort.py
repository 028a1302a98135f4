"""Edges sorted by their lower-degree end, in memory or in arrays on disk.

Two passes. Edges are dealt into buckets by ranges of their low end, then each bucket is sorted by a counting sort whose
counts stay in the cache. All arrays are read and written in a few sequential streams, so they may be files:

    low ends       7 2 5 0 | 3 6 1 4     two pieces of the input; in each, every thread has its share
    buckets        [0 1 2 3] [4 5 6 7]   ranges of `width` ends
    dealt          2 0 3 1 | 7 5 6 4     by bucket; inside a bucket in the order of the input
    sorted         0 1 2 3 | 4 5 6 7     whole buckets, each by one thread

Counting first gives every (piece, thread) its own next place in every bucket: threads never write to one place, and the
edges come to lie where one thread would put them. The result is what
`order = np.argsort(low, kind="stable"); low[order], high[order], tag[order]` gives.

Shapes: N vertices, M edges.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numba import uint32, uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, even_chunks, get_num_threads, own_ranges, run
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import WORD, Edges

MOST_BUCKETS = 1024
BUCKET_EDGES = 1 << 19
PIECE_EDGES = 1 << 23  # between two reports of progress
BLOCK_EDGES = 1 << 14  # found at once: they stay in the cache until they are dealt
BUCKETS_AT_ONCE = 64  # between two reports of progress
NAMES = ("low", "high", "tag")

Empty = Callable[..., np.ndarray]  # empty(name, size, dtype): a new array
Step = Callable[[int, int], None]  # step(done, total): a report of progress
Fill = Callable[..., None]  # fill(begin, end, low, high, tag): writes these edges there

AHEAD = 8  # vertices between asking for the edges of one and moving them
EDGES_AHEAD = 32  # edges between asking for what is known of their ends and reading it


class SortedEdges(NamedTuple):
    """low, high: int32 [M], the ends, that of lower degree first; tag: edge << 1 | whether `low` is its target."""

    low: np.ndarray
    high: np.ndarray
    tag: np.ndarray


def in_memory(name: str, size: int, dtype: np.dtype) -> np.ndarray:
    """An array that is on no disk: what `sort_edges` takes as `empty`."""
    return np.empty(size, dtype)


def no_step(done: int, total: int) -> None:
    """What `sort_edges` takes as `step` where nobody wants to hear."""


def new_edges(size: int, empty: Empty = in_memory, prefix: str = "", num_edges: int | None = None) -> SortedEdges:
    """Room for some of `num_edges` edges (by default all)."""
    dtypes = np.int32, np.int32, _tag_dtype(size if num_edges is None else num_edges)
    return SortedEdges(*(empty(prefix + name, size, dtype) for name, dtype in zip(NAMES, dtypes, strict=True)))


def _tag_dtype(num_edges: int) -> type:
    return np.uint32 if num_edges < 2**31 else np.uint64  # an edge and one bit more


def sort_buffer(num_edges: int) -> np.ndarray:
    """Memory [M, 3] in which so many edges are dealt, and later hold the result of `gather_edges`."""
    return np.empty((num_edges, 3), dtype=_tag_dtype(num_edges))


def _one_by_one(buffer: np.ndarray) -> SortedEdges:
    """Edges as three arrays, one after the other in the same memory."""
    size, buffer = len(buffer), buffer.reshape(-1)
    ends = buffer.view(np.int32)
    # Tags are the last third of the words. The two ends, of 32 bits each, fill what lies before them, or half of that
    # where tags have 64.
    return SortedEdges(ends[:size], ends[size : 2 * size], buffer[-size:])


def sort_edges(
    edge_list: Edges,
    degrees: np.ndarray,
    number: np.ndarray,
    empty: Empty,
    step: Step,
    buffer: np.ndarray | None = None,
) -> SortedEdges:
    """Edges sorted by their lower-degree end, then by edge, under new numbers of vertices (ties: lower number).

    Args: buffer: [M, 3] (of `sort_buffer`) where edges are dealt before they are sorted; without it they are sorted as
        on disk.
    """
    src, dst = edge_list.src, edge_list.dst
    # Degree and number of a vertex in one word: one look-up compares two vertices, and gives the new number as well.
    keys = degrees.astype(np.int64)
    keys <<= 32
    keys |= number

    def fill(begin: int, end: int, low: np.ndarray, high: np.ndarray, tag: np.ndarray) -> None:
        order_ends(begin, end, src, dst, keys, low, high, tag)

    edges = new_edges(len(src), empty, "first_")
    if buffer is not None:
        return sort_in_memory(fill, edges, len(number), buffer, step)
    return sort_on_disk(fill, edges, len(number), step)


def renumber_edges(edges: SortedEdges, number: np.ndarray, empty: Empty, step: Step) -> SortedEdges:
    """The same edges under other numbers of the vertices [N], sorted by the new number of their lower end."""

    def fill(begin: int, end: int, low: np.ndarray, high: np.ndarray, tag: np.ndarray) -> None:
        look_up(begin, end, *edges, number, low, high, tag)

    return sort_on_disk(fill, new_edges(len(edges.low), empty), len(number), step)


def gather_edges(edges: SortedEdges, number: np.ndarray, buffer: np.ndarray) -> SortedEdges:
    """What `renumber_edges` gives, in memory: the edges of a lower end lie side by side and move together."""
    size, num_nodes = len(edges.low), len(number)
    counts = np.zeros(num_nodes + 1, dtype=np.int64)
    count_runs(edges.low, counts)
    # `starts`: where the edges of each old number begin; `indptr`: where those of each new number will.
    starts = np.cumsum(counts)
    vertices = np.empty(num_nodes, dtype=np.int32)
    # The inverse permutation: vertices[new number] = old number.
    vertices[number] = np.arange(num_nodes, dtype=np.int32)
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.diff(starts)[vertices], out=indptr[1:])
    # The other ends get their new numbers where they lie, before whole ranges of edges move.
    run(renumber, even_chunks(size, 4), edges.high, number)
    # The buffer is free again: the edges that were dealt to it have been sorted out of it.
    moved = _one_by_one(buffer)
    run(gather, own_ranges(indptr), edges.high, edges.tag, starts, indptr, vertices, *moved)
    return moved


def sort_in_memory(
    fill: Fill, edges: SortedEdges, num_nodes: int, buffer: np.ndarray, step: Step = no_step
) -> SortedEdges:
    """Edges sorted by `low`, stable: found once, where the result will be, and dealt to the buffer of `sort_buffer`."""
    plan = _Plan(len(edges.low), num_nodes)
    # Edges whose ends and tag share a line of the cache: dealing then writes one line for each, not three
    # Ends in words as wide as the tag, so that all three columns have the same step.
    ends = buffer.view(np.int32 if buffer.itemsize == 4 else np.int64)
    dealt = SortedEdges(ends[:, 0], ends[:, 1], buffer[:, 2])

    def count(share: int, _: int, piece: int) -> None:
        for first, last in plan.blocks(piece, share):
            block = [column[first:last] for column in edges]
            # Found where the result will be: dealing reads them there, and the sort overwrites what is then of no use.
            fill(first, last, *block)
            count_buckets(last - first, *block, plan.width, plan.places[piece, share])

    def deal(share: int, _: int, piece: int) -> None:
        for first, last in plan.blocks(piece, share):
            block = [column[first:last] for column in edges]
            deal_edges(last - first, *block, plan.width, plan.places[piece, share], 3, *dealt)

    return _sort(plan, count, deal, dealt, edges, step)


def sort_on_disk(fill: Fill, edges: SortedEdges, num_nodes: int, step: Step = no_step) -> SortedEdges:
    """As `sort_in_memory`, without a buffer.

    Edges are found twice, dealt to where the result will be, and each bucket is sorted there, from a copy of it.
    """
    plan = _Plan(len(edges.low), num_nodes)

    def found(piece: int, share: int) -> Iterator[tuple[int, SortedEdges]]:
        # Tags number all edges, not those of the block: from 2**31 edges on they have 64 bits in a small block too.
        scratch = new_edges(plan.block_size(piece, share), num_edges=len(edges.low))
        for first, last in plan.blocks(piece, share):
            fill(first, last, *scratch)
            yield last - first, scratch

    def count(share: int, _: int, piece: int) -> None:
        for size, block in found(piece, share):
            count_buckets(size, *block, plan.width, plan.places[piece, share])

    def deal(share: int, _: int, piece: int) -> None:
        for size, block in found(piece, share):
            deal_edges(size, *block, plan.width, plan.places[piece, share], 1, *edges)

    return _sort(plan, count, deal, edges, edges, step)


class _Plan:
    """How the work is divided: pieces of the input, shares of a piece for the threads, blocks of a share, buckets.

    places: int64 [pieces, threads, buckets]: first the edges of each share and bucket, then the place of the next one.
    """

    def __init__(self, size: int, num_nodes: int) -> None:
        self.buckets = min(MOST_BUCKETS, max(1, size // BUCKET_EDGES))
        self.width = max(1, -(-num_nodes // self.buckets))
        self.threads = get_num_threads() if size > FEW_EDGES else 1
        self.pieces = [(begin, min(begin + PIECE_EDGES, size)) for begin in range(0, size, PIECE_EDGES)]
        self.places = np.zeros((len(self.pieces), self.threads, self.buckets), dtype=np.int64)

    def _share(self, piece: int, share: int) -> tuple[int, int]:
        begin, end = self.pieces[piece]
        size = end - begin
        return begin + size * share // self.threads, begin + size * (share + 1) // self.threads

    def block_size(self, piece: int, share: int) -> int:
        """The most edges of a block."""
        begin, end = self._share(piece, share)
        return min(BLOCK_EDGES, end - begin)

    def blocks(self, piece: int, share: int) -> Iterator[tuple[int, int]]:
        """Ranges of the edges of one thread's share of a piece."""
        begin, end = self._share(piece, share)
        for first in range(begin, end, BLOCK_EDGES):
            yield first, min(first + BLOCK_EDGES, end)

    def counts_to_places(self) -> np.ndarray:
        """Turn counts into first places; returns where each bucket begins, int64 [buckets + 1]."""
        starts = np.concatenate([[0], np.cumsum(self.places.sum(axis=(0, 1)))])
        # Plain, for each bucket: place = where the bucket begins + the counts of all pieces and shares before this one.
        # So a bucket holds its edges in the order of the input, whichever thread deals them.
        before = np.cumsum(self.places.reshape(-1, self.buckets), axis=0).reshape(self.places.shape) - self.places
        self.places = before + starts[:-1]
        return starts


def _sort(
    plan: _Plan,
    count: Callable[..., None],
    deal: Callable[..., None],
    dealt: SortedEdges,
    edges: SortedEdges,
    step: Step,
) -> SortedEdges:
    """Count, deal to `dealt`, and sort each bucket to `edges`, which may be the same arrays."""
    pieces = len(plan.pieces)
    for piece in range(pieces):
        # A range of one for each share: count(share, share + 1, piece).
        run(count, range(plan.threads + 1), piece)
        step(piece + 1, 3 * pieces)
    starts = plan.counts_to_places()
    for piece in range(pieces):
        run(deal, range(plan.threads + 1), piece)
        step(pieces + piece + 1, 3 * pieces)
    # Buckets have no edge in common: each is sorted by whichever thread is free.
    for first in range(0, plan.buckets, BUCKETS_AT_ONCE):
        bounds = range(first, min(first + BUCKETS_AT_ONCE, plan.buckets) + 1)
        run(sort_buckets, bounds, starts, plan.width, *dealt, *edges)
        step(2 * pieces + pieces * bounds[-1] // plan.buckets, 3 * pieces)
    return edges


@kernel(counted=False)
def order_ends(begin, end, src, dst, keys, low, high, tag):
    """Edges begin to end, each with the end of the smaller key first.

    Plain: `if keys[dst[e]] < keys[src[e]]: swap the ends`. Which end is smaller cannot be guessed: minimum and maximum
    need no branch. The look-ups are in no order, so they are asked for `EDGES_AHEAD` edges earlier.
    """
    for e in range(begin, end):
        soon = min(e + EDGES_AHEAD, src.shape[0] - 1)
        prefetch(WORD, keys, src[soon])
        prefetch(WORD, keys, dst[soon])
        # A key is degree << 32 | number: the smaller key is the lower degree (ties: the lower number), and its lower 32
        # bits are the new number of the vertex.
        a, b = keys[src[e]], keys[dst[e]]
        low[e - begin] = min(a, b) & 0xFFFFFFFF
        high[e - begin] = max(a, b) & 0xFFFFFFFF
        # The bit beside the edge says that `low` is its target: without it the direction of arcs would be lost.
        tag[e - begin] = uint64(2 * e + (b < a))


@kernel(counted=False)
def look_up(begin, end, old_low, old_high, old_tag, number, low, high, tag):
    """Edges begin to end under other numbers; old_low is sorted, so that only old_high is looked up in no order."""
    for e in range(begin, end):
        prefetch(WORD, number, old_high[min(e + EDGES_AHEAD, old_high.shape[0] - 1)])
        # The ends keep their places, whichever of the new numbers is lower: `low` is the end of lower degree, and the
        # tag speaks of it.
        low[e - begin] = number[old_low[e]]
        high[e - begin] = number[old_high[e]]
        tag[e - begin] = old_tag[e]


@kernel(counted=False)
def renumber(begin, end, ends, number):
    """ends[e] = number[ends[e]] for the edges from begin to end."""
    for e in range(begin, end):
        # In place: ends ahead in this range are not renumbered yet, those beyond it may be, by another thread.
        prefetch(WORD, number, ends[min(e + EDGES_AHEAD, end - 1)])
        ends[e] = number[ends[e]]


@kernel(counted=False)
def count_buckets(size, low, high, tag, width, counts):
    """counts[bucket] += the edges of a block that go there."""
    # `high` and `tag` are not read: a block is handed over whole, here and to `deal_edges`.
    narrow = uint32(width)  # a division of 32 bits takes less time than one of 64
    for e in range(size):
        counts[uint32(low[e]) // narrow] += 1


@kernel(counted=False)
def deal_edges(size, low, high, tag, width, places, step, new_low, new_high, new_tag):
    """Put the edges of a block to the next places of their buckets; step: words from one place to the next.

    A bucket's places are filled one after the other: what is asked for is where its next edges but some will go.
    """
    narrow = uint32(width)
    for e in range(size):
        bucket = uint32(low[e]) // narrow
        # places[bucket] is the next free place of this share in the bucket. Other shares have ranges of their own there
        # (`counts_to_places`), so no thread waits for another.
        place = places[bucket]
        places[bucket] = place + 1
        prefetch(WORD, new_low, step * (place + EDGES_AHEAD))
        prefetch(WORD, new_high, step * (place + EDGES_AHEAD))
        prefetch(WORD, new_tag, step * (place + EDGES_AHEAD))
        new_low[place] = low[e]
        new_high[place] = high[e]
        new_tag[place] = tag[e]


@kernel
def sort_buckets(first, last, starts, width, dealt_low, dealt_high, dealt_tag, new_low, new_high, new_tag):
    """Sort the edges of buckets first to last, perhaps in place; stable."""
    places = np.empty(width + 1, dtype=np.int64)
    for bucket in range(first, last):
        begin, end = starts[bucket], starts[bucket + 1]
        # Copies, because on disk a bucket is sorted to where it lies: an edge would be written over one that is not
        # read yet.
        low, high, tag = dealt_low[begin:end].copy(), dealt_high[begin:end].copy(), dealt_tag[begin:end].copy()
        _sort_bucket(begin, bucket * width, places, low, high, tag, new_low, new_high, new_tag)


@inline(counted=False)
def _sort_bucket(begin, first, places, low, high, tag, new_low, new_high, new_tag):
    """A counting sort by low - first, as `stable_order`, but the edges are moved in the same loop, not their ids."""
    places[:] = 0
    for i in range(low.shape[0]):
        places[low[i] - first + 1] += 1
    # Counts stand one place later than their vertex: after the running sum from `begin`, places[j] is where the first
    # edge of vertex first + j goes.
    places[0] = begin
    for j in range(places.shape[0] - 1):
        places[j + 1] += places[j]
    for i in range(low.shape[0]):
        # Edges are taken in the order of the input, so those of one vertex keep it: the sort is stable.
        place = places[low[i] - first]
        places[low[i] - first] = place + 1
        new_low[place] = low[i]
        new_high[place] = high[i]
        new_tag[place] = tag[i]


@kernel(counted=False)
def count_runs(low, counts):
    """counts[v + 1] += edges whose lower end is v."""
    for e in range(low.shape[0]):
        # One place later, so that the running sum is where each vertex's edges begin.
        counts[low[e] + 1] += 1


@kernel(counted=False)
def gather(begin, end, old_high, old_tag, starts, indptr, vertices, low, high, tag):
    """Edges of the vertices from begin to end, under new numbers: vertices[v] is the old number of v.

    Two distances: where the edges of a vertex begin is itself looked up, so it is asked for twice as early as they are.
    """
    for v in range(begin, end):
        soon = starts[vertices[min(v + AHEAD, end - 1)]]
        prefetch(WORD, starts, vertices[min(v + 2 * AHEAD, end - 1)])
        prefetch(WORD, old_high, soon)
        prefetch(WORD, old_tag, soon)
        start, place = starts[vertices[v]], indptr[v]
        # Only where a vertex's edges begin is looked up in no order; the edges are then read and written one after the
        # other.
        for i in range(indptr[v + 1] - place):
            low[place + i] = v
            high[place + i] = old_high[start + i]
            tag[place + i] = old_tag[start + i]
