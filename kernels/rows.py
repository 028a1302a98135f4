"""Rows moved between arrays: what an exchange packs before sending and adds after receiving."""

from .arrays import index_array, output, row_array
from .jit import kernel
from .threads import even_chunks, run


def pack_rows(feats, rows, out=None):
    """out[i] = feats[rows[i]].

    Args: feats float32 or float64 [N, D]; rows int [M] in [0, N), not checked; out [M, D].
    Returns: out.
    """
    feats, rows = row_array(feats), index_array(rows, "rows")
    out = output(out, (len(rows), feats.shape[1]), feats.dtype)
    run(_pack, even_chunks(len(rows), feats.shape[1]), feats, rows, out)
    return out


def add_rows(out, rows, packed):
    """out[rows[i]] += packed[i], in place.

    Args: out float32 or float64 [N, D]; rows int [M] in [0, N), each at most once (threads would otherwise add to
        one row at the same time), not checked; packed [M, D] of the same dtype.
    Returns: out.
    """
    packed, rows = row_array(packed, "packed"), index_array(rows, "rows")
    out = output(out, (len(out), packed.shape[1]), packed.dtype)
    if len(rows) != len(packed):
        raise ValueError(f"rows and packed must be equally long, got {len(rows)} and {len(packed)}")
    run(_add, even_chunks(len(rows), packed.shape[1]), out, rows, packed)
    return out


@kernel
def _pack(start, stop, feats, rows, out):
    """Writes out[start:stop]."""
    for i in range(start, stop):
        j = rows[i]
        for k in range(feats.shape[1]):
            out[i, k] = feats[j, k]


@kernel
def _add(start, stop, out, rows, packed):
    """Writes out[rows[start:stop]]."""
    for i in range(start, stop):
        j = rows[i]
        for k in range(packed.shape[1]):
            out[j, k] += packed[i, k]
