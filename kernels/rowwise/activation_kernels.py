"""The kernels of activation.py: one for each direction, without and with a row norm, per `kernel_width`.

A row is worked on in groups of 128 columns, the width of one draw of random words: `whole` groups, and a `part` for
the columns that are left. What is done to a group is a function of its own, named …_group or after its formula.

Legend: mask = (row ids, threshold, factor, k0, k1, stream) of a dropout; norm = (feats, bias, gamma, beta).
"""

import functools
from collections.abc import Callable

import numpy as np

from distgnn.kernels.runtime.jit import inline, kernel
from distgnn.kernels.simd.philox import GROUP
from distgnn.kernels.simd.random_vectors import at_least, each_group, group_tiles, row_words
from distgnn.kernels.simd.vector_math import add_to, inside, total
from distgnn.kernels.simd.vectors import add, choose, full, greater, less, load, mul, scale, store, sub, zeros

BLOCK_ROWS = 256  # rows whose parameter gradients are summed together: fixed, so that threads do not change bits
BIAS, GAMMA, BETA = range(3)
FACTOR = 2  # of a mask


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
