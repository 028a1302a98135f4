"""Every kernel has a case, and the comparison of `distgnn check` sees a kernel that is wrong."""

import numpy as np
import pytest

from distgnn import kernels
from distgnn.kernels.check import cases, reference
from distgnn.kernels.check.inputs import large_graph

EXAMPLES, GRAPH = list(cases.examples()), large_graph()


@pytest.mark.parametrize("name", cases.CASES)
def test_each_case_passes_and_sees_a_kernel_that_returns_zeros(name):
    function = getattr(kernels, name)

    def zeros(*args, **options):
        results = function(*args, **options)
        several = isinstance(results, tuple)
        results = [None if r is None else np.zeros_like(r) for r in (results if several else (results,))]
        return tuple(results) if several else results[0]

    for example in (example for example in EXAMPLES if example.kernel == name):
        assert all(reference.difference(*pair) <= 1 for pair in example.pairs(function, GRAPH)), example.label
        assert any(reference.difference(*pair) > 1 for pair in example.pairs(zeros, GRAPH)), example.label


OF_HEADS = (
    "attention attention_backward pair_scores pair_scores_backward head_dots head_outer head_scores head_mean "
    "relu_backward_dots"
).split()
OF_WIDTH = (
    "spmm sum,spmm max,sddmm dot,sddmm add,product,inner_product,narrow_product,dropout,activate norm,"
    "activate_backward norm,cross_entropy,cross_entropy_backward,pack_rows,add_rows,encode_rows int4,decode_rows int4"
).split(",")
SHAPES = [(name, {"heads": heads, "each": each}) for name in OF_HEADS for heads, each in ((1, 5), (2, 141))]
SHAPES += [(name, {"width": width}) for name in OF_WIDTH for width in (1, 300)]


@pytest.mark.parametrize(("label", "widths"), SHAPES, ids=lambda value: str(value))
def test_rows_shorter_than_a_register_and_wider_than_all(label, widths):
    """Tiles overlap or are cut there, and rows are worked off in several passes."""
    found = [one for one in EXAMPLES if one.label in (label, f"{label} float32")]
    assert len(found) == 1
    for pair in found[0].pairs(getattr(kernels, found[0].kernel), GRAPH, **widths):
        assert reference.difference(*pair) <= 1


def test_every_kernel_has_a_case():
    """A new public name must get a case here, or be named as one that computes nothing by itself."""
    settings = {"Tuning", "BlockedCsr", "block_rows", "compilation", "get_num_threads", "set_num_threads"}
    settings |= {"empty_rows", "return_large_blocks", "give_back_freed_memory"}
    piecewise = {"inner_products", "narrow_products"}  # call inner_product and narrow_product, which have cases
    expected = set(kernels.__all__) - settings - piecewise
    assert expected == set(cases.CASES) == {example.kernel for example in EXAMPLES}


def test_a_kernel_that_returns_zeros_is_named(monkeypatch):
    """As DGL's did on a graph of 3 billion arcs (dmlc/dgl issue 3471)."""

    def zeros(indptr, indices, feats, *_, reduce="sum", **__):
        out = np.zeros((len(indptr) - 1, feats.shape[1]), np.float32)
        return (out, None) if reduce in ("max", "min") else out

    right = cases.self_check(("float32",))
    assert all(ok and error < 1e-5 for _, ok, error in right), max(right, key=lambda row: row[2])
    monkeypatch.setattr(kernels, "spmm", zeros)
    found = {name: ok for name, ok, _ in cases.self_check(("float32",))}
    assert not found["spmm sum float32"] and found["sddmm dot float32"]
