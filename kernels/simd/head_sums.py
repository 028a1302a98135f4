"""A weighted row added to sums and, while it is in registers, its dot product with another row, head by head.

add_by_head(tile, r, array, first)    array.flat[first + h] += sum of the columns of head h
own_columns(tile, r, array)    registers, one after the other, to array.flat; lanes that a neighbour has too become 0
add_and_dot(tile, heads_tile, array, first, weights, place, mine, sums)
    (sums + w[head of the vector] * row, dots): row is array.flat[first + …], w is weights.flat[place + …], and dots are
    registers of `heads_tile`: for each head the sum over the tile's columns of row * mine, `mine` as from own_columns

Each vector is read, widened, added and multiplied before the next, so that no more registers are in use than for sums.
"""

from typing import Any

import llvmlite.ir as ir
from llvmlite.ir import Constant
from numba.core import types
from numba.extending import intrinsic

from distgnn.kernels.simd.llvm import (
    INT32,
    Registers,
    element_bytes,
    element_pointer,
    fused_multiply_add,
    held,
    load_vector,
    pack,
    pointer_to,
    registers_type,
    select_lanes,
    splat,
    store_vector,
    unpack,
)

HELD = 4  # vectors of a row whose sums are finished before the next are read


@intrinsic
def own_columns(typingctx, tile, registers, array):
    def generate(context, builder, signature, args):
        row = element_pointer(context, builder, array, args[2], ir.IntType(64)(0))
        for v, vector in enumerate(unpack(builder, args[1], registers.vectors)):
            own = _own_lanes(builder, tile.tile, v, vector)
            store_vector(builder, own, row, v * registers.lanes, [(0, registers.lanes)])
        return context.get_dummy_value()

    return types.void(tile, registers, array), generate


@intrinsic
def add_by_head(typingctx, tile, registers, array, first):
    def generate(context, builder, signature, args):
        row, sums = element_pointer(context, builder, array, args[2], args[3]), dict[int, Any]()
        for v, vector in enumerate(unpack(builder, args[1], registers.vectors)):
            own, head = _own_lanes(builder, tile.tile, v, vector), tile.tile.heads[v]
            sums[head] = builder.fadd(sums[head], own) if head in sums else own
        for head, value in zip(sums, _totals(builder, list(sums.values())), strict=True):
            place = pointer_to(builder, row, head, row.type.pointee)
            builder.store(builder.fadd(builder.load(place), value), place)
        return context.get_dummy_value()

    return types.void(tile, registers, array, types.int64), generate


@intrinsic
def add_and_dot(typingctx, tile, heads_tile, array, first, weights, place, mine, sums):
    kind, count = registers_type(tile, array), heads_tile.tile
    dots_kind = Registers(kind.dtype, count.lanes, count.vectors)
    result = types.Tuple([sums, dots_kind])  # type: ignore[attr-defined]

    def generate(context, builder, signature, args):
        # Plainly: sums += w[head] * row; dots[head] = ⟨row, mine⟩ over the head's columns. The row is loaded once for
        # both, which is what makes the backward pass of attention one gather.
        row = element_pointer(context, builder, array, args[2], args[3])
        factors = element_pointer(context, builder, weights, args[4], args[5])
        other = element_pointer(context, builder, mine, args[6], ir.IntType(64)(0))
        added, dots, splats = unpack(builder, args[7], sums.vectors), dict[int, Any](), dict[int, Any]()
        for v, head in enumerate(tile.tile.heads):
            value = load_vector(builder, tile.tile, v, row)
            if head not in splats:
                splats[head] = splat(
                    builder, builder.load(pointer_to(builder, factors, head, other.type.pointee)), kind.lanes
                )
            added[v] = fused_multiply_add(builder, value, splats[head], added[v])
            address = pointer_to(builder, other, v * kind.lanes, value.type)
            beside = builder.load(address, align=element_bytes(value.type.element))
            dots[head] = (
                fused_multiply_add(builder, value, beside, dots[head]) if head in dots else builder.fmul(value, beside)
            )
            if v % HELD == HELD - 1:
                added[v + 1 - HELD : v + 1] = held(builder, added[v + 1 - HELD : v + 1])
        # From one vector of partial sums per head to one number per head, in the lanes that `heads_tile` gives them.
        totals = _totals(builder, [dots[head] for head in sorted(dots)])
        nothing = Constant(totals[0].type, 0.0)
        by_head = dict(zip(sorted(dots), totals, strict=True))
        vectors = []
        for offset in count.offsets:
            vector = Constant(ir.VectorType(nothing.type, count.lanes), None)
            for lane in range(count.lanes):
                if offset + lane in by_head:
                    vector = builder.insert_element(vector, by_head[offset + lane], INT32(lane))
            vectors.append(vector)
        parts = pack(context, builder, sums, added), pack(context, builder, dots_kind, vectors)
        return context.make_tuple(builder, result, parts)

    return result(tile, heads_tile, array, types.int64, weights, types.int64, mine, sums), generate


def _own_lanes(builder, tile, v, vector):
    """Vector v of a tile with the first lanes, which a neighbour has too, set to 0."""
    skip, lanes = tile.skip[v] if tile.skip else 0, tile.lanes
    if not skip:
        return vector
    mask = Constant(ir.VectorType(ir.IntType(1), lanes), [int(lane >= skip) for lane in range(lanes)])
    return builder.select(mask, vector, Constant(vector.type, None))


def _totals(builder, vectors):
    """The sums over the lanes of each vector, as scalars.

    Two vectors become one with half as many lanes of each, until one is left: a fourth of the additions of sums one by
    one. In it `segments` of equal length follow each other, one for each vector.
    """
    # Example, vectors a and b of 4 lanes: [a0+a2, a1+a3, b0+b2, b1+b3], then [a0+a2+a1+a3, b…]: each addition works for
    # two vectors, where summing them one by one leaves half of the lanes idle.
    count, lanes = len(vectors), vectors[0].type.count
    segments = 1
    while len(vectors) > 1 and segments < lanes:
        if len(vectors) % 2:
            vectors = [*vectors, Constant(vectors[0].type, None)]
        vectors = [_halved(builder, a, b, segments) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
        segments *= 2
    folded = []
    for vector in vectors:
        length = lanes // segments
        while length > 1:
            length //= 2
            vector = _halved(builder, vector, None, segments)
        folded.append(vector)
    return [builder.extract_element(folded[k // segments], INT32(k % segments)) for k in range(count)]


def _halved(builder, a, b, segments):
    """Upper halves of all segments added to the lower ones, of a and, behind them, of b."""
    lanes = a.type.count
    half, total = lanes // segments // 2, lanes * (1 if b is None else 2)
    # Lanes are numbered through a and then b, as a shuffle of two vectors numbers them.
    lower = [start + k for start in range(0, total, 2 * half) for k in range(half)]
    b = a if b is None else b
    upper = [lane + half for lane in lower]
    return builder.fadd(select_lanes(builder, a, b, lower), select_lanes(builder, a, b, upper))
