"""What follows a layer's matrix product, in one pass over its rows: bias, row norm, activation, dropout.

    z = feats + bias                                    V rows, D columns
    n = gamma * (z - mean(z)) / sqrt(var(z) + eps) + beta      per row; only with a norm
    out = keep * activation(n) / (1 - p)                keep: the mask of masks.py

Backward nothing but `out` (which the next layer holds anyway) says where the ReLU and the mask let through; a norm
needs its input and two numbers per row as well. Without ReLU the mask is drawn again.
"""

import functools

import numpy as np

from .arrays import ROWS, index_array, output, row_array, sums_dtype, vector
from .first_use import checked_once
from .jit import inline, kernel
from .masks import mask_parameters, row_words
from .philox import GROUP, derive_key
from .random_vectors import at_least, group_tiles
from .threads import even_chunks, run
from .vector_math import inside, total
from .vectors import add, choose, full, greater, less, load, mul, scale, store, sub, zeros

ACTIVATIONS = ("relu", "none")
BLOCK_ROWS = 256  # rows whose parameter gradients are summed together: fixed, so that threads do not change bits
BIAS, GAMMA, BETA = range(3)


@checked_once
def activate(
    feats, bias=None, norm=None, *, activation="relu", p=0.0, row_ids=None, seed=0, step=0, site=0, eps=1e-5, out=None
):
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
    out = output(out, feats.shape, out.dtype if narrower else feats.dtype)
    stats = np.empty((len(feats) if norm is not None else 0, 2), rows.dtype)
    functions = _kernels(feats.shape[1] % GROUP)
    arguments = feats, bias, *rows.mask, rows.relu, out
    if norm is None:
        run(functions["forward"], even_chunks(*feats.shape), *arguments)
        return out, None
    run(functions["norm_forward"], even_chunks(*feats.shape), *arguments, gamma, beta, rows.dtype.type(eps), stats)
    return out, stats


@checked_once
def activate_backward(
    grad, out, feats=None, bias=None, norm=None, stats=None, *, activation="relu", p=0.0, row_ids=None, seed=0, step=0,
    site=0, grad_feats=None,
):  # fmt: skip
    """Gradients of `activate` with the arguments it was called with.

    Args: grad [V, D]: gradient of out; out: its result; feats, bias, norm, stats: only with a norm (bias may be
        None); grad_feats [V, D]: where to write, may be `grad` itself.
    Returns: (grad_feats, grad_bias, grad_gamma, grad_beta), the last two None without a norm.
    Notes: column sums are taken over fixed blocks of 256 rows and then over blocks: same bits for any threads.
    """
    grad, out = row_array(grad, "grad", ROWS), row_array(out, "out", ROWS)
    if out.shape != grad.shape:
        raise ValueError(f"grad and out must have one shape, got {grad.shape} and {out.shape}")
    rows = _Rows(grad, activation, p, row_ids, (seed, step, site))
    grad_feats = output(grad_feats, grad.shape, grad.dtype, "grad_feats")
    blocks = -(-len(grad) // BLOCK_ROWS)
    sums = np.zeros((blocks, 1 if norm is None else 3, grad.shape[1]), rows.dtype)
    chunks = even_chunks(blocks, BLOCK_ROWS * grad.shape[1])
    functions = _kernels(grad.shape[1] % GROUP)
    arguments = grad, out, *rows.mask, rows.relu, grad_feats, sums
    if norm is None:
        run(functions["backward"], chunks, *arguments)
        return grad_feats, sums.sum(axis=0)[BIAS], None, None
    feats = row_array(feats, dtypes=ROWS)
    bias, gamma, _ = rows.parameters(bias, norm)
    run(functions["norm_backward"], chunks, *arguments, feats, bias, gamma, stats)
    return grad_feats, *sums.sum(axis=0)


class _Rows:
    """The checked arguments that forward and backward share."""

    def __init__(self, feats, activation, p, row_ids, draw):
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}")
        self.dtype, self.width = sums_dtype(feats), feats.shape[1]
        self.relu = activation == "relu"
        threshold, factor = mask_parameters(p, self.dtype)
        if threshold and (row_ids is None or len(row_ids) != len(feats)):
            raise ValueError(f"dropout needs row_ids, one for each of the {len(feats)} rows")
        ids = index_array(row_ids, "row_ids") if threshold else np.empty(0, np.int64)
        self.mask = ids, threshold, factor, *derive_key(*draw)

    def parameters(self, bias, norm):
        """bias, gamma, beta as arrays of the summing dtype."""
        gamma, beta = norm or (np.ones(self.width), np.zeros(self.width))
        bias = np.zeros(self.width) if bias is None else bias
        named = (bias, "bias"), (gamma, "gamma"), (beta, "beta")
        return tuple(vector(values, self.width, self.dtype, name) for values, name in named)


@inline
def _keep(tile, row, row_ids, i, column, threshold, factor, stream, k0, k1):
    """row * mask / (1 - p)."""
    if threshold == 0:
        return row
    bits = row_words(row_ids[i], column, stream, k0, k1)
    return choose(at_least(tile, bits, threshold), scale(row, factor), scale(row, 0))


@inline
def _relu(tile, feats, row, relu):
    """Negative lanes become 0; a NaN stays."""
    zero = zeros(tile, feats)
    return choose(less(row, zero), zero, row) if relu else row


@inline
def _let_through(tile, grad, out, row_ids, i, column, threshold, factor, stream, k0, k1, relu):
    """Gradient before activation and mask: after a ReLU, whatever came out positive was kept."""
    first = i * grad.shape[1] + column
    g = load(tile, grad, first)
    if relu:
        return choose(greater(load(tile, out, first), zeros(tile, out)), scale(g, factor), zeros(tile, grad))
    return _keep(tile, g, row_ids, i, column, threshold, factor, stream, k0, k1)


@inline
def _add_to(tile, sums, first, row):
    store(tile, sums, first, add(load(tile, sums, first), row))


@functools.cache
def _kernels(rest):
    """The four kernels for widths with this remainder by 128."""
    whole, part = group_tiles(rest)

    @inline
    def forward_group(tile, i, column, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out):
        first = i * feats.shape[1] + column
        row = _relu(tile, feats, add(load(tile, feats, first), load(tile, bias, column)), relu)
        store(tile, out, first, _keep(tile, row, ids, i, column, threshold, factor, stream, k0, k1))

    @kernel
    def forward(start, stop, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out):
        """Writes out[start:stop]."""
        end = feats.shape[1] - rest
        for i in range(start, stop):
            for column in range(0, end, GROUP):
                forward_group(whole, i, column, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out)
            if rest > 0:
                forward_group(part, i, end, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out)

    @inline
    def backward_group(tile, i, column, grad, out, ids, threshold, factor, k0, k1, stream, relu, grad_feats, sums):
        g = _let_through(tile, grad, out, ids, i, column, threshold, factor, stream, k0, k1, relu)
        _add_to(tile, sums, (i // BLOCK_ROWS) * grad.shape[1] + column, g)
        store(tile, grad_feats, i * grad.shape[1] + column, g)

    @kernel
    def backward(start, stop, grad, out, ids, threshold, factor, k0, k1, stream, relu, grad_feats, sums):
        """Writes grad_feats and sums of row blocks [start, stop)."""
        end = grad.shape[1] - rest
        for i in range(start * BLOCK_ROWS, min(stop * BLOCK_ROWS, grad.shape[0])):
            for column in range(0, end, GROUP):
                backward_group(
                    whole, i, column, grad, out, ids, threshold, factor, k0, k1, stream, relu, grad_feats, sums
                )
            if rest > 0:
                backward_group(part, i, end, grad, out, ids, threshold, factor, k0, k1, stream, relu, grad_feats, sums)

    @inline
    def centred(tile, i, column, feats, bias, mean):
        row = add(load(tile, feats, i * feats.shape[1] + column), load(tile, bias, column))
        return inside(tile, sub(row, full(tile, bias, mean)))

    @inline
    def moments(i, feats, bias, eps):
        """Mean and 1 / standard deviation of row i, in two passes."""
        width, end = feats.shape[1], feats.shape[1] - rest
        mean = variance = bias.dtype.type(0)
        for column in range(0, end, GROUP):
            mean += total(centred(whole, i, column, feats, bias, 0))
        if rest > 0:
            mean += total(centred(part, i, end, feats, bias, 0))
        mean /= bias.dtype.type(width)
        for column in range(0, end, GROUP):
            row = centred(whole, i, column, feats, bias, mean)
            variance += total(mul(row, row))
        if rest > 0:
            row = centred(part, i, end, feats, bias, mean)
            variance += total(mul(row, row))
        return mean, bias.dtype.type(1) / np.sqrt(variance / bias.dtype.type(width) + eps)

    @inline
    def norm_group(tile, i, column, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out, gamma, beta, m, s):
        row = scale(centred(tile, i, column, feats, bias, m), s)
        row = add(mul(row, load(tile, gamma, column)), load(tile, beta, column))
        row = _relu(tile, feats, row, relu)
        row = _keep(tile, row, ids, i, column, threshold, factor, stream, k0, k1)
        store(tile, out, i * feats.shape[1] + column, row)

    @kernel
    def norm_forward(
        start, stop, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out, gamma, beta, eps, stats
    ):
        """Writes out[start:stop] and stats[start:stop]."""
        end = feats.shape[1] - rest
        for i in range(start, stop):
            m, s = moments(i, feats, bias, eps)
            stats[i, 0], stats[i, 1] = m, s
            for column in range(0, end, GROUP):
                norm_group(
                    whole, i, column, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out, gamma, beta, m, s
                )
            if rest > 0:
                norm_group(
                    part, i, end, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out, gamma, beta, m, s
                )

    @inline
    def norm_sums(tile, i, column, grad, g, feats, bias, gamma, stats, sums):
        """Adds to the gradients of gamma and beta; returns Σ h and Σ h x, h = g gamma, x the normalised row."""
        width, block = grad.shape[1], (i // BLOCK_ROWS) * 3 * grad.shape[1]
        x = scale(centred(tile, i, column, feats, bias, stats[i, 0]), stats[i, 1])
        _add_to(tile, sums, block + GAMMA * width + column, mul(g, x))
        _add_to(tile, sums, block + BETA * width + column, g)
        h = mul(g, load(tile, gamma, column))
        return total(h), total(mul(h, x))

    @inline
    def norm_gradient(tile, i, column, grad, g, feats, bias, gamma, stats, mean_h, mean_hx, grad_feats, sums):
        """(h - mean(h) - x mean(h x)) / standard deviation."""
        width, block = grad.shape[1], (i // BLOCK_ROWS) * 3 * grad.shape[1]
        x = scale(centred(tile, i, column, feats, bias, stats[i, 0]), stats[i, 1])
        h = mul(g, load(tile, gamma, column))
        row = scale(sub(sub(h, full(tile, gamma, mean_h)), scale(x, mean_hx)), stats[i, 1])
        _add_to(tile, sums, block + BIAS * width + column, row)
        store(tile, grad_feats, i * width + column, row)

    @kernel
    def norm_backward(
        start, stop, grad, out, ids, threshold, factor, k0, k1, stream, relu, grad_feats, sums, feats, bias, gamma,
        stats,
    ):  # fmt: skip
        """Writes grad_feats and sums of row blocks [start, stop)."""
        width, end = grad.shape[1], grad.shape[1] - rest
        for i in range(start * BLOCK_ROWS, min(stop * BLOCK_ROWS, grad.shape[0])):
            mean_h = mean_hx = bias.dtype.type(0)
            for column in range(0, end, GROUP):
                g = _let_through(whole, grad, out, ids, i, column, threshold, factor, stream, k0, k1, relu)
                a, b = norm_sums(whole, i, column, grad, g, feats, bias, gamma, stats, sums)
                mean_h, mean_hx = mean_h + a, mean_hx + b
            if rest > 0:
                g = _let_through(part, grad, out, ids, i, end, threshold, factor, stream, k0, k1, relu)
                a, b = norm_sums(part, i, end, grad, g, feats, bias, gamma, stats, sums)
                mean_h, mean_hx = mean_h + a, mean_hx + b
            mean_h, mean_hx = mean_h / bias.dtype.type(width), mean_hx / bias.dtype.type(width)
            for column in range(0, end, GROUP):
                g = _let_through(whole, grad, out, ids, i, column, threshold, factor, stream, k0, k1, relu)
                norm_gradient(whole, i, column, grad, g, feats, bias, gamma, stats, mean_h, mean_hx, grad_feats, sums)
            if rest > 0:
                g = _let_through(part, grad, out, ids, i, end, threshold, factor, stream, k0, k1, relu)
                norm_gradient(part, i, end, grad, g, feats, bias, gamma, stats, mean_h, mean_hx, grad_feats, sums)

    return {"forward": forward, "backward": backward, "norm_forward": norm_forward, "norm_backward": norm_backward}
