"""Philox on 16 lanes: the random bits of 128 neighbouring columns of a row, as registers.

    row_words(row_id, column, stream, k0, k1) the words of the 128 columns from `column` on
    words(block, low, high, stream, k0, k1)   four words of 16 blocks, block + 0 … block + 15: Registers(uint32, 16, 4)
    at_least(tile, words, threshold)          mask: vector v is true where 16-bit half v of the words >= threshold
    fractions(tile, words, like)              the halves / 65536 in [0, 1), as floats of the accumulation type of `like`

    each_group(whole, part, function, width, …)    function(tile, column, …) for all columns of a row

The layout is the one philox.py describes. Tiles: `group_tiles`, 16 lanes at offsets 0, 16, … 112.
A kernel of rows with fewer than 128 columns knows no whole groups: it compiles in a third of the time.
"""

import llvmlite.ir as ir
import numpy as np
from llvmlite.ir import Constant
from numba.core import types
from numba.extending import intrinsic

from distgnn.kernels.runtime.jit import inline
from distgnn.kernels.runtime.tiles import Tile, cut_tile
from distgnn.kernels.simd.llvm import INT32, Registers, mask_of, pack, registers_type, splat, unpack
from distgnn.kernels.simd.philox import GROUP, LANES, MULTIPLIER_0, MULTIPLIER_1, WEYL_0, WEYL_1

INT64 = ir.IntType(64)
WORDS = ir.VectorType(INT32, LANES)
PAIRS = ir.VectorType(INT64, LANES // 2)


def kernel_width(width: int) -> int:
    """The least width that takes the same kernel: with whole groups or without, and the same rest behind them."""
    return min(width, GROUP + width % GROUP)


def group_tiles(width: int) -> tuple[Tile | None, Tile | None]:
    """(tile of a whole group, tile of the columns after the last whole one); None: a row of this width has none."""
    rest = width % GROUP
    return cut_tile(LANES, GROUP) if width >= GROUP else None, cut_tile(LANES, rest) if rest else None


@inline(counted=False)
def each_group(whole, part, function, width, *args):
    """Calls function(tile, first column, *args) for each group of 128 columns of a row, and for the rest."""
    end = width // GROUP * GROUP
    if whole is not None:
        for column in range(0, end, GROUP):
            function(whole, column, *args)
    if part is not None:
        function(part, end, *args)


@inline(counted=False)
def row_words(row_id, column, stream, k0, k1):
    """The random words of the 128 columns that start at `column`."""
    row = np.uint64(row_id)
    block = np.uint32(column // GROUP * LANES)
    return words(block, np.uint32(row), np.uint32(row >> np.uint64(32)), stream, k0, k1)


@intrinsic
def words(typingctx, block, low, high, stream, k0, k1):
    kind = Registers(types.uint32, LANES, 4)

    def generate(context, builder, signature, args):
        # Lane i has block + i; the other words of the counter are the same in all lanes.
        blocks = tuple(
            builder.add(_spread(builder, args[0]), Constant(PAIRS, list(range(first, LANES, 2)))) for first in (0, 1)
        )
        return pack(context, builder, kind, _rounds(builder, (blocks, *args[1:4]), args[4:]))

    return kind(*[types.uint32] * 6), generate


# A word of all 16 lanes is a pair of vectors of 64-bit lanes, the even lanes and the odd ones, whose upper halves hold
# anything: products read the lower ones alone, and are 64 bits wide. A word that is the same in all lanes is a scalar.
# So nothing is woven before the last round, and half of the first two rounds is done once for a row.
def _rounds(builder, counter, key):
    """The ten rounds of philox.py on 16 lanes: block + 0 … block + 15, other counter words and the key the same."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        h0, l0 = _high_low(builder, c0, MULTIPLIER_0)
        h1, l1 = _high_low(builder, c2, MULTIPLIER_1)
        c0, c1, c2, c3 = _mix(builder, h1, c1, k0), l1, _mix(builder, h0, c3, k1), l0
        k0, k1 = builder.add(k0, INT32(WEYL_0)), builder.add(k1, INT32(WEYL_1))
    return [_woven(builder, word) for word in (c0, c1, c2, c3)]


def _high_low(builder, x, multiplier):
    """Upper and lower words of the 64-bit products."""
    # Plainly: product = uint64(x) * multiplier; high = product >> 32, low = product & 0xFFFFFFFF.
    if not isinstance(x, tuple):
        product = builder.mul(builder.zext(x, INT64), INT64(multiplier))
        return builder.trunc(builder.lshr(product, INT64(32)), INT32), builder.trunc(product, INT32)
    factor, low_word, shift = (Constant(PAIRS, [n] * (LANES // 2)) for n in (multiplier, 0xFFFFFFFF, 32))
    products = tuple(builder.mul(builder.and_(half, low_word), factor) for half in x)
    return tuple(builder.lshr(half, shift) for half in products), products


def _mix(builder, a, b, key):
    """a ^ b ^ key, the key a scalar."""
    if isinstance(b, tuple) and not isinstance(a, tuple):
        a, b = b, a
    if not isinstance(b, tuple):
        b = builder.xor(b, key)
        if not isinstance(a, tuple):
            return builder.xor(a, b)
        return tuple(builder.xor(half, _spread(builder, b)) for half in a)
    return tuple(builder.xor(builder.xor(half, other), _spread(builder, key)) for half, other in zip(a, b, strict=True))


def _spread(builder, word):
    return splat(builder, builder.zext(word, INT64), LANES // 2)


def _woven(builder, halves):
    """The 16 lanes of a word in order."""
    even, odd = halves
    low_word, shift = (Constant(PAIRS, [n] * (LANES // 2)) for n in (0xFFFFFFFF, 32))
    return builder.bitcast(builder.or_(builder.and_(even, low_word), builder.shl(odd, shift)), WORDS)


def _halves(builder, value, count):
    """The first `count` vectors of 16-bit numbers in uint32 lanes: low and high half of each word."""
    low, shift = Constant(WORDS, [0xFFFF] * LANES), Constant(WORDS, [16] * LANES)
    # Words that no vector of the tile needs are left out: two vectors take one word.
    halves = []
    for word in unpack(builder, value, 4)[: (count + 1) // 2]:
        halves += [builder.and_(word, low), builder.lshr(word, shift)]
    return halves[:count]


@intrinsic
def at_least(typingctx, tile, bits, threshold):
    count = tile.tile.vectors
    kind = mask_of(Registers(types.uint32, LANES, count))

    def generate(context, builder, signature, args):
        limit = splat(builder, args[2], LANES)
        halves = _halves(builder, args[1], count)
        return pack(context, builder, kind, [builder.icmp_unsigned(">=", half, limit) for half in halves])

    return kind(tile, bits, types.uint32), generate


@intrinsic
def fractions(typingctx, tile, bits, like):
    kind = registers_type(tile, like)

    def generate(context, builder, signature, args):
        vector = ir.VectorType(context.get_value_type(kind.dtype), LANES)
        unit = Constant(vector, [2.0**-16] * LANES)
        halves = _halves(builder, args[1], kind.vectors)
        return pack(context, builder, kind, [builder.fmul(builder.uitofp(h, vector), unit) for h in halves])

    return kind(tile, bits, like), generate
