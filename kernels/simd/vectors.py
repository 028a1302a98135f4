"""The vocabulary of the vector kernels: rows of registers, written as LLVM vector instructions.

A value of type `Registers` is one tile of a row (tiles.py): an LLVM array of vectors that the optimiser keeps in
registers. Kernels say `sums = fma(load(tile, feats, first), factor, sums)` and get one vector instruction per vector
of the tile. All functions here are numba intrinsics; `tile` is a constant of the kernel, `first` the position of the
row's element 0 in the flattened array. Nothing reads or writes outside the tile's columns.

    zeros(tile, array)                 registers of 0 in the accumulation type of `array`
    full(tile, array, value)           the same of `value`; integers for an array of integers
    load(tile, array, first)           bfloat16 bit patterns (uint16) and int8 are widened to float32
    store(tile, array, first, r)       float32 is rounded to nearest even for uint16 arrays, cut for int8 ones
    store_past_caches(…)               the same; array and rows begin with cache lines, and nobody reads the row soon
    add, sub, mul, maximum (a, b)      element-wise
    scale(a, s)                        a * s, s a scalar
    fma(a, s, c)                       a * s + c, fused where the machine can
    fma_heads(tile, a, w, first, c)    the same with s = w.flat[first + head of the vector]
    greater, less, equal (a, b)        masks, lane by lane; false for NaN
    choose(m, a, b)                    a where m, else b
    prefetch(tile, array, first)       ask for the tile's cache lines
    at(array, position)                array[position], integers as int64, for positions that are not negative: numba's
                                       own look-up adds four instructions to each for Python's negative ones
    rolled()                           in a loop: leave it as it stands. LLVM's copies of eight turns, and a second loop
                                       for what remains, cost a short row one more branch that is guessed wrong

Vectors wider than the machine's are split by LLVM, so every function is correct on any CPU.
"""

import llvmlite.ir as ir
from llvmlite.ir import Constant
from numba.core import types
from numba.extending import intrinsic

from distgnn.kernels.simd.llvm import (
    INT32,
    cache_lines,
    comparison,
    element_pointer,
    elementwise,
    fused_multiply_add,
    load_vector,
    mask_of,
    narrow_bfloat16,
    pack,
    pieces,
    pointer_to,
    registers_type,
    splat,
    store_vector,
    unpack,
)


@intrinsic
def zeros(typingctx, tile, array):
    kind = registers_type(tile, array)

    def generate(context, builder, signature, args):
        return Constant(context.get_value_type(kind), None)

    return kind(tile, array), generate


@intrinsic
def full(typingctx, tile, array, value):
    kind = registers_type(tile, array)

    def generate(context, builder, signature, args):
        scalar = context.cast(builder, args[2], value, kind.dtype)
        return pack(context, builder, kind, [splat(builder, scalar, kind.lanes)] * kind.vectors)

    return kind(tile, array, value), generate


@intrinsic
def load(typingctx, tile, array, first):
    kind = registers_type(tile, array)

    def generate(context, builder, signature, args):
        # Offsets are constants of the tile: an address is one register plus a constant, and the loop over v is unrolled
        # here.
        row = element_pointer(context, builder, array, args[1], args[2])
        return pack(context, builder, kind, [load_vector(builder, tile.tile, v, row) for v in range(kind.vectors)])

    return kind(tile, array, types.int64), generate


@intrinsic
def store(typingctx, tile, array, first, registers):
    return _storing(tile, array, registers)


@intrinsic
def store_past_caches(typingctx, tile, array, first, registers):
    # Vectors that were moved back lie at no multiple of their size.
    whole = not tile.tile.last and all(offset % tile.tile.lanes == 0 for offset in tile.tile.offsets)
    return _storing(tile, array, registers, past_caches=whole and array.dtype == registers.dtype)


def _storing(tile, array, registers, past_caches=False):
    """Signature and generator of a store."""

    def generate(context, builder, signature, args):
        row = element_pointer(context, builder, array, args[1], args[2])
        vectors = unpack(builder, args[3], registers.vectors)
        if array.dtype == types.uint16:
            vectors = narrow_bfloat16(builder, vectors)
        for v, (offset, value) in enumerate(zip(tile.tile.offsets, vectors, strict=True)):
            if array.dtype == types.int8:
                value = builder.fptosi(value, ir.VectorType(INT32, registers.lanes))
                value = builder.trunc(value, ir.VectorType(ir.IntType(8), registers.lanes))
            store_vector(builder, value, row, offset, pieces(tile.tile, v), past_caches)
        return context.get_dummy_value()

    return types.void(tile, array, types.int64, registers), generate


@intrinsic
def add(typingctx, a, b):
    return a(a, a), elementwise(ir.IRBuilder.fadd)


@intrinsic
def sub(typingctx, a, b):
    return a(a, a), elementwise(ir.IRBuilder.fsub)


@intrinsic
def mul(typingctx, a, b):
    return a(a, a), elementwise(ir.IRBuilder.fmul)


@intrinsic
def greater(typingctx, a, b):
    return mask_of(a)(a, a), elementwise(comparison(">"))


@intrinsic
def less(typingctx, a, b):
    return mask_of(a)(a, a), elementwise(comparison("<"))


@intrinsic
def equal(typingctx, a, b):
    return mask_of(a)(a, a), elementwise(comparison("=="))


@intrinsic
def maximum(typingctx, a, b):
    """The larger; a where b is a NaN."""
    return a(a, a), elementwise(lambda builder, x, y: builder.select(builder.fcmp_ordered(">", y, x), y, x))


@intrinsic
def choose(typingctx, mask, a, b):
    return a(mask, a, a), elementwise(ir.IRBuilder.select)


@intrinsic
def scale(typingctx, a, factor):
    return a(a, a.dtype), elementwise(ir.IRBuilder.fmul)


@intrinsic
def fma(typingctx, a, factor, c):
    return a(a, a.dtype, a), elementwise(fused_multiply_add)


@intrinsic
def fma_heads(typingctx, tile, a, weights, first, c):
    def generate(context, builder, signature, args):
        row = element_pointer(context, builder, weights, args[2], args[3])
        element = context.get_data_type(weights.dtype)
        # One load and one spread per head, used for all vectors of the head.
        factors = {}
        for head in sorted(set(tile.tile.heads)):
            scalar = builder.load(pointer_to(builder, row, head, element))
            factors[head] = splat(builder, scalar, a.lanes)
        triples = zip(
            unpack(builder, args[1], a.vectors),
            (factors[head] for head in tile.tile.heads),
            unpack(builder, args[4], a.vectors),
            strict=True,
        )
        return pack(context, builder, a, [fused_multiply_add(builder, x, y, z) for x, y, z in triples])

    return a(tile, a, weights, types.int64, a), generate


@intrinsic
def at(typingctx, array, position):
    # Positions as int64, so that position * width cannot overflow where indices are int32.
    kind = types.int64 if isinstance(array.dtype, types.Integer) else array.dtype

    def generate(context, builder, signature, args):
        value = builder.load(element_pointer(context, builder, array, args[0], args[1]))
        return context.cast(builder, value, array.dtype, kind)

    return kind(array, types.int64), generate


@intrinsic
def rolled(typingctx):
    """A call that does nothing and may not be copied to where it did not stand."""

    def generate(context, builder, signature, args):
        # An empty piece of assembly with side effects, which LLVM may neither remove nor (convergent) duplicate: so it
        # cannot unroll the loop around it. RMAT, D = 16: 6.6 ms unrolled by LLVM, 6.1 ms two arcs a turn as written.
        nothing = ir.InlineAsm(ir.FunctionType(ir.VoidType(), []), "", "", side_effect=True)
        builder.call(nothing, [], attrs=("convergent",))
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def prefetch(typingctx, tile, array, first):
    """Touch one byte of each cache line that the tile can reach: one each 64 bytes, and the last byte.

    Rows of 47 floats are 188 bytes: 15 of 16 of them lie in four lines, 128 to 191 bytes from the first to the last.
    """

    def generate(context, builder, signature, args):
        # A request is a hint: beyond the end of the array it does nothing, so no check is needed. Arguments of
        # llvm.prefetch: read (0), keep in all levels (3), data (1). Level 2 only, or without keeping, was no faster
        # (docs/internals/kernels.md).
        byte = ir.IntType(8)
        row = builder.bitcast(element_pointer(context, builder, array, args[1], args[2]), byte.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [row.type, INT32, INT32, INT32])
        function = builder.module.declare_intrinsic("llvm.prefetch", (), kind)
        for line in cache_lines(tile.tile, array.dtype.bitwidth // 8):
            builder.call(function, [pointer_to(builder, row, line, byte), INT32(0), INT32(3), INT32(1)])
        return context.get_dummy_value()

    return types.void(tile, array, types.int64), generate
