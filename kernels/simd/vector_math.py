"""Sums over lanes, functions of registers and sums in memory, on top of vectors.py.

add_to(tile, array, first, r)                  array.flat[first + …] += r
store_result(tile, array, first, r, past)      `store_past_caches` if past, else `store`
total(r)             sum of all lanes of all vectors
highest(tile, r)     the largest lane that is not beyond the end of a cut tile
inside(tile, r)      lanes beyond the end of a cut tile become 0
reciprocal(r)        1 / x, and 0 for 0
exp(r)               e^x to within 2 units in the last place; 0 below the smallest normal number
"""

import functools
import math

import llvmlite.ir as ir
from llvmlite.ir import Constant
from numba.core import types
from numba.extending import intrinsic

from distgnn.kernels.runtime.jit import inline
from distgnn.kernels.simd.llvm import INT32, call_llvm, elementwise, pack, select_lanes, unpack
from distgnn.kernels.simd.vectors import add, load, store, store_past_caches


@inline(counted=False)
def add_to(tile, array, first, registers):
    store(tile, array, first, add(load(tile, array, first), registers))


@inline(counted=False)
def store_result(tile, array, first, registers, past):
    if past:
        store_past_caches(tile, array, first, registers)
    else:
        store(tile, array, first, registers)


@intrinsic
def inside(typingctx, tile, registers):
    """Lanes beyond the end of a cut tile become 0."""

    def generate(context, builder, signature, args):
        vectors, mask = unpack(builder, args[1], registers.vectors), _inside_mask(tile, registers)
        vectors[-1] = builder.select(mask, vectors[-1], Constant(vectors[-1].type, None))
        return pack(context, builder, registers, vectors)

    return registers(tile, registers), generate


def _inside_mask(tile, registers):
    """Which lanes of the last vector are inside."""
    end = tile.tile.last or tile.tile.lanes
    mask = [int(lane < end) for lane in range(registers.lanes)]
    return Constant(ir.VectorType(ir.IntType(1), registers.lanes), mask)


@intrinsic
def total(typingctx, registers):
    def generate(context, builder, signature, args):
        vectors = unpack(builder, args[0], registers.vectors)
        # Plainly: the sum of all numbers. Pairs first, then halves of the last vector: log2 of the steps of one after
        # the other, and always the same order, so the same bits on every machine with this tile.
        while len(vectors) > 1:
            rest = vectors[-1:] if len(vectors) % 2 else []
            vectors = [builder.fadd(*vectors[v : v + 2]) for v in range(0, len(vectors) - 1, 2)] + rest
        return _folded(builder, vectors[0], ir.IRBuilder.fadd)

    return registers.dtype(registers), generate


def _folded(builder, vector, operation):
    """One number of all lanes: the operation on the two halves, until one lane is left."""
    lanes = vector.type.count
    while lanes > 1:
        lanes //= 2
        lower = select_lanes(builder, vector, vector, range(lanes))
        vector = operation(builder, lower, select_lanes(builder, vector, vector, range(lanes, 2 * lanes)))
    return builder.extract_element(vector, INT32(0))


@intrinsic
def exp(typingctx, registers):
    """2^n · Σ r^k / k!, where x = n ln 2 + r and |r| <= ln 2 / 2."""
    single = registers.dtype == types.float32
    terms, mantissa, lowest = (8, 23, -87.0) if single else (14, 52, -708.0)
    high = 0.693359375 if single else math.ldexp(round(math.ldexp(math.log(2), 31)), -31)  # n · high is exact
    low = -2.12194440e-4 if single else math.log(2) - high + 2.3190468138462996e-17  # ln 2 beyond a double
    integer = ir.IntType(32 if single else 64)

    def operation(builder, x):
        kind, whole = x.type, ir.VectorType(integer, x.type.count)

        def constant(value):
            return Constant(kind, [value] * kind.count)

        def fused(a, b, c):
            return call_llvm(builder, "llvm.fmuladd", kind, [a, b, c])

        # Below `lowest` the result is 0: the exponent below would wrap around. Rows of a softmax are at most 0, so
        # there is no check for overflow.
        tiny = builder.fcmp_ordered("<", x, constant(lowest))
        x = builder.select(tiny, constant(0.0), x)
        n = call_llvm(builder, "llvm.rint", kind, [builder.fmul(x, constant(1 / math.log(2)))])
        # ln 2 in two parts: n * high is exact, so r keeps the digits that x - n ln 2 would lose.
        r = fused(n, constant(-low), fused(n, constant(-high), x))
        # Horner's scheme for the Taylor series: |r| <= 0.35, 8 terms are enough for float32, 14 for float64.
        power = constant(1 / math.factorial(terms - 1))
        for k in range(terms - 2, -1, -1):
            power = fused(power, r, constant(1 / math.factorial(k)))
        # Times 2^n by adding n to the exponent bits of the float: no multiplication, no table.
        exponent = builder.shl(builder.fptosi(n, whole), Constant(whole, [mantissa] * kind.count))
        result = builder.bitcast(builder.add(builder.bitcast(power, whole), exponent), kind)
        return builder.select(tiny, constant(0.0), result)

    return registers(registers), elementwise(operation)


@intrinsic
def reciprocal(typingctx, registers):
    """1 / x, and 0 for 0."""

    def operation(builder, x):
        one, nought = Constant(x.type, [1.0] * x.type.count), Constant(x.type, [0.0] * x.type.count)
        return builder.select(builder.fcmp_ordered("==", x, nought), nought, builder.fdiv(one, x))

    return registers(registers), elementwise(operation)


@intrinsic
def floor(typingctx, registers):
    return registers(registers), elementwise(lambda builder, x: call_llvm(builder, "llvm.floor", x.type, [x]))


@intrinsic
def largest(typingctx, registers):
    def generate(context, builder, signature, args):
        vectors = unpack(builder, args[0], registers.vectors)
        return _largest(builder, [call_llvm(builder, "llvm.fabs", x.type, [x]) for x in vectors])

    return registers.dtype(registers), generate


@intrinsic
def highest(typingctx, tile, registers):
    def generate(context, builder, signature, args):
        vectors = unpack(builder, args[1], registers.vectors)
        mask, kind = _inside_mask(tile, registers), vectors[-1].type
        vectors[-1] = builder.select(mask, vectors[-1], Constant(kind, [-math.inf] * registers.lanes))
        return _largest(builder, vectors)

    return registers.dtype(tile, registers), generate


def _largest(builder, vectors):
    return _folded(builder, functools.reduce(functools.partial(_larger, builder), vectors), _larger)


def _larger(builder, a, b):
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)
