"""A kernel that is wrong on this machine never hands out a result: every kernel is checked when first used."""

import numpy as np
import pytest

from distgnn import kernels
from distgnn.kernels.check import cases, checked, reference
from distgnn.kernels.check.inputs import LARGE, SMALL
from distgnn.kernels.graph import aggregate

from ..graphs import awkward, rows_of

EXAMPLES = list(cases.examples())


@pytest.mark.parametrize("name", cases.CASES)
def test_each_check_passes_and_sees_a_kernel_that_returns_zeros(name):
    function = getattr(kernels, name).__wrapped__

    def zeros(*args, **options):
        results = function(*args, **options)
        several = isinstance(results, tuple)
        results = [None if r is None else np.zeros_like(r) for r in (results if several else (results,))]
        return tuple(results) if several else results[0]

    zeros.__name__ = name
    for label, _, given in (example for example in EXAMPLES if example.kernel == name):
        for graph in (SMALL, LARGE):
            assert all(reference.difference(*pair) <= 1 for pair in cases.CASES[name](function, given, graph)), label
            assert any(reference.difference(*pair) > 1 for pair in cases.CASES[name](zeros, given, graph)), label


def test_every_kernel_is_checked():
    """A new public name must get a case here, or be named as one that computes nothing by itself."""
    settings = {"Tuning", "BlockedCsr", "block_rows", "compilation", "tune_rows", "get_num_threads", "set_num_threads"}
    settings |= {"empty_rows", "return_large_blocks", "give_back_freed_memory", "touch_pages"}
    checks = {"reference", "reference_fused", "self_check", "warm"}
    piecewise = {"inner_products", "narrow_products"}  # call inner_product and narrow_product, which are checked
    expected = set(kernels.__all__) - settings - checks - piecewise
    assert {name for name in expected if hasattr(getattr(kernels, name), "__wrapped__")} == expected
    assert expected == set(cases.CASES) == set(checked.KERNELS) == {example.kernel for example in EXAMPLES}


def test_each_number_of_heads_is_checked(monkeypatch):
    """It changes the kernel, not the shapes."""
    seen, rows = [], np.ones((3, 26), np.float32)
    monkeypatch.setitem(
        cases.CASES, "head_dots", lambda function, given, graph: seen.append(given["heads"]) or [(0, 0)]
    )
    for heads in (1, 2, 13, 2):
        kernels.head_dots(rows, rows, heads)
    kernels.head_dots(rows, rows, heads=26)
    assert seen == [1, 2, 13, 26]


def test_a_wrong_kernel_raises_instead_of_returning(monkeypatch):
    indptr, indices, sources = awkward("random")
    feats = rows_of(sources, 59)

    def nothing(start, stop, column, ahead, indptr, indices, feats, *rest):
        rest[4][start:stop] = 0

    monkeypatch.setattr(aggregate, "_sum_kernel", lambda *form: nothing)
    with pytest.raises(RuntimeError, match=r"kernel spmm differs .*feats=float32 \[\d+, 59\]"):
        kernels.spmm(indptr, indices, feats)
    with pytest.raises(RuntimeError, match="kernel spmm"):  # and again: it was not remembered as good
        kernels.spmm(indptr, indices, feats)
    monkeypatch.undo()
    kernels.spmm(indptr, indices, feats)


def test_a_check_that_is_wrong_ends_no_run(monkeypatch, capsys):
    """The kernel took the real rows; what it does not take are the check's own. It is said once."""
    rows = np.ones((3, 34), np.float32)
    monkeypatch.setitem(cases.CASES, "head_dots", lambda function, given, graph: [(function(rows, rows[:, :3], 2), 0)])
    for _ in range(2):
        assert kernels.head_dots(rows, rows, 2).tolist() == [[17, 17]] * 3
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "kernel head_dots is used unchecked for left=float32 [3, 34]" in said, said


def test_it_can_be_turned_off(monkeypatch):
    indptr, indices, sources = awkward("random")
    monkeypatch.setattr(aggregate, "run", lambda *_: None)
    monkeypatch.setenv("DISTGNN_KERNEL_CHECKS", "0")
    kernels.spmm(indptr, indices, rows_of(sources, 58))
