"""The loops of the bucket sort: finding, counting, dealing, sorting and gathering edges, each over its own range.

Every loop that looks up in no order asks for what it will read some turns earlier: without that each turn waits for
memory. Shapes: N vertices, M edges.
"""

from __future__ import annotations

import numpy as np
from numba import uint32, uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch

AHEAD = 8  # vertices between asking for the edges of one and moving them
EDGES_AHEAD = 32  # edges between asking for what is known of their ends and reading it
WORD = Tile(lanes=1, offsets=(0,), heads=(0,))


@kernel(_nrt=False)
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


@kernel(_nrt=False)
def look_up(begin, end, old_low, old_high, old_tag, number, low, high, tag):
    """Edges begin to end under other numbers; old_low is sorted, so that only old_high is looked up in no order."""
    for e in range(begin, end):
        prefetch(WORD, number, old_high[min(e + EDGES_AHEAD, old_high.shape[0] - 1)])
        # The ends keep their places, whichever of the new numbers is lower: `low` is the end of lower degree, and the
        # tag speaks of it.
        low[e - begin] = number[old_low[e]]
        high[e - begin] = number[old_high[e]]
        tag[e - begin] = old_tag[e]


@kernel(_nrt=False)
def renumber(begin, end, ends, number):
    """ends[e] = number[ends[e]] for the edges from begin to end."""
    for e in range(begin, end):
        # In place: ends ahead in this range are not renumbered yet, those beyond it may be, by another thread.
        prefetch(WORD, number, ends[min(e + EDGES_AHEAD, end - 1)])
        ends[e] = number[ends[e]]


@kernel(_nrt=False)
def count_buckets(size, low, high, tag, width, counts):
    """counts[bucket] += the edges of a block that go there."""
    # `high` and `tag` are not read: a block is handed over whole, here and to `deal_edges`.
    narrow = uint32(width)  # a division of 32 bits takes less time than one of 64
    for e in range(size):
        counts[uint32(low[e]) // narrow] += 1


@kernel(_nrt=False)
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


@inline(_nrt=False)
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


@kernel(_nrt=False)
def count_runs(low, counts):
    """counts[v + 1] += edges whose lower end is v."""
    for e in range(low.shape[0]):
        # One place later, so that the running sum is where each vertex's edges begin.
        counts[low[e] + 1] += 1


@kernel(_nrt=False)
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
