"""Sets of parts as bit masks: row v of `mask` [N, W] uint64 is a set, bit p % 64 of word p // 64 says part p is in it.

At 64 parts or fewer this is 8 bytes a vertex, an eighth of a byte for each (vertex, part): a table of counts for
papers100M at 128 parts would take 28 GB, two masks take 3.5.
"""

from __future__ import annotations

import numpy as np
from numba import uint64

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import FEW_EDGES, get_num_threads, run
from distgnn.kernels.simd.vectors import prefetch
from distgnn.partition.core.edges import AHEAD, WORD


def empty_mask(num_rows: int, num_parts: int) -> np.ndarray:
    """[num_rows, W] uint64 of empty sets."""
    return np.zeros((num_rows, (num_parts + 63) // 64), dtype=np.uint64)


@inline
def has_bit(mask, row, part):
    return (mask[row, part >> 6] >> uint64(part & 63)) & uint64(1) != uint64(0)


@inline
def set_bit(mask, row, part):
    mask[row, part >> 6] |= uint64(1) << uint64(part & 63)


@inline
def num_bits(word):
    total = 0
    while word != uint64(0):
        word &= word - uint64(1)
        total += 1
    return total


@inline
def lowest_bit(word):
    """Position of the lowest set bit of a word that is not 0.

    Plain: `position = 0; while not (word >> position) & 1: position += 1`. Here by halving, six tests for any word:
    each mask has the bits set whose position has this bit set. (A multiply and a shift would need a table.)
    """
    low = word & (~word + uint64(1))  # this bit alone: in two's complement -word has the same lowest bit
    position = 0
    if low & uint64(0xFFFFFFFF00000000):
        position += 32
    if low & uint64(0xFFFF0000FFFF0000):
        position += 16
    if low & uint64(0xFF00FF00FF00FF00):
        position += 8
    if low & uint64(0xF0F0F0F0F0F0F0F0):
        position += 4
    if low & uint64(0xCCCCCCCCCCCCCCCC):
        position += 2
    if low & uint64(0xAAAAAAAAAAAAAAAA):
        position += 1
    return position


@inline
def mix(value):
    """SplitMix64's finaliser: a good hash of a 64-bit number."""
    value = uint64(value) + uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> uint64(27))) * uint64(0x94D049BB133111EB)
    return value ^ (value >> uint64(31))


def mark_arcs(
    sources: np.ndarray,
    targets: np.ndarray,
    parts: np.ndarray,
    skip_loops: bool,
    source_mask: np.ndarray,
    target_mask: np.ndarray,
) -> None:
    """source_mask[sources[e]] and target_mask[targets[e]] gain parts[e]; self-loops are skipped on request.

    Notes: threads mark masks of their own, which together need no more memory than the arcs.
    """
    size = source_mask.nbytes + (0 if target_mask is source_mask else target_mask.nbytes)
    # Each thread needs masks of its own, because two threads must not write one word: only as many threads as the
    # memory of the arcs pays for.
    most = 8 * len(sources) // max(size, 1) + 1
    threads = min(get_num_threads(), most) if len(sources) > FEW_EDGES else 1
    masks = [(source_mask, target_mask)]
    for _ in range(threads - 1):
        empty = np.zeros_like(source_mask)
        masks.append((empty, empty if target_mask is source_mask else np.zeros_like(target_mask)))

    def mark(share: int, _: int) -> None:
        begin, end = (len(sources) * (share + i) // threads for i in range(2))
        _mark_arcs(sources[begin:end], targets[begin:end], parts[begin:end], skip_loops, *masks[share])

    # Sets are joined by OR: the order does not matter, so the result is the same for any number of threads.
    run(mark, range(threads + 1))
    for pair in masks[1:]:
        for mask, more in zip(masks[0], pair, strict=True):
            np.bitwise_or(mask, more, out=mask)


@kernel(counted=False)
def _mark_arcs(sources, targets, parts, skip_loops, source_mask, target_mask):
    last, words = sources.shape[0] - 1, source_mask.shape[1]
    for e in range(last + 1):
        soon = min(e + AHEAD, last)
        prefetch(WORD, source_mask, words * np.int64(sources[soon]))
        prefetch(WORD, target_mask, words * np.int64(targets[soon]))
        u, v, p = sources[e], targets[e], np.int64(parts[e])
        if not (skip_loops and u == v):
            set_bit(source_mask, u, p)
            set_bit(target_mask, v, p)


@kernel
def count_parts(source_mask, target_mask, num_parts):
    """[num_parts] int64, vertices with an arc in each part."""
    counts = np.zeros(num_parts, dtype=np.int64)
    for v in range(source_mask.shape[0]):
        for w in range(source_mask.shape[1]):
            word = source_mask[v, w] | target_mask[v, w]
            while word != uint64(0):
                # Word w holds the parts from 64 w on; word & (word - 1) clears the bit that was counted.
                counts[(w << 6) + lowest_bit(word)] += 1
                word &= word - uint64(1)
    return counts


@kernel
def count_copies(source_mask, target_mask):
    """[N] number of parts that hold an arc of each vertex."""
    counts = np.zeros(source_mask.shape[0], dtype=np.int32)
    for v in range(source_mask.shape[0]):
        for w in range(source_mask.shape[1]):
            counts[v] += num_bits(source_mask[v, w] | target_mask[v, w])
    return counts
