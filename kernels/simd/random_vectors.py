"""Philox on 16 lanes: the random bits of 128 neighbouring columns of a row, as registers.

    row_words(row_id, column, stream, k0, k1) the words of the 128 columns from `column` on
    words(block, low, high, stream, k0, k1)   four words of 16 blocks, block + 0 … block + 15: Registers(uint32, 16, 4)
    at_least(tile, words, threshold)          mask: vector v is true where 16-bit half v of the words >= threshold
    fractions(tile, words, like)              the halves / 65536 in [0, 1), as floats of the accumulation type of `like`

The layout is the one philox.py describes. Tiles are `group_tile(columns)`: 16 lanes at offsets 0, 16, … 112.
"""

import llvmlite.ir as ir
import numpy as np
from llvmlite.ir import Constant
from numba.core import types
from numba.extending import intrinsic

from distgnn.kernels.runtime.jit import inline
from distgnn.kernels.runtime.tiles import Tile
from distgnn.kernels.simd.llvm import Registers, mask_of, pack, registers_type, splat, unpack
from distgnn.kernels.simd.philox import GROUP, LANES, MULTIPLIER_0, MULTIPLIER_1, WEYL_0, WEYL_1

INT32, INT64 = ir.IntType(32), ir.IntType(64)
WORDS = ir.VectorType(INT32, LANES)
PAIRS = ir.VectorType(INT64, LANES // 2)


def group_tile(columns):
    """The tile of the first `columns` ≤ 128 columns of a group; its last vector may be cut."""
    offsets = tuple(range(0, columns, LANES))
    return Tile(LANES, offsets, (0,) * len(offsets), columns - offsets[-1])


def group_tiles(width):
    """(tile of a whole group, tile of what is left after the last whole one)."""
    rest = width % GROUP
    return group_tile(GROUP), group_tile(rest or GROUP)


@inline
def row_words(row_id, column, stream, k0, k1):
    """The random words of the 128 columns that start at `column`."""
    row = np.uint64(row_id)
    block = np.uint32(column // GROUP * LANES)
    return words(block, np.uint32(row), np.uint32(row >> np.uint64(32)), stream, k0, k1)


@intrinsic
def words(typingctx, block, low, high, stream, k0, k1):
    kind = Registers(types.uint32, LANES, 4)

    def generate(context, builder, signature, args):
        scalars = [splat(builder, x, LANES) for x in args]
        # Lane i has block + i; the other words of the counter are the same in all lanes.
        counter = [builder.add(scalars[0], Constant(WORDS, list(range(LANES)))), *scalars[1:4]]
        return pack(context, builder, kind, _rounds(builder, counter, scalars[4:]))

    return kind(*[types.uint32] * 6), generate


def _rounds(builder, counter, key):
    # The ten rounds of philox.philox on 16 lanes: block + 0 … block + 15, other counter words and the key the same.
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        h0, l0 = _high_low(builder, c0, int(MULTIPLIER_0))
        h1, l1 = _high_low(builder, c2, int(MULTIPLIER_1))
        c0 = builder.xor(builder.xor(h1, c1), k0)
        c2 = builder.xor(builder.xor(h0, c3), k1)
        c1, c3 = l1, l0
        k0 = builder.add(k0, Constant(WORDS, [int(WEYL_0)] * LANES))
        k1 = builder.add(k1, Constant(WORDS, [int(WEYL_1)] * LANES))
    return c0, c1, c2, c3


def _high_low(builder, x, multiplier):
    """Upper and lower words of the 64-bit products, from products of the even and of the odd lanes."""
    # Plainly: product = uint64(x) * multiplier; high = product >> 32, low = product & 0xFFFFFFFF. Vectors of 64-bit
    # lanes hold half as many numbers, so even and odd lanes are multiplied apart and their halves woven together again.
    pairs = builder.bitcast(x, PAIRS)
    factor, low_word = Constant(PAIRS, [multiplier] * (LANES // 2)), Constant(PAIRS, [0xFFFFFFFF] * (LANES // 2))
    shift = Constant(PAIRS, [32] * (LANES // 2))
    even = builder.bitcast(builder.mul(builder.and_(pairs, low_word), factor), WORDS)
    odd = builder.bitcast(builder.mul(builder.lshr(pairs, shift), factor), WORDS)
    both = range(0, LANES, 2)
    high = [lane for i in both for lane in (i + 1, LANES + i + 1)]
    low = [lane for i in both for lane in (i, LANES + i)]
    kind = ir.VectorType(INT32, LANES)
    return (
        builder.shuffle_vector(even, odd, Constant(kind, high)),
        builder.shuffle_vector(even, odd, Constant(kind, low)),
    )


def _halves(builder, value, count):
    """16-bit numbers in uint32 lanes: low and high half of each word."""
    low, shift = Constant(WORDS, [0xFFFF] * LANES), Constant(WORDS, [16] * LANES)
    # Words that no vector of the tile needs are left out: two vectors take one word.
    for word in unpack(builder, value, 4)[: (count + 1) // 2]:
        yield builder.and_(word, low)
        yield builder.lshr(word, shift)


@intrinsic
def at_least(typingctx, tile, bits, threshold):
    count = tile.tile.vectors
    kind = mask_of(Registers(types.uint32, LANES, count))

    def generate(context, builder, signature, args):
        limit = splat(builder, args[2], LANES)
        halves = list(_halves(builder, args[1], count))[:count]
        return pack(context, builder, kind, [builder.icmp_unsigned(">=", half, limit) for half in halves])

    return kind(tile, bits, types.uint32), generate


@intrinsic
def fractions(typingctx, tile, bits, like):
    kind = registers_type(tile, like)

    def generate(context, builder, signature, args):
        vector = ir.VectorType(context.get_value_type(kind.dtype), LANES)
        unit = Constant(vector, [2.0**-16] * LANES)
        halves = list(_halves(builder, args[1], kind.vectors))[: kind.vectors]
        return pack(context, builder, kind, [builder.fmul(builder.uitofp(h, vector), unit) for h in halves])

    return kind(tile, bits, like), generate
