"""A wrong kernel is found and refused."""

import sys

import numpy as np
import pytest

from distgnn import kernels
from distgnn.kernels.check import cases, checked


def test_self_check_runs_every_kernel_and_passes():
    called = set()
    sys.setprofile(lambda frame, event, _: called.add(frame.f_code) if event == "call" else None)
    try:
        results = kernels.self_check(("float32",))
    finally:
        sys.setprofile(None)
    assert {name for name in cases.CASES if getattr(kernels, name).__wrapped__.__code__ not in called} == set()
    assert len(results) > 20 and all(ok for _, ok, _ in results)


def test_a_kernel_that_returns_zeros_is_refused(monkeypatch):
    """As DGL's did on a graph of 3 billion arcs (dmlc/dgl issue 3471)."""

    def zeros(indptr, indices, feats, *_, reduce="sum", **__):
        out = np.zeros((len(indptr) - 1, feats.shape[1]), np.float32)
        return (out, None) if reduce in ("max", "min") else out

    monkeypatch.setitem(checked.KERNELS, "spmm", zeros)
    found = {name: ok for name, ok, _ in kernels.self_check(("float32",))}
    assert not found["spmm sum float32"] and found["sddmm dot float32"]
    with pytest.raises(RuntimeError, match="spmm"):
        kernels.warm()


def test_warm_compiles_widths():
    kernels.warm(widths=(37,))
