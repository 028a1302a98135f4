"""The vocabulary of the vector kernels: rows of registers, written as LLVM vector instructions.

A value of type `Registers` is one tile of a row (tiles.py): an LLVM array of vectors that the optimiser keeps in
registers. Kernels say `sums = fma(load(tile, feats, first), factor, sums)` and get one vector instruction per vector
of the tile. All functions here are numba intrinsics; `tile` is a constant of the kernel, `first` the position of the
row's element 0 in the flattened array. Nothing reads or writes outside the tile's columns.

    zeros(tile, array)                 registers of 0 in the accumulation type of `array`
    full(tile, array, value)           registers of `value`
    load(tile, array, first)           bfloat16 bit patterns (uint16) and int8 are widened to float32
    store(tile, array, first, r)       float32 is rounded to nearest even for uint16 arrays, cut for int8 ones
    add, sub, mul, maximum (a, b)      element-wise
    scale(a, s)                        a * s, s a scalar
    fma(a, s, c)                       a * s + c, fused where the machine can
    fma_heads(tile, a, w, first, c)    the same with s = w.flat[first + head of the vector]
    integers(tile, like, value)        registers of an integer in the dtype of the array `like`
    greater(a, b), equal(a, b), less(a, b), both(m, n), either(m, n)    masks, lane by lane; false for NaN
    choose(m, a, b)                    a where m, else b
    prefetch(tile, array, first)       ask for the tile's cache lines

Vectors wider than the machine's are split by LLVM, so every function is correct on any CPU.
"""

import llvmlite.ir as ir
from llvmlite.ir import Constant
from numba.core import types
from numba.core.imputils import lower_constant
from numba.extending import intrinsic, models, register_model, typeof_impl

from .tiles import Tile

CACHE_LINE = 64
INT32 = ir.IntType(32)


class TileType(types.Type):
    """A Tile known to the compiler."""

    def __init__(self, tile):
        self.tile = tile
        super().__init__(str(tile))


class Registers(types.Type):
    """`vectors` × `lanes` elements of a float dtype, in registers."""

    def __init__(self, dtype, lanes, vectors):
        self.dtype, self.lanes, self.vectors = dtype, lanes, vectors
        super().__init__(f"Registers({dtype}, {lanes}, {vectors})")


register_model(TileType)(models.OpaqueModel)


@typeof_impl.register(Tile)
def _type_of_tile(tile, context):
    return TileType(tile)


@lower_constant(TileType)
def _constant_tile(context, builder, tile_type, value):
    return context.get_dummy_value()


@register_model(Registers)
class _RegistersModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        element = ir.IntType(1) if kind.dtype == types.boolean else manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.ArrayType(ir.VectorType(element, kind.lanes), kind.vectors))


# --- Python values that stand for LLVM ones while code is generated -------------------------------------------------


def registers_type(tile_type, array_type):
    """bfloat16 (uint16) and int8 are float32 in registers; everything else is itself."""
    dtype = types.float32 if array_type.dtype in (types.uint16, types.int8) else array_type.dtype
    return Registers(dtype, tile_type.tile.lanes, tile_type.tile.vectors)


def unpack(builder, value, count):
    return [builder.extract_value(value, v) for v in range(count)]


def pack(context, builder, kind, vectors):
    value = Constant(context.get_value_type(kind), ir.Undefined)
    for v, vector in enumerate(vectors):
        value = builder.insert_value(value, vector, v)
    return value


def splat(builder, scalar, lanes):
    vector = ir.VectorType(scalar.type, lanes)
    one = builder.insert_element(Constant(vector, ir.Undefined), scalar, INT32(0))
    zero_mask = Constant(ir.VectorType(INT32, lanes), [0] * lanes)
    return builder.shuffle_vector(one, Constant(vector, ir.Undefined), zero_mask)


def element_pointer(context, builder, array_type, array, position):
    """Address of array.flat[position]."""
    data = context.make_array(array_type)(context, builder, array).data
    return builder.gep(data, [position])


def pointer_to(builder, row, offset, kind):
    """Address of row[offset] as a pointer to `kind`, a vector or an element."""
    return builder.bitcast(builder.gep(row, [ir.IntType(64)(offset)]), kind.as_pointer())


def pieces(tile, v):
    """Vector v as (first lane, lanes) parts: one, or for a cut vector one for each binary digit of its length."""
    length = tile.last if tile.last and v + 1 == tile.vectors else tile.lanes
    first = 0
    for size in (64, 32, 16, 8, 4, 2, 1):
        if length & size:
            yield first, size
            first += size


def load_vector(builder, row, offset, lanes, parts):
    """Lanes outside the parts are 0 and not read; any alignment."""
    element = row.type.pointee
    whole = Constant(ir.VectorType(element, lanes), None)
    for first, size in parts:
        part = ir.VectorType(element, size)
        part = builder.load(pointer_to(builder, row, offset + first, part), align=element_bytes(element))
        if size == lanes:
            return part
        wide = select_lanes(builder, part, part, [min(i, size - 1) for i in range(lanes)])
        whole = select_lanes(
            builder, whole, wide, [lanes + i - first if first <= i < first + size else i for i in range(lanes)]
        )
    return whole


def store_vector(builder, value, row, offset, parts):
    """Memory outside the parts is not touched; any alignment."""
    for first, size in parts:
        part = value if size == value.type.count else select_lanes(builder, value, value, range(first, first + size))
        address = pointer_to(builder, row, offset + first, part.type)
        builder.store(part, address, align=element_bytes(value.type.element))


def select_lanes(builder, a, b, lanes):
    lanes = list(lanes)
    return builder.shuffle_vector(a, b, Constant(ir.VectorType(INT32, len(lanes)), lanes))


def element_bytes(element):
    return {"float": 4, "double": 8}.get(str(element)) or element.width // 8


def map_vectors(builder, operation, *values):
    """operation(builder, …) on vector v of every value."""
    return [operation(builder, *vectors) for vectors in zip(*values, strict=True)]


def call_llvm(builder, name, result, arguments):
    kind = ir.FunctionType(result, [a.type for a in arguments])
    suffix = f"v{result.count}{'f32' if isinstance(result.element, ir.FloatType) else 'f64'}"
    function = builder.module.globals.get(f"{name}.{suffix}") or ir.Function(builder.module, kind, f"{name}.{suffix}")
    return builder.call(function, arguments)


def widen_bfloat16(builder, half, lanes):
    """A bfloat16 is the upper half of a float32."""
    bits = builder.zext(half, ir.VectorType(INT32, lanes))
    bits = builder.shl(bits, splat(builder, INT32(16), lanes))
    return builder.bitcast(bits, ir.VectorType(ir.FloatType(), lanes))


def narrow_bfloat16(builder, vector, lanes):
    """Round to nearest, ties to even: add 0x7FFF and the lowest kept bit, cut. A NaN stays one (its top bits do)."""
    bits = builder.bitcast(vector, ir.VectorType(INT32, lanes))
    kept = builder.lshr(bits, splat(builder, INT32(16), lanes))
    lowest = builder.and_(kept, splat(builder, INT32(1), lanes))
    rounded = builder.add(builder.add(bits, splat(builder, INT32(0x7FFF), lanes)), lowest)
    rounded = builder.lshr(rounded, splat(builder, INT32(16), lanes))
    is_nan = builder.fcmp_unordered("uno", vector, vector)
    quiet = builder.or_(kept, splat(builder, INT32(0x40), lanes))
    return builder.trunc(builder.select(is_nan, quiet, rounded), ir.VectorType(ir.IntType(16), lanes))


# --- intrinsics -------------------------------------------------------------------------------------------------------


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
        row = element_pointer(context, builder, array, args[1], args[2])
        loaded = []
        for v, offset in enumerate(tile.tile.offsets):
            value = load_vector(builder, row, offset, kind.lanes, pieces(tile.tile, v))
            if array.dtype == types.uint16:
                value = widen_bfloat16(builder, value, kind.lanes)
            elif array.dtype == types.int8:
                value = builder.sitofp(value, ir.VectorType(ir.FloatType(), kind.lanes))
            loaded.append(value)
        return pack(context, builder, kind, loaded)

    return kind(tile, array, types.int64), generate


@intrinsic
def store(typingctx, tile, array, first, registers):
    def generate(context, builder, signature, args):
        row = element_pointer(context, builder, array, args[1], args[2])
        vectors = unpack(builder, args[3], registers.vectors)
        for v, (offset, value) in enumerate(zip(tile.tile.offsets, vectors, strict=True)):
            if array.dtype == types.uint16:
                value = narrow_bfloat16(builder, value, registers.lanes)
            elif array.dtype == types.int8:
                value = builder.fptosi(value, ir.VectorType(INT32, registers.lanes))
                value = builder.trunc(value, ir.VectorType(ir.IntType(8), registers.lanes))
            store_vector(builder, value, row, offset, pieces(tile.tile, v))
        return context.get_dummy_value()

    return types.void(tile, array, types.int64, registers), generate


def elementwise(operation, result=None):
    """An intrinsic's generator: the operation on each vector of its arguments, which are all registers."""

    def generate(context, builder, signature, args):
        values = [unpack(builder, x, kind.vectors) for x, kind in zip(args, signature.args, strict=True)]
        return pack(context, builder, signature.return_type, map_vectors(builder, operation, *values))

    return generate


def mask_of(kind):
    return Registers(types.boolean, kind.lanes, kind.vectors)


def comparison(sign):
    """Compare floats (false if either is a NaN) or signed integers."""

    def operation(builder, x, y):
        is_float = isinstance(x.type.element, ir.FloatType | ir.DoubleType)
        return builder.fcmp_ordered(sign, x, y) if is_float else builder.icmp_signed(sign, x, y)

    return operation


@intrinsic
def add(typingctx, a, b):
    return a(a, a), elementwise(lambda builder, x, y: builder.fadd(x, y))


@intrinsic
def sub(typingctx, a, b):
    return a(a, a), elementwise(lambda builder, x, y: builder.fsub(x, y))


@intrinsic
def mul(typingctx, a, b):
    return a(a, a), elementwise(lambda builder, x, y: builder.fmul(x, y))


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
def both(typingctx, m, n):
    return m(m, m), elementwise(lambda builder, x, y: builder.and_(x, y))


@intrinsic
def either(typingctx, m, n):
    return m(m, m), elementwise(lambda builder, x, y: builder.or_(x, y))


@intrinsic
def choose(typingctx, mask, a, b):
    return a(mask, a, a), elementwise(lambda builder, m, x, y: builder.select(m, x, y))


@intrinsic
def integers(typingctx, tile, like, value):
    kind = Registers(like.dtype, tile.tile.lanes, tile.tile.vectors)

    def generate(context, builder, signature, args):
        scalar = context.cast(builder, args[2], value, kind.dtype)
        return pack(context, builder, kind, [splat(builder, scalar, kind.lanes)] * kind.vectors)

    return kind(tile, like, value), generate


@intrinsic
def scale(typingctx, a, factor):
    def generate(context, builder, signature, args):
        factors = splat(builder, args[1], a.lanes)
        return pack(context, builder, a, [builder.fmul(x, factors) for x in unpack(builder, args[0], a.vectors)])

    return a(a, a.dtype), generate


@intrinsic
def fma(typingctx, a, factor, c):
    def generate(context, builder, signature, args):
        factors = splat(builder, args[1], a.lanes)
        pairs = zip(unpack(builder, args[0], a.vectors), unpack(builder, args[2], a.vectors), strict=True)
        return pack(context, builder, a, [_fma(builder, x, factors, z) for x, z in pairs])

    return a(a, a.dtype, a), generate


@intrinsic
def fma_heads(typingctx, tile, a, weights, first, c):
    def generate(context, builder, signature, args):
        row = element_pointer(context, builder, weights, args[2], args[3])
        element = context.get_data_type(weights.dtype)
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
        return pack(context, builder, a, [_fma(builder, x, y, z) for x, y, z in triples])

    return a(tile, a, weights, types.int64, a), generate


@intrinsic
def prefetch(typingctx, tile, array, first):
    """Touch one byte of each cache line that the tile can reach (an unaligned tile may end in one line more)."""

    def generate(context, builder, signature, args):
        byte = ir.IntType(8)
        row = builder.bitcast(element_pointer(context, builder, array, args[1], args[2]), byte.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [row.type, INT32, INT32, INT32])
        function = builder.module.globals.get("llvm.prefetch") or ir.Function(builder.module, kind, "llvm.prefetch")
        for line in _lines(tile.tile, array.dtype.bitwidth // 8):
            builder.call(function, [pointer_to(builder, row, line, byte), INT32(0), INT32(3), INT32(1)])
        return context.get_dummy_value()

    return types.void(tile, array, types.int64), generate


def _fma(builder, a, b, c):
    return call_llvm(builder, "llvm.fmuladd", a.type, [a, b, c])


def _lines(tile, size):
    """Byte offsets, a cache line apart, that cover the tile's columns."""
    first, end = min(tile.offsets) * size, (max(tile.offsets) + tile.lanes) * size
    return range(first, end, CACHE_LINE)
