"""What the backward pass of attention needs of a gradient of y = dropout(relu(z + bias)), in one pass over the rows.

    grad_feats[i] = grad[i] / (1 - p) where out[i] > 0, else 0             the gradient of z, out = y
    dots[i, h]    = ⟨grad_feats[i, h], z[i, h]⟩ = ⟨grad[i, h], out[i, h]⟩ - ⟨grad_feats[i, h], bias[h]⟩
    grad_bias     = Σ_i grad_feats[i]

for out = (z + bias) / (1 - p) where it is not 0. The sums over rows: as `activate_backward`.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.rowwise.activation_kernels import BLOCK_ROWS
from distgnn.kernels.runtime.arrays import ROWS, output, row_array, sums_dtype, vector
from distgnn.kernels.runtime.formats import mask_parameters
from distgnn.kernels.runtime.jit import kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.runtime.tiles import Tile, head_tiles
from distgnn.kernels.simd.head_sums import add_by_head
from distgnn.kernels.simd.vector_math import add_to
from distgnn.kernels.simd.vectors import choose, greater, load, mul, scale, store, sub, zeros


def relu_backward_dots(
    grad: np.ndarray,
    out: np.ndarray,
    bias: np.ndarray | None,
    heads: int,
    *,
    p: float = 0.0,
    grad_feats: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradient of ReLU and dropout, and its dot products with the rows before the bias, head by head.

    Args: grad float32, float64 or bfloat16 (uint16) [N, H * F]: gradient of out; out the same: the result; bias [H * F]
        or None; heads: H; p: dropout probability; grad_feats like grad: where to write, may be `grad` itself.
    Returns: (grad_feats, grad_bias [H * F], dots [N, H]), the last two float32 for bfloat16.
    Raises: ValueError on shapes and dtypes.
    Notes: column sums as in `activate_backward`: same bits for any number of threads.
    """
    grad, out = row_array(grad, "grad", ROWS), row_array(out, "out", ROWS)
    if out.shape != grad.shape or out.dtype != grad.dtype or heads < 1 or grad.shape[1] % heads:
        raise ValueError(
            f"grad {grad.dtype} {grad.shape} and out {out.dtype} {out.shape} must be rows of {heads} heads"
        )
    dtype, (num, width) = sums_dtype(grad), grad.shape
    bias = vector(np.zeros(width) if bias is None else bias, width, dtype, "bias")
    grad_feats = output(grad_feats, grad.shape, grad.dtype, "grad_feats")
    blocks = -(-num // BLOCK_ROWS)
    sums, dots = np.zeros((blocks, width), dtype), np.zeros((num, heads), dtype)
    factor = mask_parameters(p, dtype)[1]
    if width:
        chunks = even_chunks(blocks, BLOCK_ROWS * width)
        for tile in head_tiles(1, width // heads, dtype, half=True):
            run(_kernel(tile), chunks, grad, out, bias, factor, grad_feats, sums, dots)
    return grad_feats, sums.sum(axis=0), dots


@functools.cache
def _kernel(tile: Tile) -> Callable:
    @kernel(counted=False)
    def through_rows(start, stop, grad, out, bias, factor, grad_feats, sums, dots):
        """Writes the tile's columns of grad_feats and sums, and adds its share to dots, of row blocks [start, stop)."""
        # Head by head, so that all of a vector fits in registers. Vectors of a tile may share columns, and are all read
        # before one is written; two tiles of a head share none where the rows are written over.
        (num, width), heads, zero = grad.shape, dots.shape[1], zeros(tile, bias)
        head_width = width // heads
        for i in range(start * BLOCK_ROWS, min(stop * BLOCK_ROWS, num)):
            for h in range(heads):
                column = h * head_width
                given, result = load(tile, grad, i * width + column), load(tile, out, i * width + column)
                row = choose(greater(result, zero), scale(given, factor), zero)
                store(tile, grad_feats, i * width + column, row)
                rest = mul(row, load(tile, bias, column))
                add_by_head(tile, sub(mul(given, result), rest), dots, i * heads + h)
                add_to(tile, sums, i // BLOCK_ROWS * width + column, row)

    return through_rows
