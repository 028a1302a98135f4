"""Every kernel has a case, and the comparison of `distgnn check` sees a kernel that is wrong."""

import numpy as np

from distgnn import kernels
from distgnn.kernels.check import cases


def test_every_kernel_has_a_case():
    """A new public name must get a case here, or be named as one that computes nothing by itself."""
    settings = {"Tuning", "BlockedCsr", "block_rows", "compilation", "get_num_threads", "set_num_threads"}
    settings |= {"empty_rows", "return_large_blocks", "give_back_freed_memory"}
    piecewise = {"inner_products", "narrow_products"}  # call inner_product and narrow_product, which have cases
    expected = set(kernels.__all__) - settings - piecewise
    assert expected == set(cases.CASES) == {example.kernel for example in cases.examples()}


def test_a_kernel_that_returns_zeros_is_named(monkeypatch):
    """As DGL's did on a graph of 3 billion arcs (dmlc/dgl issue 3471)."""

    def zeros(indptr, indices, feats, *_, reduce="sum", **__):
        out = np.zeros((len(indptr) - 1, feats.shape[1]), np.float32)
        return (out, None) if reduce in ("max", "min") else out

    right = cases.self_check(("float32",))
    assert all(ok and error < 1e-5 for _, ok, error in right), max(right, key=lambda row: row[2])
    monkeypatch.setattr(kernels, "spmm", zeros)
    found = {name: ok for name, ok, _ in cases.self_check(("float32",))}
    assert not found["spmm sum float32"] and found["sddmm float32"]
