"""Philox on 16 lanes: the random bits of 128 neighbouring columns of a row, as registers.

    row_words(row_id, column, stream, k0, k1) the words of the 128 columns from `column` on
    words(block, low, high, stream, k0, k1)   four words of 16 blocks, block + 0 … block + 15: Registers(uint32, 16, 4)
    at_least(tile, words, threshold)          mask: vector v is true where 16-bit half v of the words >= threshold
    fractions(tile, words, like)              the halves / 65536 in [0, 1), as floats of the accumulation type of `like`

    each_group(whole, part, function, width, …)    function(tile, column, …) for all columns of a row

Tiles: `group_tiles`, 16 lanes at offsets 0, 16, … 112.
A kernel of rows with fewer than 128 columns knows no whole groups: it compiles in a third of the time.

Philox 4x32-10: random bits as a function of a counter (Salmon et al., SC 2011). No state, no order, no threads.

The bits of row `v`, column `c` of dropout site `s` in training step `t` are found in two steps:

    (k0, k1, stream, _) = philox(counter=(t low, t high, s, TAG), key=(seed low, seed high))     # once per call
    words               = philox(counter=(block, v low, v high, stream), key=(k0, k1))           # per 8 columns

Columns are taken in groups of 128. Inside group g, column r has lane r % 16, block 16 g + r % 16, and the 16-bit
half r // 16 of its block's four words (low half first). So 16 neighbouring columns are the same half of 16 blocks:
a vector kernel needs no shuffles. The layout is the same on every machine, whatever its vector width.
"""

import llvmlite.ir as ir
import numpy as np
from llvmlite.ir import Constant
from numba.core import types
from numba.extending import intrinsic

from distgnn.kernels.runtime.jit import inline
from distgnn.kernels.runtime.tiles import Tile, cut_tile
from distgnn.kernels.simd.llvm import INT32, Registers, mask_of, pack, registers_type, splat, unpack

# The constants of the paper: the key grows by them (WEYL) from round to round, the counter is multiplied.
MULTIPLIER_0, MULTIPLIER_1 = 0xD2511F53, 0xCD9E8D57
WEYL_0, WEYL_1 = 0x9E3779B9, 0xBB67AE85
DROPOUT_TAG = 0x64726F70  # "drop"
ROUNDING_TAG = 0x726F756E  # "roun": other draws than dropout's
BELOW = 1 - 2.0**-20  # keeps the largest code, plus u < 1, below LEVELS + 1 whatever the rounding of 1 / scale
# One draw is 16 blocks of four words: 64 words of 32 bits, or 128 numbers of 16. The width does not follow the
# machine's registers, or a mask would differ between machines.
GROUP = 128
LANES = 16


def philox_python(counter, key):
    """Ten rounds on four counter words with two key words, on Python integers or uint64 arrays."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        p0, p1 = MULTIPLIER_0 * c0, MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = (k0 + WEYL_0) & 0xFFFFFFFF, (k1 + WEYL_1) & 0xFFFFFFFF
    return c0, c1, c2, c3


def derive_key(seed, step, site, tag=DROPOUT_TAG):
    """(k0, k1, stream) of one training step and site, as uint32."""
    # Once per call, with Python integers: kernels get three words, not five, and two steps never share a key.
    seed, step = int(seed) & (2**64 - 1), int(step) & (2**64 - 1)
    counter = (step & 0xFFFFFFFF, step >> 32, int(site) & 0xFFFFFFFF, tag)
    k0, k1, stream, _ = philox_python(counter, (seed & 0xFFFFFFFF, seed >> 32))
    return np.uint32(k0), np.uint32(k1), np.uint32(stream)


def mask_parameters(p: float, dtype: np.dtype) -> tuple[np.uint32, np.floating]:
    """(16-bit threshold, scale of what is kept) of a dropout with probability p."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"p must be in [0, 1], got {p}")
    # Up to 65536, which no 16-bit word reaches: p = 1 drops all. The threshold is therefore held in 32 bits.
    return np.uint32(round(p * 65536)), np.dtype(dtype).type(1 / (1 - p) if p < 1 else 0)


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
    """The ten rounds on 16 lanes: block + 0 … block + 15, other counter words and the key the same."""
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
