"""A kernel that is wrong on this machine never hands out a result: every kernel is checked when first used."""

import numpy as np
import pytest

from distgnn import kernels
from distgnn.kernels.check import cases, reference
from distgnn.kernels.graph import aggregate

from ..graphs import awkward, rows_of

FEATS, BITS = np.ones((4, 5), np.float32), np.ones((4, 5), np.uint16)
HEADS = {"feats": np.ones((4, 2, 3), np.float32), "source_scores": FEATS[:, :2], "target_scores": FEATS[:, :2]}
NARROW = HEADS["feats"].astype(np.uint16)
STATE = {"maximum": FEATS[:, :2], "sums": FEATS[:, :2]}
CSR = {"indptr": np.arange(5), "indices": np.arange(4)}
PAIRS = {"others": np.arange(4), "arcs": np.arange(4), "sources": FEATS[:, :4], "targets": FEATS[:, :4]}
PAIRS["attn"] = FEATS[:1, :4]
FACTORS = np.ones((2, 4, 2), np.float32)
IDS = {"row_ids": np.arange(4), "p": 0.5}
NORM = {"norm": (FEATS[0], FEATS[0]), "stats": FEATS[:, :2]}
GIVEN = [
    ("spmm", {**CSR, "feats": FEATS}),
    ("spmm", {**CSR, "feats": BITS, "edge_weight": FEATS, "edge_ids": np.arange(4), "source_scale": FEATS[:, 0]}),
    ("spmm", {**CSR, "feats": FEATS, "reduce": "max", "keep_inf": True}),
    ("spmm", {**CSR, "feats": FEATS, "reduce": "min", "winners": False}),
    ("spmm", {**CSR, "feats": FEATS, "reduce": "mean", "out": FEATS, "accumulate": True, "degree": np.arange(4)}),
    ("sddmm", {**CSR, "source_rows": FEATS, "target_rows": FEATS}),
    ("sddmm", {**CSR, "source_rows": HEADS["feats"], "target_rows": HEADS["feats"], "edge_ids": np.arange(4)}),
    ("edge_softmax", {"indptr": CSR["indptr"], "scores": FEATS}),
    ("edge_softmax_backward", {"indptr": CSR["indptr"], "out": FEATS, "grad": FEATS}),
    ("attention", {**CSR, **HEADS}),
    ("attention", {**CSR, **HEADS, "feats": HEADS["feats"].astype(np.uint16), "out": HEADS["feats"].astype(np.uint16)}),
    ("attention_partial", {**CSR, **HEADS}),
    ("attention_backward", {**CSR, **HEADS, "grad": HEADS["feats"], **STATE}),
    (
        "merge_attention",
        {"out": HEADS["feats"], **STATE, "rows": np.arange(2), "other_out": HEADS["feats"]}
        | {f"other_{name}": value for name, value in STATE.items()},
    ),
    ("finish_attention", {"out": HEADS["feats"], "sums": STATE["sums"]}),
    ("product", {"rows": FEATS, "weight": np.ones((5, 5), np.float32), "out": FEATS, "accumulate": True}),
    ("inner_product", {"rows": FEATS, "grads": FEATS}),
    ("head_dots", {"left": BITS[:, :4], "right": FEATS[:1, :4], "heads": 2}),
    (
        "head_outer",
        {"feats": BITS[:, :4], "rows": FEATS[:2, :4], "factors": np.ones((2, 4, 2), np.float32)}
        | {"others": BITS[:, :4]},
    ),
    (
        "attention_backward",
        {
            **CSR,
            **HEADS,
            "grad": HEADS["feats"].astype(np.uint16),
            **STATE,
            "grad_feats": HEADS["feats"].astype(np.uint16),
        },
    ),
    ("pair_scores", {**PAIRS, "heads": 2}),
    ("pair_scores_backward", {**PAIRS, "grad": FEATS[:, :2], "slope": 0.1}),
    ("activate", {"feats": FEATS, "out": BITS}),
    ("dropout", {"feats": FEATS, **IDS}),
    ("activate", {"feats": FEATS, "bias": FEATS[0], **IDS}),
    ("activate", {"feats": BITS, "norm": NORM["norm"], "activation": "none"}),
    ("activate_backward", {"grad": FEATS, "out": FEATS, **IDS}),
    ("activate_backward", {"grad": FEATS, "out": FEATS, "feats": FEATS, **NORM, **IDS, "activation": "none"}),
    ("pack_rows", {"feats": FEATS, "rows": np.arange(3), "out": BITS}),
    ("add_rows", {"out": FEATS, "rows": np.arange(3), "packed": BITS}),
    *(("encode_rows", {"feats": FEATS, "rows": np.arange(3), "wire": wire}) for wire in ("float32", "int8", "int4")),
    *(("decode_rows", {"out": FEATS, "wire": wire}) for wire in ("bfloat16", "int8", "int4")),
    ("csr_from_edges", {"src": np.arange(4, dtype=np.int32), "dst": np.arange(4)}),
    ("transpose_csr", CSR),
]


@pytest.mark.parametrize(("name", "given"), GIVEN, ids=[f"{name}-{i}" for i, (name, _) in enumerate(GIVEN)])
def test_each_check_passes_and_sees_a_kernel_that_returns_zeros(name, given):
    function = getattr(kernels, name).__wrapped__

    def zeros(*args, **options):
        results = function(*args, **options)
        several = isinstance(results, tuple)
        results = [None if r is None else np.zeros_like(r) for r in (results if several else (results,))]
        return tuple(results) if several else results[0]

    zeros.__name__ = name
    assert all(reference.difference(*pair) <= 1 for pair in cases.CASES[name](function, given))
    assert any(reference.difference(*pair) > 1 for pair in cases.CASES[name](zeros, given))


def test_every_kernel_is_checked():
    """A new public name must get a case here, or be named as one that computes nothing by itself."""
    composed = {"spmm_blocked", "block_csr", "tune_rows"}
    settings = {
        "compilation",
        "get_num_threads",
        "set_num_threads",
        "Tuning",
        "BlockedCsr",
        "block_rows",
    }
    settings |= {"empty_rows", "row_bytes", "keep_freed_memory", "give_back_freed_memory"}
    checks = {"reference", "reference_fused", "self_check", "warm"}
    expected = set(kernels.__all__) - composed - settings - checks
    assert {name for name in expected if hasattr(getattr(kernels, name), "__wrapped__")} == expected
    assert expected == set(cases.CASES) == {name for name, _ in GIVEN}


def test_each_number_of_heads_is_checked(monkeypatch):
    """It changes the kernel, not the shapes."""
    seen, rows = [], np.ones((3, 26), np.float32)
    monkeypatch.setitem(cases.CASES, "head_dots", lambda function, given: seen.append(given["heads"]) or [(0, 0)])
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


def test_it_can_be_turned_off(monkeypatch):
    indptr, indices, sources = awkward("random")
    monkeypatch.setattr(aggregate, "run", lambda *_: None)
    monkeypatch.setenv("DISTGNN_KERNEL_CHECKS", "0")
    kernels.spmm(indptr, indices, rows_of(sources, 58))
