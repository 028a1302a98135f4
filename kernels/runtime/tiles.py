"""Which columns of a row live in registers at once, and how wide a register is on this machine.

A *tile* is a tuple of vectors of `lanes` columns each, at fixed offsets from the row's first column. The offsets
are constants for the compiler: one kernel is compiled per tile, and its accumulators never leave the registers.

Widths that are no multiple of the lanes need no mask and no scalar tail: the last vector is moved back until it
ends with the row, and overlaps its neighbour. Both compute the same bits for the columns they share.

    width 47, 16 lanes:   [0 … 16) [16 … 32) [31 … 47)
"""

import functools
import itertools
import platform
import re
from dataclasses import dataclass
from typing import NamedTuple

import llvmlite.binding as llvm
import numpy as np
from numba.core import config
from numpy.typing import DTypeLike


@dataclass(frozen=True)
class Tile:
    """`lanes` columns at each of `offsets`; vector v belongs to attention head or edge-weight column heads[v].

    `last` > 0 cuts the last vector to `last` lanes, by a mask: for kernels whose lanes have fixed columns. The first
    skip[v] lanes of vector v repeat columns of its neighbour: sums over columns leave them out.
    """

    lanes: int
    offsets: tuple[int, ...]
    heads: tuple[int, ...]
    last: int = 0
    skip: tuple[int, ...] = ()

    @property
    def vectors(self) -> int:
        return len(self.offsets)

    @property
    def width(self) -> int:
        """Columns from the first to the last."""
        return self.offsets[-1] + (self.last or self.lanes)


@functools.cache
def registers() -> tuple[int, int]:
    """(bytes of a vector register, how many of them a tile may fill) on this machine."""
    # Fewer registers than there are, because the row that is loaded, the factor and addresses need some too; sums that
    # do not fit would be read and written for every arc.
    features = _features()
    if re.search(r"\+avx512f\b", features):
        return 64, 16  # of 32: what is loaded, the factor and prefetch addresses need some too
    if re.search(r"\+avx2\b", features):
        return 32, 10  # of 16
    # Of 32 on 64-bit Arm, where they belong to every processor (LLVM does not always say so); of 16 with SSE2.
    return 16, 20 if platform.machine() in ("aarch64", "arm64") else 10


@functools.cache
def narrows_bfloat16() -> bool:
    """Has this machine an instruction that rounds 16 float32 to bfloat16?"""
    return re.search(r"\+avx512bf16\b", _features()) is not None


def _features() -> str:
    """What numba compiles for, not what the processor has: NUMBA_CPU_FEATURES may say less."""
    features = getattr(config, "CPU_FEATURES", None)
    if features is None:
        generic = getattr(config, "CPU_NAME", None) == "generic"
        features = "" if generic else llvm.get_host_cpu_features().flatten()
    return features


def row_tiles(width: int, dtype: DTypeLike, most_vectors: int | None = None) -> list[tuple[int, Tile]]:
    """Cut a row into passes: list of (first column, Tile), as few and as equal as possible.

    Args: width ≥ 1; dtype: what the registers hold (float32 for bfloat16 rows).
    """
    return _row_tiles(width, np.dtype(dtype).itemsize, max(2, most_vectors or registers()[1]))


@functools.cache
def _row_tiles(width: int, itemsize: int, most: int) -> list[tuple[int, Tile]]:
    """Args: most: vectors, two or more, so that a short last vector has a neighbour to overlap."""
    # Passes of about equal width: 17 vectors are 9 + 8, not 16 + 1. A pass reads all indices again.
    lanes = _lanes(width, registers()[0] // itemsize)
    vectors = -(-width // lanes)
    passes = -(-vectors // most)
    bounds = [vectors * p // passes * lanes for p in range(passes)] + [width]
    cut = [(a, _offsets(b - a, lanes)) for a, b in itertools.pairwise(bounds)]
    return [(column, Tile(lanes, offsets, (0,) * len(offsets))) for column, offsets in cut]


def cut_tile(lanes: int, columns: int) -> Tile:
    """The first `columns` of a row, where no column is in two vectors: the last one is cut, not moved back."""
    offsets = tuple(range(0, columns, lanes))
    return Tile(lanes, offsets, (0,) * len(offsets), columns - offsets[-1])


def head_tiles(heads: int, width: int, dtype: DTypeLike, half: bool = False) -> list[Tile]:
    """The same for rows of `heads` × `width` columns, with no vector across two heads.

    Args: half: leave half of the registers to a second set of sums.
    Returns: list of Tile: offsets and heads count from the row's start.
    """
    register_bytes, most = registers()
    lanes = _lanes(width, register_bytes // np.dtype(dtype).itemsize)
    vectors = []
    # A vector across two heads would need two weights in one register: lanes are given up instead.
    for head in range(heads):
        for first, offset in zip(range(0, width, lanes), _offsets(width, lanes), strict=True):
            vectors.append((head * width + offset, head, first - offset))
    # As few passes as the registers allow, of about equal numbers of vectors: -(-a // b) rounds up.
    passes = -(-len(vectors) // (most // 2 if half else most))
    bounds = [len(vectors) * p // passes for p in range(passes + 1)]
    tiles = []
    for first, end in itertools.pairwise(bounds):
        offsets, of_heads, skip = zip(*vectors[first:end], strict=True)
        tiles.append(Tile(lanes, offsets, of_heads, skip=skip))
    return tiles


class RepeatedTile(NamedTuple):
    """A tile of some whole heads that covers a row of all when it is taken `times` times, each `columns` columns and
    `heads` heads after the last; heads_tile: of one number for each of its heads."""

    tile: Tile
    times: int
    columns: int
    heads_tile: Tile
    heads: int


@functools.cache
def repeated_tile(heads: int, width: int, dtype: DTypeLike) -> RepeatedTile | None:
    """For rows of `heads` × `width` columns, as seldom repeated as registers allow; None where they hold no head."""
    for times in range(1, heads + 1):
        some = heads // times
        tiles = head_tiles(some, width, dtype) if some * times == heads else []
        if len(tiles) == 1:
            return RepeatedTile(tiles[0], times, some * width, row_tiles(some, dtype)[0][1], some)
    return None


def _lanes(width: int, most: int) -> int:
    """Largest power of two that fits in the row and the register."""
    # A row of 3 columns takes vectors of 2: no vector may reach beyond the row.
    lanes = most
    while lanes > width:
        lanes //= 2
    return lanes


def _offsets(width: int, lanes: int) -> tuple[int, ...]:
    """Offsets of vectors that cover `width` ≥ `lanes` columns, the last one ending with the row."""
    return tuple(min(first, width - lanes) for first in range(0, width, lanes))
