"""Every kernel against its reference on a small awkward graph: `distgnn check` and `warm` call it."""

import numpy as np

from distgnn.kernels.attention.attention import (
    attention,
    attention_backward,
    attention_partial,
    finish_attention,
    merge_attention,
)
from distgnn.kernels.attention.gatv2_scores import pair_scores, pair_scores_backward
from distgnn.kernels.attention.head_dots import head_dots, head_outer
from distgnn.kernels.attention.sddmm_softmax import edge_softmax, edge_softmax_backward, sddmm
from distgnn.kernels.check import reference, reference_fused
from distgnn.kernels.dense.activation import activate, activate_backward
from distgnn.kernels.dense.dropout import dropout
from distgnn.kernels.dense.matmul import inner_product, product
from distgnn.kernels.graph.aggregate import spmm
from distgnn.kernels.graph.blocks import block_csr, spmm_blocked
from distgnn.kernels.graph.csr import csr_from_edges, transpose_csr
from distgnn.kernels.runtime.checked import unchecked
from distgnn.kernels.wire.codecs import WIRES, decode_rows, encode_rows
from distgnn.kernels.wire.gather import add_rows, pack_rows

DRAW = {"seed": 1, "step": 2, "site": 3}
TOLERANCE = {"float32": 1e-5, "float64": 1e-13}  # relative to the largest value; sums of at most 60 terms


def self_check(dtypes=("float32", "float64")):
    """Run every kernel once and compare.

    Returns: list of (kernel, ok, max_error); the error is relative to the largest expected value.
    """
    with unchecked():
        results = [_compare("csr_from_edges", lambda m: m.csr_from_edges(*_edges(), 40), 0)]
        indptr, indices, _ = reference.csr_from_edges(*_edges(), 40)
        results.append(_compare("transpose_csr", lambda m: m.transpose_csr(indptr, indices, 41), 0))
        for dtype in dtypes:
            for name, call in _calls(np.dtype(dtype), indptr, indices):
                results.append(_compare(f"{name} {dtype}", call, TOLERANCE[dtype]))
    return results


def warm(dtypes=("float32",), widths=()):
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
            feats = np.ones((1, width), dtype)
            spmm(indptr, indices, feats)
            add_rows(feats, rows, pack_rows(feats, rows))
            dropout(feats, rows, 0.5, **DRAW)


class _Kernels:
    """Every kernel under the name and arguments of its reference; those that write in place get copies."""

    csr_from_edges = staticmethod(csr_from_edges)
    transpose_csr = staticmethod(transpose_csr)
    spmm = staticmethod(spmm)
    sddmm = staticmethod(sddmm)
    edge_softmax = staticmethod(edge_softmax)
    edge_softmax_backward = staticmethod(edge_softmax_backward)
    pack_rows = staticmethod(pack_rows)
    dropout = staticmethod(dropout)
    attention = staticmethod(attention)
    pair_scores = staticmethod(pair_scores)
    pair_scores_backward = staticmethod(pair_scores_backward)
    head_dots = staticmethod(head_dots)
    product = staticmethod(product)
    inner_product = staticmethod(inner_product)

    def spmm_blocked(self, indptr, indices, feats, weight):
        return spmm_blocked(block_csr(indptr, indices, len(feats), 7), feats, weight)

    def partial_attention(self, *arguments):
        out, maximum, sums = attention_partial(*arguments)
        return finish_attention(out, sums), maximum, sums

    def merge_attention(self, out, maximum, sums, *others):
        return merge_attention(out.copy(), maximum.copy(), sums.copy(), *others)

    def head_outer(self, feats, *others):
        after = feats.copy()
        return head_outer(after, *others), after

    def add_rows(self, out, rows, packed):
        return add_rows(out.copy(), rows, packed)

    def activate(self, feats, bias, norm, activation, p, row_ids, draw):
        return activate(feats, bias, norm, activation=activation, p=p, row_ids=row_ids, **draw)

    def activate_backward(self, grad, out, feats, bias, norm, stats, activation, p, row_ids, draw):
        draw = {**draw, "activation": activation, "p": p, "row_ids": row_ids}
        return activate_backward(grad, out, feats, bias, norm, stats, **draw)

    def attention_backward(self, indptr, indices, feats, source, target, grad, top, sums, dots):
        backward = transpose_csr(indptr, indices, len(feats))[:2]
        return attention_backward(*backward, feats, source, target, grad, top, sums, dots)

    def encode_decode(self, feats, rows, wire, row_ids, draw):
        packed = encode_rows(feats, rows, wire, row_ids=row_ids, **draw)
        return decode_rows(packed, wire, np.zeros((len(rows), feats.shape[1]), np.float32))


class _References:
    """The same names in numpy."""

    def spmm_blocked(self, indptr, indices, feats, weight):
        return reference.spmm(indptr, indices, feats, "sum", weight)

    def partial_attention(self, *arguments):
        return reference_fused.attention(*arguments)

    def __getattr__(self, name):
        return getattr(reference, name, None) or getattr(reference_fused, name)


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
    yield "sddmm add", lambda m: m.sddmm(indptr, indices, feats, targets, "add")
    yield "sddmm mul", lambda m: m.sddmm(indptr, indices, feats, targets, "mul")
    yield "pack_rows", lambda m: m.pack_rows(feats, rows)
    yield "add_rows", lambda m: m.add_rows(feats, rows, targets[:20])
    yield "dropout", lambda m: m.dropout(feats, ids, 0.3, **DRAW)
    scores, grad = weight[:296].reshape(-1, 4), weight[4:].reshape(-1, 4)
    yield "edge_softmax", lambda m: m.edge_softmax(np.minimum(indptr, len(scores)), scores)
    yield "edge_softmax_backward", lambda m: m.edge_softmax_backward(np.minimum(indptr, len(scores)), scores, grad)
    yield "spmm_blocked", lambda m: m.spmm_blocked(indptr, indices, feats, weight)
    yield from _fused_calls(feats, targets, indptr, indices, ids)
    yield from _dense_calls(feats, targets, indptr, indices)
    if dtype == np.float32:
        bits = reference.to_bfloat16(feats)
        yield "spmm sum bfloat16", lambda m: m.spmm(indptr, indices, bits)
        yield "spmm max bfloat16", lambda m: m.spmm(indptr, indices, bits, "max")
        for wire in WIRES:
            yield f"codec {wire}", lambda m, wire=wire: m.encode_decode(feats, rows, wire, ids, DRAW)


def _fused_calls(feats, targets, indptr, indices, ids):
    """Activation with and without norm, attention and its gradients, on 41 sources, 40 targets, 37 columns."""
    bias, gamma, beta = targets[:3]
    for norm, name in ((None, "activate"), ((gamma, beta), "activate norm")):
        options = "relu", 0.3, ids, DRAW
        out, stats = reference_fused.activate(feats, bias, norm, *options)
        out, stats = out.astype(feats.dtype), None if norm is None else stats.astype(feats.dtype)
        yield name, lambda m, norm=norm, options=options: m.activate(feats, bias, norm, *options)
        yield (
            f"{name} backward",
            lambda m, norm=norm, options=options, out=out, stats=stats: m.activate_backward(
                feats[::-1].copy(), out, feats, bias, norm, stats, *options
            ),
        )
    rows, grad = feats[:, :36].reshape(41, 4, 9), targets[:, :36].reshape(40, 4, 9)
    scores = feats[:, 4:8].copy(), targets[:, 4:8].copy()
    yield "attention", lambda m: m.attention(indptr, indices, rows, *scores)
    yield "attention_partial", lambda m: m.partial_attention(indptr, indices, rows, *scores)
    out, top, sums = (a.astype(feats.dtype) for a in reference_fused.attention(indptr, indices, rows, *scores))
    state = top, sums, (grad * out).sum(axis=2)
    other = np.arange(39, 20, -1), grad[:19], scores[1][:19], sums[:19] + 1
    yield "merge_attention", lambda m: m.merge_attention(out, top, sums, *other)
    yield "attention backward", lambda m: m.attention_backward(indptr, indices, rows, *scores, grad, *state)


def _dense_calls(feats, targets, indptr, indices):
    """Products, rows with one number per head, and scores of pairs: 4 heads of 9 columns, 37 columns."""
    weight, factors = feats[:37], feats[:2, :4] * np.ones((40, 1, 1), feats.dtype)
    yield "product", lambda m: m.product(targets, weight, feats[:40], weight[::-1].copy())
    yield "inner_product", lambda m: m.inner_product(targets, feats[:40])
    left, right = feats[:40, :36].copy(), targets[:, :36].copy()
    yield "head_dots", lambda m: m.head_dots(left, right, 4)
    yield "head_outer", lambda m: m.head_outer(left, right[:2], factors.transpose(1, 0, 2), right)
    pairs = indptr, indices, np.arange(len(indices))[::-1].copy(), feats[:, :36].copy(), right, left[:1]
    grad = np.resize(feats, (len(indices), 4))
    yield "pair_scores", lambda m: m.pair_scores(*pairs, 4)
    yield "pair_scores backward", lambda m: m.pair_scores_backward(*pairs, grad)


def _compare(name, call, tolerance):
    got, expected = call(_Kernels()), call(_References())
    if not isinstance(got, tuple):
        got, expected = (got,), (expected,)
    error = 0.0
    for a, b in zip(got, expected, strict=True):
        if b is None:
            continue
        a, b = (np.nan_to_num(np.asarray(x, np.float64), neginf=-1e3) for x in (a, b))
        scale = max(float(np.abs(b).max(initial=0.0)), 1e-30)
        error = max(error, float(np.abs(a - b).max(initial=0.0)) / scale) if a.shape == b.shape else np.inf
    return name, bool(error <= tolerance), error
