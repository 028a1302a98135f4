"""What the vector intrinsics are lowered to: the types of tiles and registers, and LLVM instructions for them.

`Registers` is an LLVM array of vectors, which the optimiser keeps in registers. The functions below work on LLVM
values while numba generates code; vectors.py, vector_math.py and random_vectors.py build their intrinsics from them.
"""

import functools
import platform

import llvmlite.binding as binding
import llvmlite.ir as ir
from llvmlite.ir import Constant
from numba.core import types
from numba.core.imputils import lower_constant
from numba.extending import models, register_model, typeof_impl

from distgnn.kernels.runtime.tiles import Tile, narrows_bfloat16

CACHE_LINE = 64
SUBNORMAL = 0x90  # of either sign, as llvm.is.fpclass numbers what a number may be
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
    # A tile has no bytes at run time: all that kernels know of it is in its type.
    return context.get_dummy_value()


@register_model(Registers)
class _RegistersModel(models.PrimitiveModel):
    def __init__(self, manager, kind):
        # Lanes of a mask are one bit, as LLVM compares and selects them; numba's own booleans are bytes.
        element = ir.IntType(1) if kind.dtype == types.boolean else manager.lookup(kind.dtype).get_value_type()
        super().__init__(manager, kind, ir.ArrayType(ir.VectorType(element, kind.lanes), kind.vectors))


def registers_type(tile_type, array_type):
    """bfloat16 (uint16) and int8 are float32 in registers; everything else is itself."""
    dtype = types.float32 if array_type.dtype in (types.uint16, types.int8) else array_type.dtype
    return Registers(dtype, tile_type.tile.lanes, tile_type.tile.vectors)


def unpack(builder, value, count):
    return [builder.extract_value(value, v) for v in range(count)]


def pack(context, builder, kind, vectors):
    # Building the array costs nothing: LLVM takes it apart again and keeps the vectors in registers.
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


# A cut vector is read and written in parts of 16, 8, 4, 2, 1 lanes rather than under a mask: masked instructions are
# missing or slow on some machines, and a part never touches memory beyond the row.
def pieces(tile, v):
    """Vector v as (first lane, lanes) parts: one, or for a cut vector one for each binary digit of its length."""
    length = tile.last if tile.last and v + 1 == tile.vectors else tile.lanes
    first = 0
    for size in (64, 32, 16, 8, 4, 2, 1):
        if length & size:
            yield first, size
            first += size


def load_vector(builder, tile, v, row):
    """Vector v of a tile of a row, bfloat16 bit patterns and int8 as float32; any alignment.

    Lanes behind the end of a cut tile are 0 and not read.
    """
    value = _load(builder, row, tile.offsets[v], tile.lanes, pieces(tile, v))
    # bfloat16 is a storage format here: sums and products are float32.
    if row.type.pointee == ir.IntType(16):
        return widen_bfloat16(builder, value, tile.lanes)
    if row.type.pointee == ir.IntType(8):
        return builder.sitofp(value, ir.VectorType(ir.FloatType(), tile.lanes))
    return value


def _load(builder, row, offset, lanes, parts):
    element = row.type.pointee
    whole = Constant(ir.VectorType(element, lanes), None)
    for first, size in parts:
        part = ir.VectorType(element, size)
        part = builder.load(pointer_to(builder, row, offset + first, part), align=element_bytes(element))
        if size == lanes:
            return part
        # A shuffle takes two vectors of one length: the part is lengthened (its last lane repeated) and then put in
        # place.
        wide = select_lanes(builder, part, part, [min(i, size - 1) for i in range(lanes)])
        whole = select_lanes(
            builder, whole, wide, [lanes + i - first if first <= i < first + size else i for i in range(lanes)]
        )
    return whole


def store_vector(builder, value, row, offset, parts, past_caches=False):
    """Memory outside the parts is not touched; any alignment, but whole vectors at multiples of their size past caches.

    Notes: x86 writes such lines to memory without reading them first. The lock that a thread takes after a kernel waits
        until they are there, so other threads see them.
    """
    for first, size in parts:
        part = value if size == value.type.count else select_lanes(builder, value, value, range(first, first + size))
        address, each = pointer_to(builder, row, offset + first, part.type), element_bytes(value.type.element)
        stored = builder.store(part, address, align=each * size if past_caches else each)
        if past_caches:
            stored.set_metadata("nontemporal", builder.module.add_metadata([INT32(1)]))


def select_lanes(builder, a, b, lanes):
    lanes = list(lanes)
    return builder.shuffle_vector(a, b, Constant(ir.VectorType(INT32, len(lanes)), lanes))


def element_bytes(element):
    return {"float": 4, "double": 8}.get(str(element)) or element.width // 8


def call_llvm(builder, name, result, arguments):
    """An intrinsic on float vectors; the first argument's type is part of its name, as in llvm.rint.v16f32."""
    kind = arguments[0].type
    name = f"{name}.v{kind.count}{'f32' if isinstance(kind.element, ir.FloatType) else 'f64'}"
    signature = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(builder.module.declare_intrinsic(name, (), signature), arguments)


def widen_bfloat16(builder, half, lanes):
    """A bfloat16 is the upper half of a float32."""
    bits = builder.zext(half, ir.VectorType(INT32, lanes))
    bits = builder.shl(bits, splat(builder, INT32(16), lanes))
    return builder.bitcast(bits, ir.VectorType(ir.FloatType(), lanes))


def narrow_bfloat16(builder, vectors):
    """Round to nearest, ties to even; a NaN stays one (its top bits do)."""
    if not (narrows_bfloat16() and {str(vector.type) for vector in vectors} == {"<16 x float>"}):
        return [_narrowed(builder, vector) for vector in vectors]
    binding.initialize_native_asmparser()  # for the line of assembly; once is enough, more is harmless
    # The processor has an instruction for it, which takes the smallest numbers, those below 2^-126, for 0. They are
    # rare: where a row has one, the row is rounded as everywhere else, and bits do not depend on the machine.
    tiny = [_is_tiny(builder, vector) for vector in vectors]
    any_tiny = builder.bitcast(functools.reduce(builder.or_, tiny), ir.IntType(16))
    with builder.if_else(builder.icmp_unsigned("!=", any_tiny, ir.IntType(16)(0)), likely=False) as (rare, usual):
        with rare:
            slow, end_of_slow = [_narrowed(builder, vector) for vector in vectors], builder.block
        with usual:
            half = ir.VectorType(ir.IntType(16), 16)
            convert = ir.InlineAsm(ir.FunctionType(half, [vectors[0].type]), "vcvtneps2bf16 $1, $0", "=v,v")
            fast, end_of_fast = [builder.call(convert, [vector]) for vector in vectors], builder.block
    rounded = []
    for one, other in zip(slow, fast, strict=True):
        phi = builder.phi(one.type)
        phi.add_incoming(one, end_of_slow)
        phi.add_incoming(other, end_of_fast)
        rounded.append(phi)
    return rounded


def _is_tiny(builder, vector):
    """Lanes that are not 0 but below 2^-126."""
    lanes = ir.VectorType(ir.IntType(1), vector.type.count)
    return call_llvm(builder, "llvm.is.fpclass", lanes, [vector, INT32(SUBNORMAL)])


def _narrowed(builder, vector):
    """Add 0x7FFF and the lowest kept bit, cut."""
    # Plainly: keep the upper 16 bits, and add 1 if the lower ones are more than half, or half and the kept number is
    # odd. 0x7FFF + (lowest kept bit) carries into the kept bits in exactly these cases: no branch, the same for all
    # lanes.
    lanes = vector.type.count
    bits = builder.bitcast(vector, ir.VectorType(INT32, lanes))
    kept = builder.lshr(bits, splat(builder, INT32(16), lanes))
    lowest = builder.and_(kept, splat(builder, INT32(1), lanes))
    rounded = builder.add(builder.add(bits, splat(builder, INT32(0x7FFF), lanes)), lowest)
    rounded = builder.lshr(rounded, splat(builder, INT32(16), lanes))
    is_nan = builder.fcmp_unordered("uno", vector, vector)
    quiet = builder.or_(kept, splat(builder, INT32(0x40), lanes))
    return builder.trunc(builder.select(is_nan, quiet, rounded), ir.VectorType(ir.IntType(16), lanes))


def elementwise(operation):
    """An intrinsic's generator: the operation on each vector of its arguments; a scalar is one for all of them."""

    def generate(context, builder, signature, args):
        result, values = signature.return_type, []
        for value, kind in zip(args, signature.args, strict=True):
            if isinstance(kind, Registers):
                values.append(unpack(builder, value, kind.vectors))
            else:
                values.append([splat(builder, value, result.lanes)] * result.vectors)
        vectors = [operation(builder, *each) for each in zip(*values, strict=True)]
        return pack(context, builder, result, vectors)

    return generate


def mask_of(kind):
    return Registers(types.boolean, kind.lanes, kind.vectors)


def comparison(sign):
    """Compare floats (false if either is a NaN) or signed integers."""

    def operation(builder, x, y):
        is_float = isinstance(x.type.element, ir.FloatType | ir.DoubleType)
        return builder.fcmp_ordered(sign, x, y) if is_float else builder.icmp_signed(sign, x, y)

    return operation


def fused_multiply_add(builder, a, b, c):
    return call_llvm(builder, "llvm.fmuladd", a.type, [a, b, c])


def held(builder, vectors):
    """The same vectors; what makes them stands before all that is read from memory later."""
    # LLVM else reads and widens a whole row first, and has no registers left for the sums: of 16 vectors of sums in the
    # backward pass of attention eight were read and written for every arc. An empty piece of assembly that takes the
    # vectors and gives them back keeps the order. Of x86 alone, whose letter for a vector register this is.
    kinds, count = [vector.type for vector in vectors], len(vectors)
    whole = {kind.count * element_bytes(kind.element) for kind in kinds} <= {16, 32, 64}
    if platform.machine() not in ("x86_64", "AMD64") or not whole:
        return vectors
    places = ",".join(["=v"] * count + [str(k) for k in range(count)] + ["~{memory}"])
    nothing = ir.InlineAsm(ir.FunctionType(ir.LiteralStructType(kinds), kinds), "", places, side_effect=True)
    same = builder.call(nothing, vectors)
    return [builder.extract_value(same, k) for k in range(count)]


def cache_lines(tile, size):
    """Byte offsets, a line apart, that cover the tile's columns; and the last byte if it may lie in one more line."""
    # A request for each cache line, not for each element; addresses of rows are known at run time only, so one more.
    first, end = min(tile.offsets) * size, (max(tile.offsets) + tile.lanes) * size
    lines = list(range(first, end, CACHE_LINE))
    return [*lines, end - 1] if (end - first) % CACHE_LINE > 1 else lines
