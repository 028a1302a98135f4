"""Whole clusters to parts, for `cmr-stream`: clusters that are ranges of sorted rows, merged as merge.py does.

Shapes: N vertices, M rows, K clusters, P parts, I incidences (a vertex with a row in a cluster).
Source: ours.
"""

from __future__ import annotations

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, get_num_threads, run
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.moves.groups import Groups, close_up, sit
from distgnn.partition.moves.merge import How, merge_groups

AHEAD = 32  # rows between asking for a vertex's seat and reading it
HOW = How(sweeps=8, first_guess=1.0)
MOST_THREADS = 2  # each has a seat of 8 bytes for every vertex
WORD = Tile(lanes=1, offsets=(0,), heads=(0,))


def place_clusters(rows, begins: np.ndarray, degrees: np.ndarray, shares: np.ndarray, empty, step) -> tuple:
    """Part int16 [K] of each cluster, and the table of the cut.

    Args: rows: sorted `EdgeArrays`; begins: int64 [K + 1], the first vertex of each cluster; degrees: [N]; shares: [P];
        empty: `empty(name, size, dtype)` makes an array; step: `step(done, total)` hears of it.
    """
    groups = cluster_groups(rows, begins, empty)
    step(1, 4)
    return merge_groups(groups, degrees, shares, (rows.num_nodes, len(rows.src)), HOW)


def cluster_groups(rows, begins: np.ndarray, empty) -> Groups:
    """The rows of each cluster, which are those of its vertices' sorted rows, as groups; see `place_clusters`."""
    size, num_clusters = len(rows.src), len(begins) - 1
    threads = min(get_num_threads(), MOST_THREADS) if size > FEW_EDGES else 1
    firsts = rows.src[[size * i // threads for i in range(1, threads)]]
    clusters = [0, *(np.searchsorted(begins, firsts, side="right") - 1).tolist(), num_clusters]
    first_rows = np.searchsorted(rows.src, begins[clusters].astype(rows.src.dtype)).tolist()  # else: a copy of src
    room = size + rows.num_nodes
    members, counts = empty("members", room, np.int32), empty("counts", room, np.uint16)
    found, sizes = np.zeros(num_clusters + 1, dtype=np.int64), np.zeros(num_clusters)
    work = rows.src, rows.dst, begins, found[1:], sizes, members, counts
    run(_collect, range(threads + 1), np.array(clusters), np.array(first_rows), rows.num_nodes, *work)
    indptr = np.cumsum(found, out=found)
    pieces = []
    for c, d, row in zip(clusters[:-1], clusters[1:], first_rows[:-1], strict=True):
        first = row + int(begins[c])
        pieces.append(slice(first, first + int(indptr[d] - indptr[c])))
    close_up(pieces, members, counts)
    return Groups(indptr, members[: indptr[-1]], sizes, counts[: indptr[-1]])


@kernel
def _collect(share, _, clusters, first_rows, num_nodes, low, high, begins, found, sizes, members, counts):
    """Members of one thread's share of the clusters, without gaps from as many as there can be before them on."""
    seat = np.full(num_nodes, -1, dtype=np.int64)
    begin, end = first_rows[share], first_rows[share + 1]
    place = begin + begins[clusters[share]]
    _collect_each(begin, end, clusters[share], place, seat, low, high, begins, found, sizes, members, counts)


@inline(_nrt=False)
def _collect_each(begin, end, c, place, seat, low, high, begins, found, sizes, members, counts):
    first, first_row = place, begin
    for e in range(begin, end):
        u, v = low[e], high[e]
        prefetch(WORD, seat, high[min(e + AHEAD, end - 1)])
        if u >= begins[c + 1]:
            found[c], sizes[c] = place - first, e - first_row
            first, first_row = place, e
            while u >= begins[c + 1]:
                c += 1
        place = sit(u, first, place, seat, members, counts)
        if u != v:
            place = sit(v, first, place, seat, members, counts)
    if end > begin:
        found[c], sizes[c] = place - first, end - first_row
