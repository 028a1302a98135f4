"""Slow, obvious numpy of every kernel: what tests and `self_check` compare with."""

import numpy as np

from distgnn.kernels.runtime.arrays import flat_rows, widened
from distgnn.kernels.runtime.formats import mask_parameters
from distgnn.kernels.simd.philox import GROUP, LANES, derive_key, philox_python

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
    target_scale=None, accumulate=False, degree=None, keep_inf=False,
):  # fmt: skip
    """aggregate.spmm, arc by arc in float64."""
    rows, feats = len(indptr) - 1, widened(feats)
    shape, feats = feats.shape, flat_rows(feats)
    if reduce in ("max", "min"):
        return _extreme(indptr, indices, feats, reduce, edge_weight, edge_ids, source_scale, keep_inf)
    sums = np.zeros((rows, feats.shape[1]))
    for i, e, edge_id in edges_of(indptr, edge_ids):
        sums[i] += message(indices, feats, e, edge_id, edge_weight, source_scale)
    if reduce == "mean":
        count = np.diff(indptr) if degree is None else np.asarray(degree)
        sums = np.divide(sums, count[:, None], out=np.zeros_like(sums), where=count[:, None] > 0)
    if target_scale is not None:
        sums = sums * np.asarray(target_scale, np.float64)[:, None]
    if accumulate:
        sums = sums + out.reshape(sums.shape)
    return sums.astype(feats.dtype).reshape(rows, *shape[1:])


def _extreme(indptr, indices, feats, reduce, edge_weight, edge_ids, source_scale, keep_inf):
    shape = (len(indptr) - 1, feats.shape[1])
    sign = 1 if reduce == "max" else -1
    best, winner, chosen = np.full(shape, -np.inf), np.full(shape, -1), np.full(shape, -1)
    for i, e, edge_id in edges_of(indptr, edge_ids):
        value = sign * message(indices, feats, e, edge_id, edge_weight, source_scale)
        better = (winner[i] < 0) | (value > best[i]) | ((value == best[i]) & (edge_id < chosen[i]))
        best[i][better], winner[i][better], chosen[i][better] = value[better], e, edge_id
    best = sign * best
    return np.where((winner < 0) & (not keep_inf), 0, best).astype(feats.dtype), winner


def sddmm(indptr, indices, source_rows, target_rows, op="dot", out=None, *, edge_ids=None):
    """Arc by arc in float64."""
    sources, targets = widened(source_rows), widened(target_rows)
    dtype, tail = sources.dtype, sources.shape[1:-1] if op == "dot" else sources.shape[1:]
    values = np.zeros((len(indices), *tail)) if out is None else out.astype(np.float64)
    for i, e, edge_id in edges_of(indptr, edge_ids):
        a, b = sources[indices[e]].astype(np.float64), targets[i].astype(np.float64)
        values[edge_id] = a + b if op == "add" else a * b if op == "mul" else (a * b).sum(axis=-1)
    return values.astype(dtype)


def edge_softmax(indptr, scores, *, edge_ids=None):
    """Row by row in float64."""
    out, ids = np.zeros(scores.shape), np.arange(len(scores)) if edge_ids is None else edge_ids
    for i in range(len(indptr) - 1):
        arcs = ids[indptr[i] : indptr[i + 1]]
        if len(arcs):
            power = np.exp(scores[arcs].astype(np.float64) - scores[arcs].max(axis=0))
            out[arcs] = power / power.sum(axis=0)
    return out.astype(scores.dtype)


def edge_softmax_backward(indptr, out, grad, *, edge_ids=None):
    """Row by row in float64."""
    result, ids = np.zeros(out.shape), np.arange(len(out)) if edge_ids is None else edge_ids
    for i in range(len(indptr) - 1):
        arcs = ids[indptr[i] : indptr[i + 1]]
        weighted = out[arcs].astype(np.float64) * grad[arcs]
        result[arcs] = weighted - out[arcs] * weighted.sum(axis=0)
    return result.astype(out.dtype)


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
