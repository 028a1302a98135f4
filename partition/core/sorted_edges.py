"""Edges sorted by their lower-degree end, and vertices renumbered, in memory or in arrays on disk.

Two passes. Edges are dealt into buckets by ranges of their low end, then each bucket is sorted where it lies, by a
counting sort in the cache. Arrays are read and written in a few sequential streams, so they may be files:

    low ends       7 2 5 0 | 3 6 1 4     two pieces of the input; in each, every thread has its share
    buckets        [0 1 2 3] [4 5 6 7]   ranges of `width` ends
    dealt          2 0 3 1 | 7 5 6 4     by bucket; inside a bucket in the order of the input
    sorted         0 1 2 3 | 4 5 6 7     whole buckets, each by one thread

Counting first gives every (piece, thread) its own next place in every bucket: threads never write to one place, and the
edges come to lie where one thread would put them. The result is what
`order = np.argsort(low, kind="stable"); low[order], high[order], tag[order]` gives.

New numbers of vertices go with it, by cluster or by degree, so that what is used together lies together.

Shapes: N vertices, M edges, K clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numba import uint32, uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, get_num_threads, run
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import WORD, EdgeArrays, Edges, group

MOST_BUCKETS = 1024
BUCKET_EDGES = 1 << 19
PIECE_EDGES = 1 << 23  # between two reports of progress
BLOCK_EDGES = 1 << 14  # found at once: they stay in the cache until they are dealt
BUCKETS_AT_ONCE = 64  # between two reports of progress
NAMES = ("low", "high", "tag")

Empty = Callable[..., np.ndarray]  # empty(name, size, dtype): a new array
Step = Callable[[int, int], None]  # step(done, total): a report of progress
Fill = Callable[..., None]  # fill(begin, end, low, high, tag): writes these edges there

EDGES_AHEAD = 32  # edges between asking for what is known of their ends and reading it
HUB = 16  # times the mean degree


class SortedEdges(NamedTuple):
    """low, high: int32 [M], the ends, the lower degree first; tag: edge << 1 | whether `low` is its target."""

    low: np.ndarray
    high: np.ndarray
    tag: np.ndarray


def in_memory(name: str, size: int, dtype: np.dtype) -> np.ndarray:
    return np.empty(size, dtype)


def no_step(done: int, total: int) -> None:
    """What `sort_edges` takes as `step` where nobody wants to hear."""


def new_edges(size: int, empty: Empty = in_memory, prefix: str = "", num_edges: int | None = None) -> SortedEdges:
    """Room for some of `num_edges` edges (by default all)."""
    dtypes = np.int32, np.int32, _tag_dtype(size if num_edges is None else num_edges)
    return SortedEdges(*(empty(prefix + name, size, dtype) for name, dtype in zip(NAMES, dtypes, strict=True)))


def _tag_dtype(num_edges: int) -> type:
    return np.uint32 if num_edges < 2**31 else np.uint64  # an edge and one bit more


def sort_edges(edge_list: Edges, degrees: np.ndarray, number: np.ndarray, empty: Empty, step: Step) -> SortedEdges:
    """Edges sorted by their lower-degree end, then by edge, under new numbers of vertices (ties: lower number).

    Args: degrees: [N], or anything else that says which end comes first.
    """
    src, dst = edge_list.src, edge_list.dst
    # Degree and number of a vertex in one word: one look-up compares two vertices, and gives the new number as well.
    keys = degrees.astype(np.int64)
    keys <<= 32
    keys |= number

    def fill(begin: int, end: int, low: np.ndarray, high: np.ndarray, tag: np.ndarray) -> None:
        order_ends(begin, end, src, dst, keys, low, high, tag)

    return sort_found(fill, new_edges(len(src), empty, "first_"), len(number), step)


def renumber_edges(edges: SortedEdges, number: np.ndarray, empty: Empty, step: Step) -> SortedEdges:
    """The same edges under other numbers of the vertices [N], sorted by the new number of their lower end."""

    def fill(begin: int, end: int, low: np.ndarray, high: np.ndarray, tag: np.ndarray) -> None:
        look_up(begin, end, *edges, number, low, high, tag)

    return sort_found(fill, new_edges(len(edges.low), empty), len(number), step)


def sort_found(fill: Fill, edges: SortedEdges, num_nodes: int, step: Step = no_step) -> SortedEdges:
    """Sort what `fill` finds by `low`, stable, into `edges`.

    Edges are found twice, dealt to where the result will be, and each bucket is sorted there, from a copy of it.
    """
    size = len(edges.low)
    buckets = min(MOST_BUCKETS, max(1, size // BUCKET_EDGES))
    width = max(1, -(-num_nodes // buckets))
    threads = get_num_threads() if size > FEW_EDGES else 1
    pieces = [(begin, min(begin + PIECE_EDGES, size)) for begin in range(0, size, PIECE_EDGES)]
    # First the edges of each piece, share and bucket, then the place of the next one.
    places = np.zeros((len(pieces), threads, buckets), dtype=np.int64)

    def found(piece: int, share: int) -> Iterator[tuple[int, SortedEdges]]:
        begin, end = pieces[piece]
        first, last = (begin + (end - begin) * (share + i) // threads for i in range(2))
        # Tags number all edges, not the block's: from 2**31 edges on they have 64 bits in a small block too.
        block = new_edges(min(BLOCK_EDGES, last - first), num_edges=size)
        for start in range(first, last, BLOCK_EDGES):
            stop = min(start + BLOCK_EDGES, last)
            fill(start, stop, *block)
            yield stop - start, block

    def count(share: int, _: int, piece: int) -> None:
        for block_size, block in found(piece, share):
            count_buckets(block_size, block.low, width, places[piece, share])

    def deal(share: int, _: int, piece: int) -> None:
        for block_size, block in found(piece, share):
            deal_edges(block_size, *block, width, places[piece, share], *edges)

    for piece in range(len(pieces)):
        # A range of one for each share: count(share, share + 1, piece).
        run(count, range(threads + 1), piece)
        step(piece + 1, 3 * len(pieces))
    starts = np.concatenate([[0], np.cumsum(places.sum(axis=(0, 1)))])
    # Plain, for each bucket: place = where the bucket begins + the counts of all pieces and shares before this one.
    # So a bucket holds its edges in the order of the input, whichever thread deals them.
    before = np.cumsum(places.reshape(-1, buckets), axis=0).reshape(places.shape) - places
    places[:] = before + starts[:-1]
    for piece in range(len(pieces)):
        run(deal, range(threads + 1), piece)
        step(len(pieces) + piece + 1, 3 * len(pieces))
    # Buckets have no edge in common: each is sorted by whichever thread is free.
    for first in range(0, buckets, BUCKETS_AT_ONCE):
        bounds = range(first, min(first + BUCKETS_AT_ONCE, buckets) + 1)
        run(sort_buckets, bounds, starts, width, *edges)
        step(2 * len(pieces) + len(pieces) * bounds[-1] // buckets, 3 * len(pieces))
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
def count_buckets(size, low, width, counts):
    """counts[bucket] += the edges of a block that go there."""
    narrow = uint32(width)  # a division of 32 bits takes less time than one of 64
    for e in range(size):
        counts[uint32(low[e]) // narrow] += 1


@kernel(counted=False)
def deal_edges(size, low, high, tag, width, places, new_low, new_high, new_tag):
    """Put the edges of a block to the next places of their buckets.

    A bucket's places are filled one after the other: what is asked for is where its next edges but some will go.
    """
    narrow = uint32(width)
    for e in range(size):
        bucket = uint32(low[e]) // narrow
        # places[bucket] is the next free place of this share in the bucket. Other shares have ranges of their own
        # there, so no thread waits for another.
        place = places[bucket]
        places[bucket] = place + 1
        prefetch(WORD, new_low, place + EDGES_AHEAD)
        prefetch(WORD, new_high, place + EDGES_AHEAD)
        prefetch(WORD, new_tag, place + EDGES_AHEAD)
        new_low[place] = low[e]
        new_high[place] = high[e]
        new_tag[place] = tag[e]


@kernel
def sort_buckets(first, last, starts, width, low, high, tag):
    """Sort the edges of buckets first to last where they lie, stable."""
    places = np.empty(width + 1, dtype=np.int64)
    for bucket in range(first, last):
        begin, end = starts[bucket], starts[bucket + 1]
        # Copies: an edge would be written over one that is not read yet.
        dealt = SortedEdges(low[begin:end].copy(), high[begin:end].copy(), tag[begin:end].copy())
        _sort_bucket(begin, bucket * width, places, dealt, low, high, tag)


@inline(counted=False)
def _sort_bucket(begin, first, places, dealt, low, high, tag):
    """A counting sort by low - first, as `stable_order`, but the edges are moved in the same loop, not their ids."""
    places[:] = 0
    for i in range(dealt.low.shape[0]):
        places[dealt.low[i] - first + 1] += 1
    # Counts stand one place later than their vertex: after the running sum from `begin`, places[j] is where the first
    # edge of vertex first + j goes.
    places[0] = begin
    for j in range(places.shape[0] - 1):
        places[j + 1] += places[j]
    for i in range(dealt.low.shape[0]):
        # Edges are taken in the order of the input, so one vertex's edges keep it: the sort is stable.
        place = places[dealt.low[i] - first]
        places[dealt.low[i] - first] = place + 1
        low[place], high[place], tag[place] = dealt.low[i], dealt.high[i], dealt.tag[i]


def number_by_cluster(labels: np.ndarray, volumes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """New number int32 [N] of each vertex, by cluster (largest volume first; ties: lower label), then id; where each
    cluster begins, int64 [K + 1]."""
    present = np.flatnonzero(np.bincount(labels, minlength=len(labels)))
    present = present[np.argsort(-volumes[present], kind="stable")]
    place = np.empty(len(labels), dtype=np.int32)  # of each cluster
    place[present] = np.arange(len(present))
    # Every cluster is a range of vertices, and of the edges sorted by their lower end.
    order, begins = group(place[labels], len(present))
    return _inverse(order), begins


def number_by_degree(degrees: np.ndarray) -> np.ndarray:
    """Number int32 [N] of each vertex, largest degree first; ties: lower id."""
    largest = int(degrees.max(initial=0))
    return _inverse(group(largest - degrees, largest + 1)[0])


def _inverse(order: np.ndarray) -> np.ndarray:
    """The place int32 [N] of each vertex in an order."""
    places = np.empty(len(order), dtype=np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places


def ordered_edges(
    edge_list: Edges, degrees: np.ndarray, labels: np.ndarray
) -> tuple[EdgeArrays, np.ndarray, np.ndarray]:
    """Edges renumbered and sorted; the edge [M] behind each; the vertex [N] behind each new number."""
    hub = degrees > HUB * max(float(degrees.mean()), 1.0) if len(degrees) else np.zeros(0, dtype=bool)
    # Negative keys come before all labels: hubs by falling degree, in few cache lines because they are looked up all
    # the time; then the others by cluster, ties by id.
    keys = np.where(hub, -degrees.astype(np.int64), labels)
    vertices = np.argsort(keys, kind="stable")
    # The end of lower degree first, ties by id: places in that order, which no two vertices share.
    places = _inverse(group(degrees, int(degrees.max(initial=0)) + 1)[0])
    low, high, tag = sort_edges(edge_list, places, _inverse(vertices), in_memory, no_step)
    # `low` is the source of what is returned, whatever the arc's direction was.
    tag >>= 1
    order = tag.view(np.int32 if tag.itemsize == 4 else np.int64)
    return EdgeArrays(low, high, edge_list.num_nodes, edge_list.two_way, edge_list.num_arcs), order, vertices
