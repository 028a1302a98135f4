"""Values on arcs from the rows at their ends.

    dot   out[e] = ⟨source_rows[indices[e]], target_rows[i]⟩   for each arc e of target row i

It is the gradient of a weighted sum with respect to its edge weights: dot of the input rows and the output's
gradient. With `edge_ids` the value of CSR position e is written to out[edge_ids[e]].
"""

import numpy as np

from .arrays import index_array, indptr_array, output, row_array
from .jit import kernel
from .threads import edge_chunks, run


def sddmm(indptr, indices, source_rows, target_rows, out=None, *, edge_ids=None):
    """Dot product of the source row and the target row of every arc.

    Args: indptr int [R + 1]; indices int32 or int64 [E]; source_rows [N, D] and target_rows [R, D] of one dtype,
        float32 or float64; out [E]; edge_ids [E]: CSR position -> place in `out`, each at most once.
    Returns: out [E], or as long as the largest edge id needs. With a slice of an indptr only its arcs are written.
    Raises: ValueError on shapes and dtypes.
    """
    indptr, indices = indptr_array(indptr), index_array(indices)
    source_rows, target_rows = row_array(source_rows, "source_rows"), row_array(target_rows, "target_rows")
    if source_rows.dtype != target_rows.dtype or source_rows.shape[1] != target_rows.shape[1]:
        raise ValueError("source_rows and target_rows must have one dtype and width")
    if len(target_rows) != len(indptr) - 1:
        raise ValueError(f"target_rows must have {len(indptr) - 1} rows, got {len(target_rows)}")
    edge_ids = np.empty(0, np.int64) if edge_ids is None else index_array(edge_ids, "edge_ids")
    if out is None:
        out = np.zeros(max(len(indices), int(edge_ids.max(initial=-1)) + 1), source_rows.dtype)
    out = output(out, out.shape, source_rows.dtype)
    run(_dot_rows, edge_chunks(indptr, source_rows.shape[1]), indptr, indices, source_rows, target_rows, edge_ids, out)
    return out


@kernel(fastmath={"reassoc", "contract"})
def _dot_rows(start, stop, indptr, indices, source_rows, target_rows, edge_ids, out):
    """Writes the arcs of rows [start, stop)."""
    for i in range(start, stop):
        for e in range(indptr[i], indptr[i + 1]):
            j = indices[e]
            total = source_rows.dtype.type(0)
            for k in range(source_rows.shape[1]):
                total += source_rows[j, k] * target_rows[i, k]
            out[edge_ids[e] if edge_ids.shape[0] else e] = total
