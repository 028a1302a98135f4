"""Slow, obvious numpy of every kernel, with float64 inside: what tests and `self_check` compare with."""

import numpy as np

from distgnn.config.schedule import WIRES
from distgnn.kernels.runtime.arrays import flat_rows, widened
from distgnn.kernels.simd.random_vectors import (
    BELOW,
    GROUP,
    LANES,
    ROUNDING_TAG,
    derive_key,
    mask_parameters,
    philox_python,
)

# Relative to the largest expected value. Sums of some hundred terms, in another order and with fused operations, differ
# by a few units in the last place (float32: 6e-8); a wrong column or arc differs by about 1.
ROUNDING = {np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-12, np.dtype(np.uint16): 2.0**-8}


def to_bfloat16(values):
    """float32 -> bit patterns, rounded to nearest, ties to even."""
    # 0x7FFF and the lowest kept bit: more than half rounds up, half rounds to even.
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(values), bits >> 16 | 0x40, rounded).astype(np.uint16)


def edges_of(indptr, edge_ids=None):
    """(target row, CSR position, edge id) of each arc, row by row."""
    for i in range(len(indptr) - 1):
        for e in range(int(indptr[i]), int(indptr[i + 1])):
            yield i, e, e if edge_ids is None else int(edge_ids[e])


def message(indices, feats, e, edge_id, edge_weight, source_scale):
    """What arc e carries, in float64; heads of a weight scale equal parts of the row."""
    value = feats[indices[e]].astype(np.float64)
    if edge_weight is not None:
        weight = edge_weight[edge_id]
        value = value * np.repeat(weight, value.size // np.size(weight)).reshape(value.shape)
    if source_scale is not None:
        value = value * float(source_scale[indices[e]])
    return value


def spmm(
    indptr, indices, feats, reduce="sum", edge_weight=None, out=None, *, edge_ids=None, source_scale=None,
    target_scale=None, accumulate=False, keep_inf=False,
):  # fmt: skip
    """aggregate.spmm, arc by arc in float64."""
    rows, feats = len(indptr) - 1, widened(feats)
    shape, feats = feats.shape, flat_rows(feats)
    if reduce in ("max", "min"):
        return _extreme(indptr, indices, feats, reduce, keep_inf)
    sums = np.zeros((rows, feats.shape[1]))
    for i, e, edge_id in edges_of(indptr, edge_ids):
        sums[i] += message(indices, feats, e, edge_id, edge_weight, source_scale)
    if reduce == "mean":
        count = np.diff(indptr)
        sums = np.divide(sums, count[:, None], out=np.zeros_like(sums), where=count[:, None] > 0)
    if target_scale is not None:
        sums = sums * np.asarray(target_scale, np.float64)[:, None]
    if accumulate:
        sums = sums + out.reshape(sums.shape)
    return sums.astype(feats.dtype).reshape(rows, *shape[1:])


def _extreme(indptr, indices, feats, reduce, keep_inf):
    shape = (len(indptr) - 1, feats.shape[1])
    sign = 1 if reduce == "max" else -1
    best, winner = np.full(shape, -np.inf), np.full(shape, -1)
    for i, e, _ in edges_of(indptr, None):
        value = sign * message(indices, feats, e, e, None, None)
        better = (winner[i] < 0) | (value > best[i])
        best[i][better], winner[i][better] = value[better], e
    best = sign * best
    return np.where((winner < 0) & (not keep_inf), 0, best).astype(feats.dtype), winner


def add_winners(places, winner, grad, out):
    """One number after the other, into a copy."""
    found = out.astype(np.float64)
    for (i, k), e in np.ndenumerate(winner):
        if e >= 0:
            found[places[e], k] += grad[i, k]
    return found.astype(out.dtype)


def count_ties(indptr, indices, feats, best):
    """Arc by arc."""
    found = np.zeros(best.shape)
    for i, e, _ in edges_of(indptr, None):
        found[i] += feats[indices[e]] == best[i]
    return found.astype(feats.dtype)


def tied_sums(indptr, indices, feats, best, shares):
    """Arc by arc in float64."""
    found = np.zeros(feats.shape)
    for i, e, _ in edges_of(indptr, None):
        found[i] += (feats[i] == best[indices[e]]) * shares[indices[e]]
    return found.astype(feats.dtype)


def sddmm(indptr, indices, source_rows, target_rows, out=None, *, edge_ids=None):
    """Arc by arc in float64."""
    sources, targets = widened(source_rows), widened(target_rows)
    values = np.zeros((len(indices), *sources.shape[1:-1])) if out is None else out.astype(np.float64)
    for i, e, edge_id in edges_of(indptr, edge_ids):
        values[edge_id] = (sources[indices[e]].astype(np.float64) * targets[i]).sum(axis=-1)
    return values.astype(sources.dtype)


def csr_from_edges(src, dst, num_rows):
    """A stable sort."""
    order = np.argsort(dst, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(dst, minlength=num_rows))])
    return indptr, np.asarray(src)[order], order


def transpose_csr(indptr, indices, num_cols):
    """A stable sort of the arcs by source."""
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    return csr_from_edges(rows, indices, num_cols)


def block_csr(indptr, indices, num_cols, block_rows):
    """(indptr, indices, positions, blocks): a stable sort of the arcs by (block of sources, row)."""
    rows, blocks = len(indptr) - 1, max(1, -(-num_cols // block_rows))
    keys = np.repeat(np.arange(rows), np.diff(indptr)) + indices // block_rows * rows
    return *csr_from_edges(indices, keys, blocks * rows), blocks


def add_rows(out, rows, packed):
    """Unbuffered addition, which is right for repeated rows too."""
    out = out.copy()
    np.add.at(out, rows, packed)
    return out


def random_bits(row_ids, columns, key):
    """The 16 bits of elements [rows, columns], in uint64."""
    rows, columns = np.asarray(row_ids).astype(np.int64).astype(np.uint64)[:, None], np.asarray(columns, np.uint64)
    k0, k1, stream = (int(word) for word in key)
    group, r = columns // GROUP, columns % GROUP
    half, block = r // LANES, group * LANES + r % LANES
    words = philox_python((block, rows & np.uint64(0xFFFFFFFF), rows >> np.uint64(32), stream), (k0, k1))
    return np.choose(half.astype(int) // 2, words) >> np.uint64(16) * (half % 2) & np.uint64(0xFFFF)


def dropout(feats, row_ids, p, *, seed, step, site):
    """Element by element."""
    threshold, scale = mask_parameters(p, feats.dtype)
    # By numpy: nothing is shared with the vector code but the constants.
    keep = random_bits(row_ids, range(feats.shape[1]), derive_key(seed, step, site)) >= threshold
    return np.where(keep, feats * scale, 0).astype(feats.dtype)


def relative_error(got, expected):
    """Largest difference over the largest expected value; inf where shapes or infinities differ."""
    got, expected = (np.asarray(widened(np.asarray(a)), np.float64) for a in (got, expected))
    if got.shape != expected.shape or not np.array_equal(np.isfinite(got), np.isfinite(expected)):
        return np.inf
    got, expected = (np.where(np.isfinite(a), a, 0) for a in (got, expected))
    error, largest = float(np.abs(got - expected).max(initial=0.0)), float(np.abs(expected).max(initial=0.0))
    return error / largest if largest else np.inf if error else 0.0


def difference(got, expected):
    """The relative error in units of what rounding explains: more than 1 is wrong. Integers must be the same."""
    error = relative_error(got, expected)
    allowed = ROUNDING.get(np.asarray(got).dtype, 0) if np.asarray(expected).dtype.kind == "f" else 0
    return error / allowed if allowed else np.inf if error else 0.0


def activate(feats, bias, norm, activation, mask, eps=1e-5):
    """(out, stats) in float64: the formula of activation.py, step by step."""
    row = widened(feats).astype(np.float64) + bias
    stats = None
    if norm is not None:
        stats = np.stack([row.mean(axis=1), 1 / np.sqrt(row.var(axis=1) + eps)], axis=1)
        row = norm[0] * (row - stats[:, :1]) * stats[:, 1:] + norm[1]
    row = np.maximum(row, 0) if activation == "relu" else row
    return dropout(row, **mask), stats


def activate_backward(grad, out, feats, bias, norm, stats, activation, mask):
    """(grad_feats, grad_bias, grad_gamma, grad_beta) in float64."""
    g = dropout(grad.astype(np.float64), **mask)
    if activation == "relu":
        g = np.where(out > 0, grad.astype(np.float64) / (1 - mask["p"]), 0)
    if norm is None:
        return g, g.sum(axis=0), None, None
    x = (feats.astype(np.float64) + bias - stats[:, :1]) * stats[:, 1:]
    h = g * norm[0]
    row = (h - h.mean(axis=1, keepdims=True) - x * (h * x).mean(axis=1, keepdims=True)) * stats[:, 1:]
    return row, row.sum(axis=0), (g * x).sum(axis=0), g.sum(axis=0)


def _leaky(x, slope):
    return np.where(x > 0, x, slope * x)


def attention(indptr, indices, feats, source_scores, target_scores, slope=0.2):
    """(out, maximum, sums), row by row in float64."""
    feats, rows = widened(feats).astype(np.float64), len(indptr) - 1
    out, top = np.zeros((rows, *feats.shape[1:])), np.full(target_scores.shape, -np.inf)
    sums = np.zeros(target_scores.shape)
    for i in range(rows):
        sources = indices[indptr[i] : indptr[i + 1]]
        if len(sources):
            scores = _leaky(source_scores[sources].astype(np.float64) + target_scores[i], slope)
            top[i] = scores.max(axis=0)
            power = np.exp(scores - top[i])
            sums[i] = power.sum(axis=0)
            out[i] = (power[..., None] * feats[sources]).sum(axis=0) / sums[i][:, None]
    return out, top, sums


def attention_backward(indptr, indices, feats, source_scores, target_scores, grad, maximum, sums, dots, slope=0.2):
    """(grad_feats, grad_source_scores, grad_target_scores), arc by arc in float64."""
    feats, grad = feats.astype(np.float64), grad.astype(np.float64)
    grad_feats, grad_source = np.zeros(feats.shape), np.zeros(source_scores.shape)
    grad_target = np.zeros(target_scores.shape)
    for i, e, _ in edges_of(indptr):
        j = indices[e]
        score = source_scores[j].astype(np.float64) + target_scores[i]
        alpha = np.exp(_leaky(score, slope) - maximum[i]) / sums[i]
        change = alpha * np.where(score > 0, 1, slope) * ((grad[i] * feats[j]).sum(axis=-1) - dots[i])
        grad_feats[j] += alpha[:, None] * grad[i]
        grad_source[j] += change
        grad_target[i] += change
    return grad_feats, grad_source, grad_target


def merge_attention(out, maximum, sums, rows, other_out, other_maximum, other_sums):
    """(out, maximum, sums), not in place: partial results of the given rows are merged, the others stay."""
    merged = [a.astype(np.float64) for a in (out, maximum, sums)]
    top = np.maximum(maximum[rows], other_maximum)
    before, after = np.exp(maximum[rows] - top), np.exp(other_maximum - top)
    merged[0][rows] = out[rows] * before[..., None] + other_out * after[..., None]
    merged[1][rows], merged[2][rows] = top, sums[rows] * before + other_sums * after
    return tuple(merged)


def pair_scores(indptr, others, arcs, sources, targets, attn, heads, slope=0.2):
    """[E, H], arc by arc."""
    scores = np.zeros((len(others), heads))
    for i, e, _ in edges_of(indptr):
        pair = _leaky(sources[others[e]].astype(np.float64) + targets[i], slope) * attn[0]
        scores[arcs[e]] = pair.reshape(heads, -1).sum(axis=1)
    return scores


def pair_scores_backward(indptr, others, arcs, sources, targets, attn, grad, slope=0.2):
    """(grad_targets, grad_attn), arc by arc."""
    grad_targets, grad_attn = np.zeros(targets.shape), np.zeros(attn.shape)
    for i, e, _ in edges_of(indptr):
        pair = sources[others[e]].astype(np.float64) + targets[i]
        weight = np.repeat(grad[arcs[e]], len(pair) // grad.shape[1])
        grad_targets[i] += weight * np.where(pair > 0, 1, slope) * attn[0]
        grad_attn[0] += weight * _leaky(pair, slope)
    return grad_targets, grad_attn


def head_dots(left, right, heads):
    """[N, H]."""
    width = left.shape[1] // heads
    left, right = (widened(a).reshape(len(a), a.shape[1] // width, width).astype(np.float64) for a in (left, right))
    return (left * right).sum(axis=2)


def head_mean(feats, heads, bias):
    """[N, F] in float64."""
    return feats.astype(np.float64).reshape(len(feats), heads, feats.shape[1] // heads).mean(axis=1) + (
        0 if bias is None else bias
    )


def relu_backward_dots(grad, out, bias, heads, p):
    """(grad_feats, grad_bias, dots)."""
    grad, out = widened(grad).astype(np.float64), widened(out).astype(np.float64)
    row = np.where(out > 0, grad / (1 - p), 0)
    rest = 0 if bias is None else row * bias
    return row, row.sum(axis=0), (grad * out - rest).reshape(len(grad), heads, grad.shape[1] // heads).sum(axis=2)


def cross_entropy(logits, labels, rows, smoothing=0.0):
    """(sum of losses, highest logit and 1 / sum of powers of each row, gradient)."""
    logits = logits.astype(np.float64)
    top = logits.max(axis=1, initial=-np.inf)[:, None]
    powers = np.exp(logits - top)
    sums, truth = powers.sum(axis=1, keepdims=True), np.zeros(logits.shape)
    truth[np.flatnonzero(rows), labels[rows]] = 1
    truth = (1 - smoothing) * truth + smoothing / max(1, logits.shape[1])
    losses = np.log(sums) + ((top - logits) * truth).sum(axis=1, keepdims=True)
    return losses[rows].sum(), np.concatenate([top, 1 / sums], axis=1), rows[:, None] * (powers / sums - truth)


def head_outer(feats, rows, factors):
    """feats after it, not in place."""
    heads = factors.shape[2]
    split = [widened(a).reshape(len(a), heads, a.shape[1] // heads).astype(np.float64) for a in (feats, rows)]
    return (split[0] + np.einsum("sih,shk->ihk", factors, split[1])).reshape(feats.shape)


def encode_decode(feats, rows, wire, row_ids, draw):
    """What the receiver of encoded rows gets, element by element."""
    values = feats[rows]
    if wire == "float32":
        return values
    if wire == "bfloat16":
        return widened(to_bfloat16(values))
    key, levels = derive_key(**draw, tag=ROUNDING_TAG), np.float32(WIRES[wire].levels * BELOW)
    top = np.abs(values).max(axis=1, keepdims=True)
    factor = np.divide(levels, top, out=np.zeros_like(top), where=top > 0)
    # The same formula as the kernel's in float32, since a code is a floor: another rounding would be another code.
    chance = np.float32(random_bits(np.asarray(row_ids)[rows], range(feats.shape[1]), key) / 65536)
    return np.floor(values * factor + chance) * (top / levels)
