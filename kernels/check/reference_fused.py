"""Slow, obvious numpy of the fused kernels: activation, attention, products, codecs; float64 results.

The plain ones are in reference.py.
"""

import numpy as np

from distgnn.config.wires import WIRES
from distgnn.kernels.check.reference import dropout, edges_of, random_bits, to_bfloat16
from distgnn.kernels.runtime.arrays import widened
from distgnn.kernels.runtime.formats import BELOW, ROUNDING_TAG
from distgnn.kernels.simd.philox import derive_key


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
