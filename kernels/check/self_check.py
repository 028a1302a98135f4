"""Every kernel against its reference on a graph of 300 arcs: `distgnn check` and `warm` call it."""

from typing import Any

import numpy as np

from distgnn.kernels.check.cases import CASES, examples
from distgnn.kernels.check.checked import KERNELS, unchecked
from distgnn.kernels.check.inputs import LARGE
from distgnn.kernels.check.reference import difference, relative_error, to_bfloat16


def self_check(dtypes: tuple[str, ...] = ("float32", "float64")) -> list[tuple[str, bool, float]]:
    """Run every kernel at least once and compare.

    Returns: list of (kernel, ok, max_error); the error is relative to the largest expected value.
    """
    results = []
    with unchecked():
        for label, name, given in examples(tuple(dtypes)):
            pairs = list(CASES[name](KERNELS[name], given, LARGE))
            ok = all(difference(*pair) <= 1 for pair in pairs)
            results.append((label, ok, max(relative_error(got, _as_stored(got, expected)) for got, expected in pairs)))
    return results


def _as_stored(got: Any, expected: Any) -> Any:
    """`expected` in the dtype of `got`: the rounding of a bfloat16 result is no error of the kernel."""
    return to_bfloat16(expected) if np.asarray(got).dtype == np.uint16 else expected


def warm(dtypes: tuple[str, ...] = ("float32",), widths: tuple[int, ...] = ()) -> None:
    """Compile (or load from the cache) what training uses, and refuse a kernel that is wrong.

    Args: dtypes of self_check; widths: feature widths of the model; sums, gradients, masks and packing are compiled
        for each (0.3 to 1 s a kernel when the cache is cold).
    Raises: RuntimeError naming the first kernel that differs from its reference.
    Notes: call it from one process before the others start; they then only load. Processes that start cold together
        also compile each kernel once, under a file lock, but wait for one another.
    """
    for name, ok, error in self_check(dtypes):
        if not ok:
            raise RuntimeError(f"kernel {name} failed its self-check: relative error {error:.3g}")
    indptr, indices, rows = np.array([0, 1]), np.zeros(1, np.int32), np.zeros(1, np.int32)
    for dtype in dtypes:
        for width in widths:
            # One row is enough: machine code depends on dtypes and widths.
            feats = np.ones((1, width), dtype)
            KERNELS["spmm"](indptr, indices, feats)
            KERNELS["add_rows"](feats, rows, KERNELS["pack_rows"](feats, rows))
            KERNELS["dropout"](feats, rows, 0.5, seed=1, step=2, site=3)
