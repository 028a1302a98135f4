"""The kernels of activation.py: one for each direction, without and with a row norm, per remainder of the width by 128.

A row is worked on in groups of 128 columns, the width of one draw of random words: `whole` groups, and a `part` of
`rest` columns. What is done to a group is a function of its own, named …_group or after its formula.
"""

import functools

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.simd.philox import GROUP
from distgnn.kernels.simd.random_vectors import at_least, group_tiles, row_words
from distgnn.kernels.simd.vector_math import inside, total
from distgnn.kernels.simd.vectors import add, choose, full, greater, less, load, mul, scale, store, sub, zeros

BLOCK_ROWS = 256  # rows whose parameter gradients are summed together: fixed, so that threads do not change bits
BIAS, GAMMA, BETA = range(3)


@inline(counted=False)
def _keep(tile, row, row_ids, i, column, threshold, factor, stream, k0, k1):
    """row * mask / (1 - p)."""
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
def _let_through(tile, grad, out, row_ids, i, column, threshold, factor, stream, k0, k1, relu):
    """Gradient before activation and mask: after a ReLU, whatever came out positive was kept."""
    # Plainly: grad * (z > 0) * mask / (1 - p). After a ReLU out > 0 exactly where both let through, so neither z nor
    # the mask is stored or drawn again. Where p = 0 the factor is 1.
    first = i * grad.shape[1] + column
    g = load(tile, grad, first)
    if relu:
        return choose(greater(load(tile, out, first), zeros(tile, out)), scale(g, factor), zeros(tile, grad))
    return _keep(tile, g, row_ids, i, column, threshold, factor, stream, k0, k1)


@inline(counted=False)
def _add_to(tile, sums, first, row):
    store(tile, sums, first, add(load(tile, sums, first), row))


@inline(counted=False)
def forward_group(tile, i, column, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out):
    first = i * feats.shape[1] + column
    row = _relu(tile, feats, add(load(tile, feats, first), load(tile, bias, column)), relu)
    store(tile, out, first, _keep(tile, row, ids, i, column, threshold, factor, stream, k0, k1))


@inline(counted=False)
def backward_group(tile, i, column, grad, out, ids, threshold, factor, k0, k1, stream, relu, grad_feats, sums):
    g = _let_through(tile, grad, out, ids, i, column, threshold, factor, stream, k0, k1, relu)
    # Sums of a block of 256 rows lie in the cache; blocks are added up in order by the caller.
    _add_to(tile, sums, (i // BLOCK_ROWS) * grad.shape[1] + column, g)
    store(tile, grad_feats, i * grad.shape[1] + column, g)


@inline(counted=False)
def centred(tile, i, column, feats, bias, mean):
    row = add(load(tile, feats, i * feats.shape[1] + column), load(tile, bias, column))
    return inside(tile, sub(row, full(tile, bias, mean)))


@inline(counted=False)
def moments(whole, part, rest, i, feats, bias, eps):
    """Mean and 1 / standard deviation of row i, in two passes."""
    # Two passes over a row that the first brought into the cache: Σ (x - mean)² loses no digits, as Σ x² - (Σ x)² / D
    # would for a row far from 0.
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


@inline(counted=False)
def norm_group(tile, i, column, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out, gamma, beta, m, s):
    row = scale(centred(tile, i, column, feats, bias, m), s)
    row = add(mul(row, load(tile, gamma, column)), load(tile, beta, column))
    row = _relu(tile, feats, row, relu)
    row = _keep(tile, row, ids, i, column, threshold, factor, stream, k0, k1)
    store(tile, out, i * feats.shape[1] + column, row)


@inline(counted=False)
def _through_norm(tile, grad, x, gamma, beta, row_ids, i, column, threshold, factor, stream, k0, k1, relu):
    """The same from the normalised row x: what came out of norm, activation and mask is made again, not read."""
    g = _keep(tile, load(tile, grad, i * grad.shape[1] + column), row_ids, i, column, threshold, factor, stream, k0, k1)
    if relu:
        row = add(mul(x, load(tile, gamma, column)), load(tile, beta, column))
        return choose(greater(row, zeros(tile, gamma)), g, zeros(tile, grad))
    return g


@inline(counted=False)
def norm_sums(tile, i, column, grad, g, x, gamma, sums):
    """Adds to the gradients of gamma and beta; returns Σ h and Σ h x, h = g gamma, x the normalised row."""
    width, block = grad.shape[1], (i // BLOCK_ROWS) * 3 * grad.shape[1]
    _add_to(tile, sums, block + GAMMA * width + column, mul(g, x))
    _add_to(tile, sums, block + BETA * width + column, g)
    h = mul(g, load(tile, gamma, column))
    return total(h), total(mul(h, x))


@inline(counted=False)
def norm_gradient(tile, i, column, grad, g, x, gamma, stats, mean_h, mean_hx, grad_feats, sums):
    """(h - mean(h) - x mean(h x)) / standard deviation."""
    width, block = grad.shape[1], (i // BLOCK_ROWS) * 3 * grad.shape[1]
    h = mul(g, load(tile, gamma, column))
    row = scale(sub(sub(h, full(tile, gamma, mean_h)), scale(x, mean_hx)), stats[i, 1])
    _add_to(tile, sums, block + BIAS * width + column, row)
    store(tile, grad_feats, i * width + column, row)


@functools.cache
def forward_kernel(rest):
    whole, part = group_tiles(rest)

    @kernel(counted=False)
    def forward(start, stop, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out):
        """Writes out[start:stop]."""
        end = feats.shape[1] - rest
        for i in range(start, stop):
            for column in range(0, end, GROUP):
                forward_group(whole, i, column, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out)
            if rest > 0:
                forward_group(part, i, end, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out)

    return forward


@functools.cache
def backward_kernel(rest):
    whole, part = group_tiles(rest)

    @kernel(counted=False)
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

    return backward


@functools.cache
def norm_forward_kernel(rest):
    whole, part = group_tiles(rest)

    @kernel(counted=False)
    def norm_forward(
        start, stop, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out, gamma, beta, eps, stats
    ):
        """Writes out[start:stop] and stats[start:stop]."""
        end = feats.shape[1] - rest
        for i in range(start, stop):
            m, s = moments(whole, part, rest, i, feats, bias, eps)
            stats[i, 0], stats[i, 1] = m, s
            for column in range(0, end, GROUP):
                norm_group(
                    whole, i, column, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out, gamma, beta, m, s
                )
            if rest > 0:
                norm_group(
                    part, i, end, feats, bias, ids, threshold, factor, k0, k1, stream, relu, out, gamma, beta, m, s
                )

    return norm_forward


@functools.cache
def norm_backward_kernel(rest):
    whole, part = group_tiles(rest)

    @kernel(counted=False)
    def norm_backward(
        start, stop, grad, ids, threshold, factor, k0, k1, stream, relu, grad_feats, sums, feats, bias, gamma, beta,
        stats,
    ):  # fmt: skip
        """Writes grad_feats and sums of row blocks [start, stop)."""
        width, end = grad.shape[1], grad.shape[1] - rest
        for i in range(start * BLOCK_ROWS, min(stop * BLOCK_ROWS, grad.shape[0])):
            # Two passes: the means of h and h x are over the whole row, so its gradient can be written only after all
            # groups. Gradient and normalised row are made again rather than stored: both are in the cache.
            m, s = stats[i, 0], stats[i, 1]
            mean_h = mean_hx = bias.dtype.type(0)
            for column in range(0, end, GROUP):
                x = scale(centred(whole, i, column, feats, bias, m), s)
                g = _through_norm(whole, grad, x, gamma, beta, ids, i, column, threshold, factor, stream, k0, k1, relu)
                a, b = norm_sums(whole, i, column, grad, g, x, gamma, sums)
                mean_h, mean_hx = mean_h + a, mean_hx + b
            if rest > 0:
                x = scale(centred(part, i, end, feats, bias, m), s)
                g = _through_norm(part, grad, x, gamma, beta, ids, i, end, threshold, factor, stream, k0, k1, relu)
                a, b = norm_sums(part, i, end, grad, g, x, gamma, sums)
                mean_h, mean_hx = mean_h + a, mean_hx + b
            mean_h, mean_hx = mean_h / bias.dtype.type(width), mean_hx / bias.dtype.type(width)
            for column in range(0, end, GROUP):
                x = scale(centred(whole, i, column, feats, bias, m), s)
                g = _through_norm(whole, grad, x, gamma, beta, ids, i, column, threshold, factor, stream, k0, k1, relu)
                norm_gradient(whole, i, column, grad, g, x, gamma, stats, mean_h, mean_hx, grad_feats, sums)
            if rest > 0:
                x = scale(centred(part, i, end, feats, bias, m), s)
                g = _through_norm(part, grad, x, gamma, beta, ids, i, end, threshold, factor, stream, k0, k1, relu)
                norm_gradient(part, i, end, grad, g, x, gamma, stats, mean_h, mean_hx, grad_feats, sums)

    return norm_backward
