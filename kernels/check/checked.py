"""No kernel hands out a result before it has been compared with its reference, in this process, on this machine.

`@checked_once` stands on every public function that computes. The first call with a new combination of dtypes, widths
and options also runs the same function, and so the same machine code, on a small graph with random rows
(cases.py) and compares before it returns; later calls cost one look-up. A kernel that is wrong raises a
RuntimeError. DGL's once returned all zeros on papers100M without a word (dmlc/dgl issue 3471).

DISTGNN_KERNEL_CHECKS=0 turns it off. `self_check` compares every kernel on a graph of 300 arcs: `distgnn check` and
`warm` call it.
"""

import contextlib
import functools
import inspect
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import numpy as np

from distgnn.kernels.check.cases import CASES, examples
from distgnn.kernels.check.inputs import LARGE, SMALL
from distgnn.kernels.check.reference import difference, relative_error, to_bfloat16

P = ParamSpec("P")
R = TypeVar("R")
KERNELS: dict[str, Callable] = {}  # every kernel without its check, by name: whoever imports a kernel registers it


def checked_once(function: Callable[P, R]) -> Callable[P, R]:
    """Compare with the reference before the first use of each combination of dtypes, widths and options.

    Raises (when called): RuntimeError naming kernel and combination if they differ.
    """
    KERNELS[function.__name__] = function
    verified: set[tuple] = set()
    signature = inspect.signature(function)
    heads = list(signature.parameters).index("heads") if "heads" in signature.parameters else len(signature.parameters)

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        # The real call first: a bad argument raises its own error, not one of the check. Its result is handed out only
        # if the check passes; two threads may check the same combination at once, which costs time and nothing else.
        result = function(*args, **options)
        key = (
            tuple(map(kind, args)),
            tuple((name, kind(value)) for name, value in options.items()),
            args[heads : heads + 1],  # each number of them is another kernel
            options.get("heads"),
        )
        if key not in verified and not getattr(_busy, "checking", False):
            _verify(function, signature.bind(*args, **options).arguments)
            verified.add(key)
        return result

    return call


def kind(value: Any) -> Any:
    """What tells one compiled kernel, or one branch of it, from another: dtype and width of arrays, and switches."""
    # Not the length: a kernel is compiled for dtypes and cut for widths, and knows no number of rows.
    if isinstance(value, np.ndarray):
        return value.dtype, value.shape[1:]
    if isinstance(value, str | bool) or value is None:
        return value
    if isinstance(value, tuple | list):
        return tuple(map(kind, value))
    return type(value), value is not None and np.size(value) == 1 and bool(value == 0)


def _verify(function: Callable, given: dict[str, Any]) -> None:
    if os.environ.get("DISTGNN_KERNEL_CHECKS") == "0":
        return
    try:
        # thread-local: kernels that other threads call at the same time are checked as ever.
        with unchecked():  # what a kernel calls on the small graph needs no check of its own
            error = max(difference(*pair) for pair in CASES[function.__name__](function, given, SMALL))
    except MemoryError:
        raise
    except Exception as fault:
        # The kernel took the real call, so these rows are at fault, which are the check's own: no reason to end a run.
        print(
            f"distgnn: kernel {function.__name__} is used unchecked for {_described(given)}: its check is wrong, "
            f"please report it ({type(fault).__name__}: {fault})",
            file=sys.stderr,
            flush=True,
        )
        return
    if error > 1:
        raise RuntimeError(
            f"kernel {function.__name__} differs from its reference on this machine, {error:.3g} times more than "
            f"rounding explains, for {_described(given)}: its result is thrown away; `distgnn check` says more"
        )


@contextlib.contextmanager
def unchecked() -> Iterator[None]:
    """Kernels called inside by this thread are not checked: the caller compares them himself."""
    before, _busy.checking = getattr(_busy, "checking", False), True
    try:
        yield
    finally:
        _busy.checking = before


def _described(given: dict[str, Any]) -> str:
    return ", ".join(f"{name}={_text(value)}" for name, value in given.items() if value is not None)


def _text(value: Any) -> str:
    return f"{value.dtype} {list(value.shape)}" if isinstance(value, np.ndarray) else str(value)[:40]


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


_busy = threading.local()  # .checking: this thread is inside a check
