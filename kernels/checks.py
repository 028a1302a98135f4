"""Every kernel against its reference on a small awkward graph: `distgnn check` and `warm` call it."""

import numpy as np

from . import reference
from .aggregate import spmm
from .arcs import sddmm
from .masks import dropout
from .rows import add_rows, pack_rows
from .structure import csr_from_edges, transpose_csr

TOLERANCE = {"float32": 1e-5, "float64": 1e-13}  # relative to the largest value; sums of at most 60 terms


def self_check(dtypes=("float32", "float64")):
    """Run every kernel once and compare.

    Returns: list of (kernel, ok, max_error); the error is relative to the largest expected value.
    """
    results = [_compare("csr_from_edges", lambda m: m.csr_from_edges(*_edges(), 40), 0)]
    indptr, indices, _ = reference.csr_from_edges(*_edges(), 40)
    results.append(_compare("transpose_csr", lambda m: m.transpose_csr(indptr, indices, 41), 0))
    for dtype in dtypes:
        for name, call in _calls(np.dtype(dtype), indptr, indices):
            results.append(_compare(f"{name} {dtype}", call, TOLERANCE[dtype]))
    return results


def warm(dtypes=("float32",)):
    """Compile (or load from the cache) what training uses; raises if a kernel is wrong.

    Call it from one process before the others start: they then only load. It takes the place of no lock: several
    processes that start cold compile each kernel once all the same, but wait for one another kernel by kernel.
    """
    for name, ok, error in self_check(dtypes):
        if not ok:
            raise RuntimeError(f"kernel {name} failed its self-check: relative error {error:.3g}")


class _Kernels:
    csr_from_edges = staticmethod(csr_from_edges)
    transpose_csr = staticmethod(transpose_csr)
    spmm = staticmethod(spmm)
    sddmm = staticmethod(sddmm)
    pack_rows = staticmethod(pack_rows)
    add_rows = staticmethod(lambda out, rows, packed: add_rows(out.copy(), rows, packed))
    dropout = staticmethod(dropout)


def _edges():
    """300 edges: 41 sources, targets 0 … 39 with a hub (row 3) and rows 30 … 39 without any arc."""
    generator = np.random.default_rng(0)
    src, dst = generator.integers(0, 41, 300), generator.integers(0, 30, 300)
    dst[generator.random(300) < 0.2] = 3
    return src.astype(np.int32), dst.astype(np.int32)


def _calls(dtype, indptr, indices):
    """(name, function of a module that has all kernels)."""
    generator = np.random.default_rng(1)
    feats = generator.standard_normal((41, 37)).astype(dtype)
    targets = generator.standard_normal((40, 37)).astype(dtype)
    weight = generator.standard_normal(len(indices)).astype(dtype)
    rows = generator.permutation(41)[:20].astype(np.int32)
    ids = generator.integers(0, 2**40, 41)
    yield "spmm sum", lambda m: m.spmm(indptr, indices, feats, "sum", weight, source_scale=weight[:41])
    yield "spmm mean", lambda m: m.spmm(indptr, indices, feats, "mean")
    yield "spmm max", lambda m: m.spmm(indptr, indices, feats, "max", weight)
    yield "spmm min", lambda m: m.spmm(indptr, indices, feats, "min")
    yield "sddmm dot", lambda m: m.sddmm(indptr, indices, feats, targets)
    yield "pack_rows", lambda m: m.pack_rows(feats, rows)
    yield "add_rows", lambda m: m.add_rows(feats, rows, targets[:20])
    yield "dropout", lambda m: m.dropout(feats, ids, 0.3, seed=1, step=2, site=3)


def _compare(name, call, tolerance):
    got, expected = call(_Kernels), call(reference)
    if not isinstance(got, tuple):
        got, expected = (got,), (expected,)
    error = 0.0
    for a, b in zip(got, expected, strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        scale = max(float(np.abs(b).max(initial=0.0)), 1e-30)
        error = max(error, float(np.abs(a - b).max(initial=0.0)) / scale) if a.shape == b.shape else np.inf
    return name, bool(error <= tolerance), error
