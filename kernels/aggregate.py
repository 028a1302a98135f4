"""Aggregation of neighbours: sums, means and extremes of source rows over the arcs of each target row.

R target rows, E arcs, N source rows, D feature width. CSR: row i's arcs are positions indptr[i] … indptr[i + 1],
the source of position e is indices[e].

sum    out[i] (+)= target_scale[i] * Σ_e edge_weight[e] * source_scale[indices[e]] * feats[indices[e]]
mean   the same, divided by degree[i] (default: the row's number of arcs); rows without arcs are 0
max    out[i, k] = max_e edge_weight[e] * source_scale[indices[e]] * feats[indices[e], k], and where it was
"""

import numpy as np

from .arrays import index_array, indptr_array, output, row_array, vector
from .jit import kernel
from .threads import edge_chunks, run

REDUCTIONS = ("sum", "mean", "max", "min")


def spmm(
    indptr,
    indices,
    feats,
    reduce="sum",
    edge_weight=None,
    out=None,
    *,
    edge_ids=None,
    source_scale=None,
    target_scale=None,
    accumulate=False,
    degree=None,
    keep_inf=False,
):
    """Aggregate the rows of `feats` over the arcs of a CSR.

    Args: indptr int [R + 1], may be a slice of a longer one (offsets stay absolute); indices int32 or int64 [E],
        in [0, N), not checked; feats float32 or float64 [N, D]; reduce sum, mean, max or min; edge_weight [E],
        by `edge_ids` [E] if given (CSR position -> row of edge_weight), else by position; out [R, D];
        source_scale [N]; target_scale [R]; accumulate adds to `out` (sum and mean); degree [R] divides a mean;
        keep_inf leaves -inf (max) or +inf (min) in rows without arcs, for partial results that are merged later.
    Returns: out; for max and min (out, winner): winner [R, D] is the CSR position (int32 if it fits) or -1. Ties go
        to the smallest edge id.
    Raises: ValueError on shapes and dtypes.
    Notes: reads E · D elements. Each row is summed in CSR order by one thread: same bits for any number of threads.
    """
    indptr, indices, feats = indptr_array(indptr), index_array(indices), row_array(feats)
    rows, width, dtype = len(indptr) - 1, feats.shape[1], feats.dtype
    edge_ids = np.empty(0, np.int64) if edge_ids is None else index_array(edge_ids, "edge_ids")
    weight = np.empty(0, dtype) if edge_weight is None else vector(edge_weight, len(edge_weight), dtype, "edge_weight")
    source_scale = vector(source_scale, len(feats), dtype, "source_scale")
    target_scale = vector(target_scale, rows, dtype, "target_scale")
    if reduce not in REDUCTIONS:
        raise ValueError(f"reduce must be one of {', '.join(REDUCTIONS)}, got {reduce!r}")
    if reduce in ("max", "min"):
        if accumulate or len(target_scale):
            raise ValueError(f"reduce={reduce!r} takes neither accumulate nor target_scale")
        return _extreme(indptr, indices, feats, reduce, weight, edge_ids, source_scale, out, keep_inf)
    if accumulate and out is None:
        raise ValueError("accumulate=True needs out")
    out = output(out, (rows, width), dtype)
    if degree is not None:
        target_scale = _divided(target_scale, degree, rows, dtype)
    mean = reduce == "mean" and degree is None
    arguments = indptr, indices, feats, weight, edge_ids, source_scale, target_scale, out, accumulate, mean
    run(_sum_rows, edge_chunks(indptr, width), *arguments)
    return out


def _divided(target_scale, degree, rows, dtype):
    """target_scale / degree, 0 where the degree is 0."""
    inverse = np.asarray(degree, np.float64)
    if inverse.shape != (rows,):
        raise ValueError(f"degree must have shape [{rows}], got {inverse.shape}")
    inverse = np.divide(1.0, inverse, out=np.zeros(rows), where=inverse > 0).astype(dtype)
    return inverse * target_scale if len(target_scale) else inverse


@kernel
def _sum_rows(start, stop, indptr, indices, feats, weight, edge_ids, source_scale, target_scale, out, accumulate, mean):
    """Writes out[start:stop]."""
    width = feats.shape[1]
    one = feats.dtype.type(1)
    sums = np.empty(width, feats.dtype)
    for i in range(start, stop):
        sums[:] = 0
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            factor = one
            if weight.shape[0]:
                factor = weight[edge_ids[e] if edge_ids.shape[0] else e]
            if source_scale.shape[0]:
                factor = factor * source_scale[j]
            row = feats[j]
            for k in range(width):
                sums[k] += factor * row[k]
        scale = target_scale[i] if target_scale.shape[0] else one
        if mean and indptr[i + 1] > indptr[i]:
            scale = scale / feats.dtype.type(indptr[i + 1] - indptr[i])
        if accumulate:
            for k in range(width):
                out[i, k] += scale * sums[k]
        else:
            for k in range(width):
                out[i, k] = scale * sums[k]


def _extreme(indptr, indices, feats, reduce, weight, edge_ids, source_scale, out, keep_inf):
    shape = (len(indptr) - 1, feats.shape[1])
    out = output(out, shape, feats.dtype)
    winner = np.empty(shape, np.int32 if indptr[-1] < 2**31 else np.int64)
    sign = feats.dtype.type(1 if reduce == "max" else -1)
    arguments = indptr, indices, feats, weight, edge_ids, source_scale, out, winner, sign, keep_inf
    run(_extreme_rows, edge_chunks(indptr, shape[1]), *arguments)
    return out, winner


@kernel
def _extreme_rows(start, stop, indptr, indices, feats, weight, edge_ids, source_scale, out, winner, sign, keep_inf):
    """Writes out[start:stop] and winner[start:stop]; a minimum is the maximum of the negatives."""
    width = feats.shape[1]
    best = np.empty(width, feats.dtype)
    for i in range(start, stop):
        best[:] = -np.inf
        winner[i, :] = -1
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            factor = sign
            if weight.shape[0]:
                factor = factor * weight[edge_ids[e] if edge_ids.shape[0] else e]
            if source_scale.shape[0]:
                factor = factor * source_scale[j]
            for k in range(width):
                value = factor * feats[j, k]
                last = winner[i, k]
                better = value > best[k] or last < 0
                if value == best[k] and last >= 0 and edge_ids.shape[0]:
                    better = edge_ids[e] < edge_ids[last]
                if better:
                    best[k] = value
                    winner[i, k] = e
        empty = indptr[i] == indptr[i + 1] and not keep_inf
        for k in range(width):
            out[i, k] = feats.dtype.type(0) if empty else sign * best[k]
