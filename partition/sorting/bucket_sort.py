"""Rows sorted by their lower-degree end, and vertices renumbered by cluster, with arrays that may lie on disk.

Rows are dealt into buckets of neighbouring ends first and sorted inside each bucket then: every array is read and
written in a few sequential streams, so it may be a file. Threads deal pieces of the rows, each to places of its own,
and sort whole buckets: the rows come to lie where one thread would put them.

Shapes: N vertices, M rows, K clusters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import uint32, uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, even_chunks, get_num_threads, own_ranges, run
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch

MOST_BUCKETS = 1024
BUCKET_ROWS = 1 << 19
PIECE_ROWS = 1 << 23  # between two reports of progress
BLOCK_ROWS = 1 << 14  # renumbered at once: they stay in the cache until they are dealt
BUCKETS_AT_ONCE = 64  # between two reports of progress
AHEAD = 8  # vertices between asking for the rows of one and moving them
ROWS_AHEAD = 32  # rows between asking for what is known of their ends and reading it
WORD = Tile(lanes=1, offsets=(0,), heads=(0,))
NAMES = ("low", "high", "tag")


class Numbering(NamedTuple):
    """number: int32 [N], new number of each vertex, by cluster (largest first), then id; begins: int64 [K + 1]."""

    number: np.ndarray
    begins: np.ndarray


class SortedRows(NamedTuple):
    """low, high: int32 [M], a row's ends, the one of lower degree first; tag: row << 1 | whether that is its target."""

    low: np.ndarray
    high: np.ndarray
    tag: np.ndarray


def number_by_cluster(labels: np.ndarray, volumes: np.ndarray) -> Numbering:
    """Number vertices by cluster, clusters by volume (largest first; ties: lower label).

    Args: labels: [N], the vertex whose cluster each is in; volumes: int64 [N], degrees of the cluster of each label.
    """
    sizes = np.bincount(labels, minlength=len(labels))
    present = np.flatnonzero(sizes)
    present = present[np.argsort(-volumes[present], kind="stable")]
    begins = np.zeros(len(present) + 1, dtype=np.int64)
    np.cumsum(sizes[present], out=begins[1:])
    sizes[present] = begins[:-1]  # now: the next number in each cluster
    number = np.empty(len(labels), dtype=np.int32)
    _number(labels, sizes, number)
    return Numbering(number, begins)


@kernel
def _number(labels, next_number, number):
    for v in range(labels.shape[0]):
        number[v] = next_number[labels[v]]
        next_number[labels[v]] += 1


def number_by_degree(degrees: np.ndarray) -> np.ndarray:
    """Number int32 [N] of each vertex, largest degree first; ties: lower id."""
    number = np.empty(len(degrees), dtype=np.int32)
    number[np.argsort(-degrees, kind="stable")] = np.arange(len(degrees), dtype=np.int32)
    return number


def sort_rows(edge_list, degrees: np.ndarray, number: np.ndarray, empty, step, room=None) -> SortedRows:
    """Rows sorted by their lower-degree end, then by row, under new numbers of vertices (ties: lower number).

    Args: degrees, number: [N]; empty: `empty(name, size, dtype)` makes an array; step: `step(done, total)` hears of it;
        room: [M, 3] in memory (of `room_for`) where rows are dealt before they are sorted; without it they are dealt to
            where the result will be, and found twice.
    """
    src, dst = edge_list.src, edge_list.dst
    keys = degrees.astype(np.int64)
    keys <<= 32
    keys |= number

    def fill(begin: int, end: int, low, high, tag) -> None:
        _order_ends(begin, end, src, dst, keys, low, high, tag)

    return sort_by_low(fill, len(src), len(number), new_rows(len(src), empty, "first_"), room, step)


def renumber_rows(rows: SortedRows, number: np.ndarray, empty, step) -> SortedRows:
    """The same rows under other numbers of the vertices [N], sorted by the new number of their lower end.

    `empty`, `step`: see `sort_rows`; arrays are read and written in a few streams.
    """

    def fill(begin: int, end: int, low, high, tag) -> None:
        _look_up(begin, end, *rows, number, low, high, tag)

    return sort_by_low(fill, len(rows.low), len(number), new_rows(len(rows.low), empty), None, step)


def gather_rows(rows: SortedRows, number: np.ndarray, room: np.ndarray) -> SortedRows:
    """What `renumber_rows` gives, in memory: the rows of a lower end lie side by side and move together.

    Args: rows: they are of no use afterwards; room: [M, 3], where the result will be.
    """
    size, num_nodes = len(rows.low), len(number)
    counts = np.zeros(num_nodes + 1, dtype=np.int64)
    _count_runs(rows.low, counts)
    starts = np.cumsum(counts)
    vertices = np.empty(num_nodes, dtype=np.int32)
    vertices[number] = np.arange(num_nodes, dtype=np.int32)
    indptr = np.zeros(num_nodes + 1, dtype=np.int64)
    np.cumsum(np.diff(starts)[vertices], out=indptr[1:])
    run(_renumber, even_chunks(size, 4), rows.high, number)
    moved = _one_by_one(room)
    run(_gather, own_ranges(indptr), rows.high, rows.tag, starts, indptr, vertices, *moved)
    return moved


def in_memory(name: str, size: int, dtype) -> np.ndarray:
    """An array that is on no disk: what `sort_rows` takes as `empty`."""
    return np.empty(size, dtype)


def no_step(done: int, total: int) -> None:
    """What `sort_rows` takes as `step` where nobody wants to hear."""


def new_rows(size: int, empty=in_memory, prefix: str = "", num_rows: int | None = None) -> SortedRows:
    """Room for some of `num_rows` rows (by default all)."""
    dtypes = np.int32, np.int32, _tag_dtype(size if num_rows is None else num_rows)
    return SortedRows(*(empty(prefix + name, size, dtype) for name, dtype in zip(NAMES, dtypes, strict=True)))


def _tag_dtype(num_rows: int):
    return np.uint32 if num_rows < 2**31 else np.uint64  # a row and one bit more


def room_for(num_rows: int) -> np.ndarray:
    """Memory for ends and tags of so many rows."""
    return np.empty((num_rows, 3), dtype=_tag_dtype(num_rows))


def _side_by_side(room: np.ndarray) -> SortedRows:
    """Rows whose ends and tag share a line of the cache."""
    ends = room.view(np.int32 if room.itemsize == 4 else np.int64)
    return SortedRows(ends[:, 0], ends[:, 1], room[:, 2])


def _one_by_one(room: np.ndarray) -> SortedRows:
    """Rows as three arrays."""
    size, room = len(room), room.reshape(-1)
    ends = room.view(np.int32)
    return SortedRows(ends[:size], ends[size : 2 * size], room[-size:])


def sort_by_low(fill, size: int, num_nodes: int, rows: SortedRows, room=None, step=no_step) -> SortedRows:
    """Rows sorted by `low`, stable.

    Args: fill: `fill(begin, end, low, high, tag)` writes some of the rows there; num_nodes: `low` is less; rows: [M],
        where the result will be; room, step: see `sort_rows`.
    """
    buckets = min(MOST_BUCKETS, max(1, size // BUCKET_ROWS))
    width = max(1, -(-num_nodes // buckets))
    threads = get_num_threads() if size > FEW_EDGES else 1
    pieces = [(begin, min(begin + PIECE_ROWS, size)) for begin in range(0, size, PIECE_ROWS)]
    places = np.zeros((len(pieces), threads, buckets), dtype=np.int64)

    def in_blocks(share: int, _, piece: int, work, *columns) -> None:
        """One thread's share of a piece, block by block: its rows, and the next places in the buckets."""
        begin, end = pieces[piece]
        begin, end = (begin + (end - begin) * (share + i) // threads for i in range(2))
        scratch = new_rows(min(BLOCK_ROWS, end - begin), num_rows=size)
        for first in range(begin, end, BLOCK_ROWS):
            last = min(first + BLOCK_ROWS, end)
            block = scratch if room is None else [column[first:last] for column in rows]
            if room is None or work is _count_buckets:
                fill(first, last, *block)
            work(last - first, *block, width, places[piece, share], *columns)

    for piece in range(len(pieces)):
        run(in_blocks, range(threads + 1), piece, _count_buckets)
        step(piece + 1, 3 * len(pieces))
    starts = np.concatenate([[0], np.cumsum(places.sum(axis=(0, 1)))])
    before = np.cumsum(places.reshape(-1, buckets), axis=0).reshape(places.shape) - places
    places = before + starts[:-1]
    dealt = rows if room is None else _side_by_side(room)
    for piece in range(len(pieces)):
        run(in_blocks, range(threads + 1), piece, _deal, 1 if room is None else 3, *dealt)
        step(len(pieces) + piece + 1, 3 * len(pieces))
    for first in range(0, buckets, BUCKETS_AT_ONCE):
        bounds = range(first, min(first + BUCKETS_AT_ONCE, buckets) + 1)
        run(_sort_buckets, bounds, starts, width, *dealt, *rows)
        step(2 * len(pieces) + len(pieces) * bounds[-1] // buckets, 3 * len(pieces))
    return rows


@kernel(_nrt=False)
def _order_ends(begin, end, src, dst, keys, low, high, tag):
    """Rows begin to end, each with the end of the smaller key first."""
    for e in range(begin, end):
        soon = min(e + ROWS_AHEAD, src.shape[0] - 1)
        prefetch(WORD, keys, src[soon])
        prefetch(WORD, keys, dst[soon])
        a, b = keys[src[e]], keys[dst[e]]
        low[e - begin] = min(a, b) & 0xFFFFFFFF
        high[e - begin] = max(a, b) & 0xFFFFFFFF
        tag[e - begin] = uint64(2 * e + (b < a))


@kernel(_nrt=False)
def _look_up(begin, end, old_low, old_high, old_tag, number, low, high, tag):
    for e in range(begin, end):
        prefetch(WORD, number, old_high[min(e + ROWS_AHEAD, old_high.shape[0] - 1)])
        low[e - begin] = number[old_low[e]]
        high[e - begin] = number[old_high[e]]
        tag[e - begin] = old_tag[e]


@kernel(_nrt=False)
def _renumber(begin, end, ends, number):
    for e in range(begin, end):
        prefetch(WORD, number, ends[min(e + ROWS_AHEAD, end - 1)])
        ends[e] = number[ends[e]]


@kernel(_nrt=False)
def _count_buckets(size, low, high, tag, width, counts):
    width = uint32(width)
    for e in range(size):
        counts[uint32(low[e]) // width] += 1


@kernel(_nrt=False)
def _deal(size, low, high, tag, width, places, step, new_low, new_high, new_tag):
    width = uint32(width)
    for e in range(size):
        bucket = uint32(low[e]) // width
        place = places[bucket]
        places[bucket] = place + 1
        prefetch(WORD, new_low, step * (place + ROWS_AHEAD))
        prefetch(WORD, new_high, step * (place + ROWS_AHEAD))
        prefetch(WORD, new_tag, step * (place + ROWS_AHEAD))
        new_low[place] = low[e]
        new_high[place] = high[e]
        new_tag[place] = tag[e]


@kernel
def _sort_buckets(first, last, starts, width, dealt_low, dealt_high, dealt_tag, new_low, new_high, new_tag):
    """Sort the rows of buckets first to last, perhaps in place; stable."""
    places = np.empty(width + 1, dtype=np.int64)
    for bucket in range(first, last):
        begin, end = starts[bucket], starts[bucket + 1]
        low, high, tag = dealt_low[begin:end].copy(), dealt_high[begin:end].copy(), dealt_tag[begin:end].copy()
        _sort_bucket(begin, bucket * width, places, low, high, tag, new_low, new_high, new_tag)


@inline(_nrt=False)
def _sort_bucket(begin, first, places, low, high, tag, new_low, new_high, new_tag):
    places[:] = 0
    for i in range(low.shape[0]):
        places[low[i] - first + 1] += 1
    places[0] = begin
    for j in range(places.shape[0] - 1):
        places[j + 1] += places[j]
    for i in range(low.shape[0]):
        place = places[low[i] - first]
        places[low[i] - first] = place + 1
        new_low[place] = low[i]
        new_high[place] = high[i]
        new_tag[place] = tag[i]


@kernel(_nrt=False)
def _count_runs(low, counts):
    for e in range(low.shape[0]):
        counts[low[e] + 1] += 1


@kernel(_nrt=False)
def _gather(begin, end, old_high, old_tag, starts, indptr, vertices, low, high, tag):
    """Rows of the vertices from begin to end."""
    for v in range(begin, end):
        soon = starts[vertices[min(v + AHEAD, end - 1)]]
        prefetch(WORD, starts, vertices[min(v + 2 * AHEAD, end - 1)])
        prefetch(WORD, old_high, soon)
        prefetch(WORD, old_tag, soon)
        start, place = starts[vertices[v]], indptr[v]
        for i in range(indptr[v + 1] - place):
            low[place + i] = v
            high[place + i] = old_high[start + i]
            tag[place + i] = old_tag[start + i]
