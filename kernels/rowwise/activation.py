"""What follows a layer's matrix product, in one pass over its rows: bias, row norm, activation, dropout.

    z = feats + bias                                    V rows, D columns
    n = gamma * (z - mean(z)) / sqrt(var(z) + eps) + beta      per row; only with a norm
    out = keep * activation(n) / (1 - p)                keep: the mask of `dropout`

Backward `out` (which the next layer holds anyway) says where the ReLU and the mask let through. A norm needs its input
and two numbers per row, and `out` is made again from them. Without ReLU, and with a norm, the mask is drawn again.

Dropout whose mask is a function of (seed, step, site, global row id, column): nothing is stored.

    out[i, k] = feats[i, k] / (1 - p)   where bits(seed, step, site, row_ids[i], k) >= round(65536 p), else 0

`bits` are the 16-bit words that random_vectors.py lays out. The same call on the gradient is the backward pass.
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.arrays import ROWS, index_array, output, row_array, sums_dtype, vector
from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.runtime.threads import even_chunks, run
from distgnn.kernels.simd.random_vectors import (
    GROUP,
    at_least,
    derive_key,
    each_group,
    group_tiles,
    kernel_width,
    mask_parameters,
    row_words,
)
from distgnn.kernels.simd.vector_math import add_to, inside, total
from distgnn.kernels.simd.vectors import add, choose, full, greater, less, load, mul, scale, store, sub, zeros

BLOCK_ROWS = 256  # rows whose parameter gradients are summed together: fixed, so that threads do not change bits
BIAS, GAMMA, BETA = range(3)
FACTOR = 2  # of a mask
COST = 6  # elements of a plain sum that take as long as one that is drawn for, or normalised


@inline(counted=False)
def _keep(tile, row, i, column, mask):
    """row * mask / (1 - p)."""
    row_ids, threshold, factor, k0, k1, stream = mask
    # Without dropout no words are drawn: the kernel is compiled once, the test is per group of 128 columns.
    if threshold == 0:
        return row
    bits = row_words(row_ids[i], column, stream, k0, k1)
    return choose(at_least(tile, bits, threshold), scale(row, factor), scale(row, 0))


@inline(counted=False)
def _relu(tile, feats, row, relu):
    """Negative lanes become 0; a NaN stays."""
    # Plainly max(row, 0), but a maximum would turn a NaN into 0 and hide it.
    zero = zeros(tile, feats)
    return choose(less(row, zero), zero, row) if relu else row


@inline(counted=False)
def _let_through(tile, grad, out, i, column, mask, relu):
    """Gradient before activation and mask: after a ReLU, whatever came out positive was kept."""
    # Plainly: grad * (z > 0) * mask / (1 - p). After a ReLU out > 0 exactly where both let through, so neither z nor
    # the mask is stored or drawn again. Where p = 0 the factor is 1.
    first = i * grad.shape[1] + column
    g = load(tile, grad, first)
    if relu:
        return choose(greater(load(tile, out, first), zeros(tile, out)), scale(g, mask[FACTOR]), zeros(tile, grad))
    return _keep(tile, g, i, column, mask)


@inline(counted=False)
def forward_group(tile, column, i, feats, bias, mask, relu, out):
    first = i * feats.shape[1] + column
    row = _relu(tile, feats, add(load(tile, feats, first), load(tile, bias, column)), relu)
    store(tile, out, first, _keep(tile, row, i, column, mask))


@inline(counted=False)
def backward_group(tile, column, i, grad, out, mask, relu, grad_feats, sums):
    g = _let_through(tile, grad, out, i, column, mask, relu)
    # Sums of a block of 256 rows lie in the cache; blocks are added up in order by the caller.
    add_to(tile, sums, (i // BLOCK_ROWS) * grad.shape[1] + column, g)
    store(tile, grad_feats, i * grad.shape[1] + column, g)


@inline(counted=False)
def centred(tile, i, column, feats, bias, mean):
    row = add(load(tile, feats, i * feats.shape[1] + column), load(tile, bias, column))
    return inside(tile, sub(row, full(tile, bias, mean)))


@inline(counted=False)
def moments(whole, part, i, feats, bias, eps):
    """Mean and 1 / standard deviation of row i, in two passes."""
    # Two passes over a row that the first brought into the cache: Σ (x - mean)² loses no digits, as Σ x² - (Σ x)² / D
    # would for a row far from 0.
    width, end = feats.shape[1], feats.shape[1] // GROUP * GROUP
    mean = variance = bias.dtype.type(0)
    if whole is not None:
        for column in range(0, end, GROUP):
            mean += total(centred(whole, i, column, feats, bias, 0))
    if part is not None:
        mean += total(centred(part, i, end, feats, bias, 0))
    mean /= bias.dtype.type(width)
    if whole is not None:
        for column in range(0, end, GROUP):
            row = centred(whole, i, column, feats, bias, mean)
            variance += total(mul(row, row))
    if part is not None:
        row = centred(part, i, end, feats, bias, mean)
        variance += total(mul(row, row))
    return mean, bias.dtype.type(1) / np.sqrt(variance / bias.dtype.type(width) + eps)


@inline(counted=False)
def norm_group(tile, column, i, norm, mask, relu, out, m, s):
    feats, bias, gamma, beta = norm
    row = scale(centred(tile, i, column, feats, bias, m), s)
    row = add(mul(row, load(tile, gamma, column)), load(tile, beta, column))
    row = _relu(tile, feats, row, relu)
    store(tile, out, i * feats.shape[1] + column, _keep(tile, row, i, column, mask))


@inline(counted=False)
def _through_norm(tile, column, i, grad, norm, stats, mask, relu):
    """The normalised row x, and the gradient before activation and mask: both are made again, not read."""
    feats, bias, gamma, beta = norm
    x = scale(centred(tile, i, column, feats, bias, stats[i, 0]), stats[i, 1])
    g = _keep(tile, load(tile, grad, i * grad.shape[1] + column), i, column, mask)
    if relu:
        row = add(mul(x, load(tile, gamma, column)), load(tile, beta, column))
        g = choose(greater(row, zeros(tile, gamma)), g, zeros(tile, grad))
    return x, g


@inline(counted=False)
def norm_sums(tile, column, i, grad, norm, stats, mask, relu, sums):
    """Adds to the gradients of gamma and beta; returns Σ h and Σ h x, h = g gamma, x the normalised row."""
    x, g = _through_norm(tile, column, i, grad, norm, stats, mask, relu)
    width, block, gamma = grad.shape[1], (i // BLOCK_ROWS) * 3 * grad.shape[1], norm[2]
    add_to(tile, sums, block + GAMMA * width + column, mul(g, x))
    add_to(tile, sums, block + BETA * width + column, g)
    h = mul(g, load(tile, gamma, column))
    return total(h), total(mul(h, x))


@inline(counted=False)
def norm_gradient(tile, column, i, grad, norm, stats, mask, relu, mean_h, mean_hx, grad_feats, sums):
    """(h - mean(h) - x mean(h x)) / standard deviation."""
    x, g = _through_norm(tile, column, i, grad, norm, stats, mask, relu)
    width, block, gamma = grad.shape[1], (i // BLOCK_ROWS) * 3 * grad.shape[1], norm[2]
    h = mul(g, load(tile, gamma, column))
    row = scale(sub(sub(h, full(tile, gamma, mean_h)), scale(x, mean_hx)), stats[i, 1])
    add_to(tile, sums, block + BIAS * width + column, row)
    store(tile, grad_feats, i * width + column, row)


@functools.cache
def forward_kernel(wide: int) -> Callable:
    whole, part = group_tiles(wide)

    @kernel(counted=False)
    def forward(start, stop, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out):
        """Writes out[start:stop]."""
        mask = ids, threshold, factor, k0, k1, stream
        for i in range(start, stop):
            each_group(whole, part, forward_group, feats.shape[1], i, feats, bias, mask, relu, out)

    return forward


@functools.cache
def backward_kernel(wide: int) -> Callable:
    whole, part = group_tiles(wide)

    @kernel(counted=False)
    def backward(start, stop, grad, out, ids, threshold, factor, k0, k1, stream, relu, grad_feats, sums):
        """Writes grad_feats and sums of row blocks [start, stop)."""
        mask = ids, threshold, factor, k0, k1, stream
        for i in range(start * BLOCK_ROWS, min(stop * BLOCK_ROWS, grad.shape[0])):
            each_group(whole, part, backward_group, grad.shape[1], i, grad, out, mask, relu, grad_feats, sums)

    return backward


@functools.cache
def norm_forward_kernel(wide: int) -> Callable:
    whole, part = group_tiles(wide)

    @kernel(counted=False)
    def norm_forward(
        start, stop, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out, gamma, beta, eps, stats
    ):
        """Writes out[start:stop] and stats[start:stop]."""
        mask, norm = (ids, threshold, factor, k0, k1, stream), (feats, bias, gamma, beta)
        for i in range(start, stop):
            m, s = moments(whole, part, i, feats, bias, eps)
            stats[i, 0], stats[i, 1] = m, s
            each_group(whole, part, norm_group, feats.shape[1], i, norm, mask, relu, out, m, s)

    return norm_forward


@functools.cache
def norm_backward_kernel(wide: int) -> Callable:
    whole, part = group_tiles(wide)

    @kernel(counted=False)
    def norm_backward(
        start, stop, grad, ids, threshold, factor, k0, k1, stream, relu, grad_feats, sums, feats, bias, gamma, beta,
        stats,
    ):  # fmt: skip
        """Writes grad_feats and sums of row blocks [start, stop)."""
        width, end = grad.shape[1], grad.shape[1] // GROUP * GROUP
        mask, norm = (ids, threshold, factor, k0, k1, stream), (feats, bias, gamma, beta)
        given = grad, norm, stats, mask, relu
        for i in range(start * BLOCK_ROWS, min(stop * BLOCK_ROWS, grad.shape[0])):
            # Two passes: the means of h and h x are over the whole row, so its gradient can be written only after all
            # groups. Gradient and normalised row are made again rather than stored: both are in the cache.
            mean_h = mean_hx = bias.dtype.type(0)
            if whole is not None:
                for column in range(0, end, GROUP):
                    a, b = norm_sums(whole, column, i, *given, sums)
                    mean_h, mean_hx = mean_h + a, mean_hx + b
            if part is not None:
                a, b = norm_sums(part, end, i, *given, sums)
                mean_h, mean_hx = mean_h + a, mean_hx + b
            mean_h, mean_hx = mean_h / bias.dtype.type(width), mean_hx / bias.dtype.type(width)
            each_group(whole, part, norm_gradient, width, i, *given, mean_h, mean_hx, grad_feats, sums)

    return norm_backward


def dropout(
    feats: np.ndarray, row_ids: np.ndarray, p: float, *, seed: int, step: int, site: int, out: np.ndarray | None = None
) -> np.ndarray:
    """Drop elements with probability p and scale the rest by 1 / (1 - p).

    Args: feats float32, float64 or bfloat16 (uint16) [N, D]; row_ids int [N], global ids; p in [0, 1]; seed, step,
        site: integers that name the draw; out [N, D], may be `feats` itself.
    Returns: out.
    Raises: ValueError if p is no probability.
    Notes: p is rounded to a multiple of 1/65536. Same bits for any number of threads and any row order.
    """
    feats, row_ids = row_array(feats, dtypes=ROWS), index_array(row_ids, "row_ids")
    if len(row_ids) != len(feats):
        raise ValueError(f"row_ids must have {len(feats)} entries, got {len(row_ids)}")
    out = output(out, feats.shape, feats.dtype)
    threshold, factor = mask_parameters(p, sums_dtype(feats))
    key = derive_key(seed, step, site)
    wide, arguments = kernel_width(feats.shape[1]), (feats, row_ids, threshold, factor, *key, out)
    run(_drop_kernel(wide), even_chunks(len(feats), COST * feats.shape[1]), *arguments)
    return out


@inline(counted=False)
def _drop_group(tile, column, i, feats, row_ids, threshold, factor, k0, k1, stream, out):
    bits, first = row_words(row_ids[i], column, stream, k0, k1), i * feats.shape[1] + column
    row = scale(load(tile, feats, first), factor)
    store(tile, out, first, choose(at_least(tile, bits, threshold), row, zeros(tile, feats)))


@functools.cache
def _drop_kernel(wide: int) -> Callable:
    """The kernel of a `kernel_width`."""
    # Plainly: out[i, k] = feats[i, k] * factor if word(row_ids[i], k) >= threshold else 0. One draw gives 16-bit words
    # for 128 columns, so a row goes by groups of 128 and what is left: the words of a row do not depend on its
    # neighbours, its place or the thread.
    whole, part = group_tiles(wide)

    @kernel(counted=False)
    def drop_rows(start, stop, feats, row_ids, threshold, factor, k0, k1, stream, out):
        """Writes out[start:stop]."""
        arguments = feats, row_ids, threshold, factor, k0, k1, stream, out
        for i in range(start, stop):
            each_group(whole, part, _drop_group, feats.shape[1], i, *arguments)

    return drop_rows


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
    wide, chunks = kernel_width(feats.shape[1]), even_chunks(len(feats), rows.cost(norm))
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
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Gradients of `activate` with the arguments it was called with.

    Args: grad [V, D]: gradient of out; out: its result, None with a norm; feats, bias, norm, stats: only with a norm
        (bias may be None); grad_feats [V, D]: where to write, may be `grad` itself.
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
    chunks = even_chunks(blocks, BLOCK_ROWS * rows.cost(norm))
    wide = kernel_width(grad.shape[1])
    arguments = *rows.mask, rows.relu, grad_feats, sums
    # Without a norm `out` is all that is needed: where it is positive, ReLU and mask let through.
    if norm is None:
        run(backward_kernel(wide), chunks, grad, out, *arguments)
        return grad_feats, sums.sum(axis=0)[BIAS], None, None
    feats = row_array(feats, dtypes=ROWS)
    parameters = rows.parameters(bias, norm)
    run(norm_backward_kernel(wide), chunks, grad, *arguments, feats, *parameters, stats)
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

    def cost(self, norm: tuple | None) -> int:
        """Of a row, in elements of a plain sum."""
        return self.width * (COST if norm or self.mask[1] else 1)

    def parameters(self, bias: np.ndarray | None, norm: tuple | None) -> tuple:
        """bias, gamma, beta as arrays of the summing dtype."""
        gamma, beta = norm or (np.ones(self.width), np.zeros(self.width))
        bias = np.zeros(self.width) if bias is None else bias
        named = (bias, "bias"), (gamma, "gamma"), (beta, "beta")
        return tuple(vector(values, self.width, self.dtype, name) for values, name in named)
