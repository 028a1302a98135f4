"""What follows a layer's matrix product, in one pass over its rows: bias, row norm, activation, dropout.

    z = feats + bias                                    V rows, D columns
    n = gamma * (z - mean(z)) / sqrt(var(z) + eps) + beta      per row; only with a norm
    out = keep * activation(n) / (1 - p)                keep: the mask of dropout.py

Backward `out` (which the next layer holds anyway) says where the ReLU and the mask let through. A norm needs its input
and two numbers per row, and `out` is made again from them. Without ReLU, and with a norm, the mask is drawn again.
"""

import numpy as np

from distgnn.kernels.rowwise.activation_kernels import (
    BIAS,
    BLOCK_ROWS,
    backward_kernel,
    forward_kernel,
    norm_backward_kernel,
    norm_forward_kernel,
)
from distgnn.kernels.runtime.arrays import ROWS, index_array, output, row_array, sums_dtype, vector
from distgnn.kernels.runtime.formats import mask_parameters
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.simd.philox import derive_key
from distgnn.kernels.simd.random_vectors import kernel_width

ACTIVATIONS = ("relu", "none")


def activate(
    feats: np.ndarray,
    bias: np.ndarray | None = None,
    norm: tuple[np.ndarray, np.ndarray] | None = None,
    *,
    activation: str = "relu",
    p: float = 0.0,
    row_ids: np.ndarray | None = None,
    seed: int = 0,
    step: int = 0,
    site: int = 0,
    eps: float = 1e-5,
    out: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray | None]:
    """Bias, optional layer norm, activation and dropout of rows.

    Args: feats float32, float64 or bfloat16 (uint16) [V, D]; bias [D]; norm: (gamma [D], beta [D]) for a layer norm;
        activation relu or none; p: dropout probability, with global row_ids [V] and (seed, step, site) as in
        `dropout`; out [V, D]: may be `feats` itself if there is no norm to differentiate, or bfloat16 for float32.
    Returns: (out, stats): stats [V, 2] mean and 1 / standard deviation of each row, or None without a norm.
    Raises: ValueError on shapes, dtypes, activation, or p > 0 without row_ids.
    """
    feats = row_array(feats, dtypes=ROWS)
    rows = _Rows(feats, activation, p, row_ids, (seed, step, site))
    bias, gamma, beta = rows.parameters(bias, norm)
    narrower = out is not None and out.dtype == np.uint16 and feats.dtype == np.float32
    out = output(out, feats.shape, np.uint16 if narrower else feats.dtype)
    stats = np.empty((len(feats) if norm is not None else 0, 2), rows.dtype)
    wide, chunks = kernel_width(feats.shape[1]), even_chunks(*feats.shape)
    arguments = feats, bias, *rows.mask, rows.relu, out
    if norm is None:
        run(forward_kernel(wide), chunks, *arguments)
        return out, None
    run(norm_forward_kernel(wide), chunks, *arguments, gamma, beta, rows.dtype.type(eps), stats)
    return out, stats


def activate_backward(
    grad: np.ndarray,
    out: np.ndarray | None,
    feats: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    norm: tuple[np.ndarray, np.ndarray] | None = None,
    stats: np.ndarray | None = None,
    *,
    activation: str = "relu",
    p: float = 0.0,
    row_ids: np.ndarray | None = None,
    seed: int = 0,
    step: int = 0,
    site: int = 0,
    grad_feats: np.ndarray | None = None,
    before: tuple[np.ndarray, ...] | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Gradients of `activate` with the arguments it was called with.

    Args: grad [V, D]: gradient of out; out: its result, None with a norm; feats, bias, norm, stats: only with a norm
        (bias may be None); grad_feats [V, D]: where to write, may be `grad` itself; before: with a norm the gradients
        of its vectors from rows before these, a multiple of 256, to go on from.
    Returns: (grad_feats, grad_bias, grad_gamma, grad_beta), the last two None without a norm.
    Notes: column sums are taken over fixed blocks of 256 rows and then over blocks: same bits for any threads.
    """
    grad = row_array(grad, "grad", ROWS)
    out = None if norm is not None else row_array(out, "out", ROWS)
    if out is not None and out.shape != grad.shape:
        raise ValueError(f"grad and out must have one shape, got {grad.shape} and {out.shape}")
    rows = _Rows(grad, activation, p, row_ids, (seed, step, site))
    grad_feats = output(grad_feats, grad.shape, grad.dtype, "grad_feats")
    # Column sums over 256 rows each, one row of `sums` per block and thread-independent: plainly grad.sum(axis=0), but
    # in an order that is fixed.
    blocks = -(-len(grad) // BLOCK_ROWS)
    sums = np.zeros((blocks, 1 if norm is None else 3, grad.shape[1]), rows.dtype)
    chunks = even_chunks(blocks, BLOCK_ROWS * grad.shape[1])
    wide = kernel_width(grad.shape[1])
    arguments = *rows.mask, rows.relu, grad_feats, sums
    # Without a norm `out` is all that is needed: where it is positive, ReLU and mask let through.
    if norm is None:
        run(backward_kernel(wide), chunks, grad, out, *arguments)
        return grad_feats, sums.sum(axis=0)[BIAS], None, None
    feats = row_array(feats, dtypes=ROWS)
    parameters = rows.parameters(bias, norm)
    run(norm_backward_kernel(wide), chunks, grad, *arguments, feats, *parameters, stats)
    if before is not None:
        sums = np.concatenate([np.stack(before)[None], sums])
    return grad_feats, *sums.sum(axis=0)


class _Rows:
    """The checked arguments that forward and backward share."""

    def __init__(
        self, feats: np.ndarray, activation: str, p: float, row_ids: np.ndarray | None, draw: tuple[int, int, int]
    ) -> None:
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
        self.dtype, self.width = sums_dtype(feats), feats.shape[1]
        self.relu = activation == "relu"
        threshold, factor = mask_parameters(p, self.dtype)
        if threshold and (row_ids is None or len(row_ids) != len(feats)):
            raise ValueError(f"dropout needs row_ids, one for each of the {len(feats)} rows")
        # A threshold of 0 draws nothing, and the kernel gets no ids.
        ids = index_array(row_ids, "row_ids") if threshold and row_ids is not None else np.empty(0, np.int64)
        self.mask = ids, threshold, factor, *derive_key(*draw)

    def parameters(self, bias: np.ndarray | None, norm: tuple | None) -> tuple:
        """bias, gamma, beta as arrays of the summing dtype."""
        gamma, beta = norm or (np.ones(self.width), np.zeros(self.width))
        bias = np.zeros(self.width) if bias is None else bias
        named = (bias, "bias"), (gamma, "gamma"), (beta, "beta")
        return tuple(vector(values, self.width, self.dtype, name) for values, name in named)
