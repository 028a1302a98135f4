"""What every kernel is compared on: one case per kernel, and examples of calls.

    CASES[name](function, given, graph) -> [(got, expected), …]

`given` are the arguments of an example, by name: the case takes their dtypes, widths and switches, and has rows and
arcs of its own over `graph`. reference.py and reference_fused.py give the expected results. `distgnn check` runs all
examples on the user's machine: DGL's aggregation once returned all zeros on papers100M (dmlc/dgl issue 3471).
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from distgnn import kernels
from distgnn.config.wires import WIRES
from distgnn.kernels.check import cases_graph, cases_rows
from distgnn.kernels.check.inputs import Graph, Pairs, large_graph
from distgnn.kernels.check.reference import difference, relative_error, to_bfloat16
from distgnn.kernels.runtime.formats import BlockedCsr

# The case of kernel `spmm` is the function `spmm_case` of one of the two files.
CASES: dict[str, Callable[[Callable, dict, Graph], Pairs]] = {
    name.removesuffix("_case"): case
    for cases in (cases_graph, cases_rows)
    for name, case in vars(cases).items()
    if name.endswith("_case")
}


class Example(NamedTuple):
    """A call of one kernel: of its arguments only dtypes, widths and switches count."""

    label: str
    kernel: str
    given: dict[str, Any]


INDPTR, INDICES = np.arange(5), np.arange(4, dtype=np.int32)
CSR: dict[str, Any] = {"indptr": INDPTR, "indices": INDICES}
PLACES = np.arange(4)
BLOCKED = BlockedCsr(INDPTR, INDICES, PLACES, 1)
WIDTH, HEADS = 37, 4  # whole vectors and a remainder; 4 heads of 9 columns


def examples(dtypes: tuple[str, ...] = ("float32", "float64")) -> Iterator[Example]:
    """At least one call of every kernel, with rows of each dtype; bfloat16 rows and codecs with float32."""
    yield Example("csr_from_edges", "csr_from_edges", {"src": PLACES.astype(np.int32), "dst": PLACES})
    yield Example("transpose_csr", "transpose_csr", CSR)
    yield Example("block_csr", "block_csr", CSR)
    for dtype in dtypes:
        feats, heads = np.ones((4, WIDTH), dtype), np.ones((4, HEADS, 9), dtype)
        yield from _named(dtype, _aggregations(feats, heads), _attentions(heads), _dense(feats))
    if "float32" in dtypes:
        feats, heads = np.ones((4, WIDTH), np.float32), np.ones((4, HEADS, 9), np.float32)
        yield from _named("bfloat16", _narrow(feats, heads))
        for wire in WIRES:
            yield Example(f"encode_rows {wire}", "encode_rows", {"feats": feats, "rows": PLACES, "wire": wire})
            yield Example(f"decode_rows {wire}", "decode_rows", {"out": feats, "wire": wire})


def _named(dtype: str, *groups: Iterator[tuple[str, dict[str, Any]]]) -> Iterator[Example]:
    """The first word of a label is the kernel."""
    for group in groups:
        for label, given in group:
            yield Example(f"{label} {dtype}", label.split()[0], given)


def _aggregations(feats: np.ndarray, heads: np.ndarray) -> Iterator[tuple[str, dict[str, Any]]]:
    arcs = {**CSR, "feats": feats}
    weight, scores = feats[:, 0].copy(), feats[:, :HEADS].copy()
    yield "spmm sum", {**arcs, "edge_weight": weight, "source_scale": weight, "target_scale": weight}
    yield "spmm mean", {**arcs, "reduce": "mean"}
    yield "spmm mean of degrees", {**arcs, "reduce": "mean", "out": feats, "accumulate": True, "degree": PLACES}
    yield "spmm max", {**arcs, "reduce": "max", "edge_weight": weight}
    yield "spmm max by edge id", {**arcs, "reduce": "max", "edge_ids": PLACES, "keep_inf": True}
    yield "spmm min", {**arcs, "reduce": "min", "winners": False}
    yield "spmm_blocked", {"graph": BLOCKED, "feats": feats, "edge_weight": weight}
    piece = {"piece": slice(1, 2), "source_scale": weight, "target_scale": weight, "accumulate": True, "out": feats}
    yield "spmm_blocked piece", {"graph": BLOCKED, "feats": feats, **piece}
    for op in ("dot", "add", "mul"):
        yield f"sddmm {op}", {**CSR, "source_rows": feats, "target_rows": feats, "op": op}
    yield "sddmm of heads", {**CSR, "source_rows": heads, "target_rows": heads, "edge_ids": PLACES}
    yield "edge_softmax", {"indptr": CSR["indptr"], "scores": scores, "edge_ids": PLACES}
    yield "edge_softmax_backward", {"indptr": CSR["indptr"], "out": scores, "grad": scores, "edge_ids": PLACES}


def _attentions(heads: np.ndarray) -> Iterator[tuple[str, dict[str, Any]]]:
    scores, flat = heads[:, :, 0].copy(), heads.reshape(4, -1)
    rows = {**CSR, "feats": heads, "source_scores": scores, "target_scores": scores}
    state = {"maximum": scores, "sums": scores}
    other = {f"other_{name}": value for name, value in {"out": heads, **state}.items()}
    pairs = {**CSR, "others": CSR["indices"], "arcs": PLACES, "sources": flat, "targets": flat, "attn": flat[:1]}
    yield "attention", {**rows, "slope": 0.1}
    yield "attention_partial", rows
    yield "attention_backward", {**rows, "grad": heads, **state, "slope": 0.1}
    yield "attention_backward of a mean", {**rows, "grad": heads[:, :1].copy(), **state}
    yield "merge_attention", {"out": heads, **state, "rows": PLACES, **other}
    yield "finish_attention", {"out": heads, "sums": scores}
    yield "pair_scores", {**pairs, "heads": HEADS}
    yield "pair_scores_backward", {**pairs, "grad": scores, "slope": 0.1}
    yield "head_dots", {"left": flat, "right": flat, "heads": HEADS}
    yield "head_dots for all heads", {"left": flat, "right": flat[:, :9].copy(), "heads": HEADS}
    yield "head_outer", {"feats": flat, "rows": flat[:2], "factors": np.stack([scores, scores])}
    yield "head_scores", {"feats": flat, "rows": flat[:2], "heads": HEADS}
    yield "head_mean", {"feats": flat, "heads": HEADS, "bias": flat[0, :9]}
    yield "relu_backward_dots", {"grad": flat, "out": flat, "bias": flat[0], "heads": HEADS, "p": 0.3}


def _dense(feats: np.ndarray) -> Iterator[tuple[str, dict[str, Any]]]:
    square, mask = np.ones((WIDTH, WIDTH), feats.dtype), {"row_ids": PLACES, "p": 0.3}
    norm = {"norm": (feats[0], feats[0])}
    stats = {"stats": feats[:, :2], **norm}
    yield "product", {"rows": feats, "weight": square, "more": feats, "more_weight": square}
    yield "product added", {"rows": feats, "weight": square, "out": feats, "accumulate": True}
    yield "inner_product", {"rows": feats, "grads": feats}
    yield "narrow_product", {"rows": feats[:, :3].copy(), "grads": feats}
    yield "dropout", {"feats": feats, **mask}
    yield "activate", {"feats": feats, "bias": feats[0], **mask}
    yield "activate norm", {"feats": feats, "bias": feats[0], **norm, **mask}
    yield "activate norm only", {"feats": feats, **norm, "activation": "none"}
    yield "activate_backward", {"grad": feats, "out": feats, **mask}
    yield "cross_entropy", {"logits": feats}
    yield "cross_entropy_backward", {"logits": feats, "factor": 0.1}
    yield "cross_entropy smoothed", {"logits": feats, "smoothing": 0.1}
    yield "cross_entropy_backward smoothed", {"logits": feats, "factor": 0.1, "smoothing": 0.1}
    yield "activate_backward norm", {"grad": feats, "out": None, "feats": feats, **stats, **mask}
    yield (
        "activate_backward norm, no relu",
        {"grad": feats, "out": feats, "feats": feats, **stats, **mask, "activation": "none"},
    )
    yield "pack_rows", {"feats": feats, "rows": PLACES}
    yield "add_rows", {"out": feats, "rows": PLACES, "packed": feats}


def _narrow(feats: np.ndarray, heads: np.ndarray) -> Iterator[tuple[str, dict[str, Any]]]:
    bits, scores = feats.astype(np.uint16), heads[:, :, 0].copy()
    rows = {**CSR, "feats": heads.astype(np.uint16), "source_scores": scores, "target_scores": scores}
    short, flat = rows["feats"], bits[:, :36].copy()
    weighted = {"edge_weight": feats[:, 0].copy(), "edge_ids": PLACES, "source_scale": feats[:, 0].copy()}
    yield "spmm sum", {**CSR, "feats": bits}
    yield "spmm weighted sum", {**CSR, "feats": bits, **weighted}
    yield "spmm max", {**CSR, "feats": bits, "reduce": "max"}
    yield "attention", {**rows, "out": short}
    state = {"maximum": scores, "sums": scores}
    yield "attention_backward", {**rows, "grad": short, **state, "grad_feats": short}
    yield "attention_backward of a mean", {**rows, "grad": short[:, :1].copy(), **state, "grad_feats": short}
    yield "head_dots of one row", {"left": flat, "right": heads.reshape(4, -1)[:1], "heads": HEADS}
    yield "head_dots for all heads", {"left": flat, "right": flat[:, :9].copy(), "heads": HEADS}
    yield "head_scores", {"feats": flat, "rows": heads.reshape(4, -1)[:2], "heads": HEADS}
    yield "relu_backward_dots", {"grad": flat, "out": flat, "bias": feats[0, :36], "heads": HEADS, "p": 0.3}
    yield "head_outer", {"feats": flat, "rows": heads.reshape(4, -1)[:2], "factors": np.stack([scores, scores])}
    yield "head_mean", {"feats": feats[:, :36].copy(), "heads": HEADS, "short": flat}
    square = np.ones((WIDTH, WIDTH), feats.dtype)
    yield "product", {"rows": bits, "weight": square, "more": bits, "more_weight": square}
    yield "product added", {"rows": bits, "weight": square, "out": feats, "accumulate": True}
    yield "inner_product", {"rows": bits, "grads": bits}
    yield "narrow_product", {"rows": feats[:, :3].copy(), "grads": bits}
    yield "activate", {"feats": bits, "norm": (feats[0], feats[0]), "activation": "none"}
    yield "activate to", {"feats": feats, "out": bits}
    yield "pack_rows to", {"feats": feats, "rows": PLACES, "out": bits}
    yield "add_rows of", {"out": feats, "rows": PLACES, "packed": bits}


def self_check(
    dtypes: tuple[str, ...] = ("float32", "float64"), advance: Callable[[str, int, int], None] = lambda *_: None
) -> list[tuple[str, bool, float]]:
    """Run every kernel at least once and compare.

    Args: advance: called before the first and after each, with a title, how many are done, and of how many.
    Returns: list of (kernel, ok, max_error); the error is relative to the largest expected value.
    """
    results: list[tuple[str, bool, float]] = []
    every = list(examples(dtypes))
    for label, name, given in every:
        advance("kernels", len(results), len(every))
        pairs = list(CASES[name](getattr(kernels, name), given, large_graph()))
        ok = all(difference(*pair) <= 1 for pair in pairs)
        results.append((label, ok, max(relative_error(got, _as_stored(got, expected)) for got, expected in pairs)))
    advance("kernels", len(every), len(every))
    return results


def _as_stored(got: Any, expected: Any) -> Any:
    """`expected` in the dtype of `got`: the rounding of a bfloat16 result is no error of the kernel."""
    short, wide = np.asarray(got).dtype == np.uint16, np.asarray(expected).dtype != np.uint16
    return to_bfloat16(expected) if short and wide else expected
