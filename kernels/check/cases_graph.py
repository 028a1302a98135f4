"""The cases of kernels that go over arcs: aggregation, scores, attention, structure. See cases.py."""

from collections.abc import Callable

import numpy as np

from distgnn.kernels.check import reference, reference_fused
from distgnn.kernels.check.inputs import Graph, Pairs, edge_ids_of, like, permuted, pick

BLOCK = 4  # sources of a block


def spmm_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    feats, out = like(given["feats"], graph.num_sources), like(given.get("out"), graph.num_targets, 1)
    options = {
        **pick(given, "reduce", "accumulate", "keep_inf"),
        "edge_weight": like(given.get("edge_weight"), graph.num_arcs),
        "edge_ids": edge_ids_of(given, graph),
        "source_scale": like(given.get("source_scale"), graph.num_sources, 2),
        "target_scale": like(given.get("target_scale"), graph.num_targets),
        "degree": None if given.get("degree") is None else np.arange(graph.num_targets),
    }
    before = None if out is None else reference.widened(out).copy()
    expected = reference.spmm(*graph.csr, feats, out=before, **options)
    got = function(*graph.csr, feats, out=out, **options, **pick(given, "winners"))
    if options.get("reduce") not in ("max", "min"):
        return [(got, expected)]
    return list(zip(got, expected, strict=True))[: 1 + (got[1] is not None)]


def sddmm_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    rows = like(given["source_rows"], graph.num_sources), like(given["target_rows"], graph.num_targets)
    options = {"op": given.get("op", "dot"), "edge_ids": edge_ids_of(given, graph)}
    expected = reference.sddmm(*graph.csr, *rows, **options)
    return [(function(*graph.csr, *rows, **options), expected)]


def edge_softmax_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    scores, ids = like(given["scores"], graph.num_arcs), edge_ids_of(given, graph)
    return [(function(graph.indptr, scores, edge_ids=ids), reference.edge_softmax(graph.indptr, scores, edge_ids=ids))]


def edge_softmax_backward_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    rows = like(given["out"], graph.num_arcs), like(given["grad"], graph.num_arcs, 1)
    ids = edge_ids_of(given, graph)
    expected = reference.edge_softmax_backward(graph.indptr, *rows, edge_ids=ids)
    return [(function(graph.indptr, *rows, edge_ids=ids), expected)]


def _heads(given, rows, graph):
    return rows, like(given["source_scores"], graph.num_sources, 1), like(given["target_scores"], graph.num_targets, 2)


def attention_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    arguments = *graph.csr, *_heads(given, like(given["feats"], graph.num_sources), graph)
    expected = reference_fused.attention(*arguments, **pick(given, "slope"))
    got = function(*arguments, **pick(given, "slope"), out=like(given.get("out"), graph.num_targets))
    return zip(got, expected, strict=True)


def attention_partial_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    # The reference divides; the partial result is what was divided.
    (out, finished), top, sums = attention_case(function, given, graph)
    return [(out, finished * sums[1][..., None]), top, sums]


def attention_backward_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    arguments = _heads(given, like(given["feats"], graph.num_sources), graph)
    out, top, sums = reference_fused.attention(*graph.csr, *arguments, **pick(given, "slope"))
    grad = like(given["grad"], graph.num_targets, 3)
    state = [a.astype(np.asarray(given["sums"]).dtype) for a in (top, sums, (reference.widened(grad) * out).sum(2))]
    widened = reference.widened(arguments[0]), *arguments[1:], reference.widened(grad)
    expected = reference_fused.attention_backward(*graph.csr, *widened, *state, **pick(given, "slope"))
    backward = reference.transpose_csr(*graph.csr, graph.num_sources)[:2]
    options = {**pick(given, "slope"), "grad_feats": like(given.get("grad_feats"), graph.num_sources)}
    got = function(*backward, *arguments, grad, *state, **options)
    return zip(got, expected, strict=True)


def merge_attention_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    mine = [like(given[name], graph.num_targets, 1) for name in ("out", "maximum", "sums")]
    count = graph.num_targets // 2
    other = [like(given[f"other_{name}"], count, 2) for name in ("out", "maximum", "sums")]
    rows = permuted(graph.num_targets)[:count]
    arguments = (*mine, rows, *other)
    expected = reference_fused.merge_attention(*arguments)
    return zip(function(*arguments), expected, strict=True)


def finish_attention_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    out, sums = like(given["out"], graph.num_targets), abs(like(given["sums"], graph.num_targets, 1))
    sums[1:2] = 0
    divided = np.divide(out, sums[..., None], out=np.zeros_like(out), where=sums[..., None] > 0)
    return [(function(out, sums), divided)]


def pair_scores_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    sources, targets = like(given["sources"], graph.num_sources), like(given["targets"], graph.num_targets, 1)
    arguments = *graph.csr, permuted(graph.num_arcs), sources, targets, like(given["attn"], 1, 2)
    if function.__name__ == "pair_scores":
        expected = reference_fused.pair_scores(*arguments, given["heads"], **pick(given, "slope"))
        return [(function(*arguments, given["heads"], **pick(given, "slope")), expected)]
    grad = like(given["grad"], graph.num_arcs, 3)
    expected = reference_fused.pair_scores_backward(*arguments, grad, **pick(given, "slope"))
    return zip(function(*arguments, grad, **pick(given, "slope")), expected, strict=True)


pair_scores_backward_case = pair_scores_case


def csr_from_edges_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    keys = np.repeat(np.arange(graph.num_targets), np.diff(graph.indptr))[::-1]
    arguments = graph.indices, keys, graph.num_sources
    return zip(function(*arguments), reference.csr_from_edges(*arguments), strict=True)


def transpose_csr_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    arguments = *graph.csr, graph.num_sources
    return zip(function(*arguments), reference.transpose_csr(*arguments), strict=True)


def block_csr_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    arguments = *graph.csr, graph.num_sources, BLOCK
    return zip(function(*arguments), reference.block_csr(*arguments), strict=True)


def spmm_blocked_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    feats, weight = like(given["feats"], graph.num_sources), like(given.get("edge_weight"), graph.num_arcs)
    last = graph.num_targets - 1
    piece = slice(1, last) if given.get("piece") is not None and last > 1 else slice(0, last + 1)
    count = piece.stop - piece.start
    options = {
        **pick(given, "accumulate"),
        "source_scale": like(given.get("source_scale"), graph.num_sources, 2),
        "target_scale": like(given.get("target_scale"), count),
    }
    out = like(given.get("out"), count, 1)
    before = None if out is None else reference.widened(out).copy()
    indptr = graph.indptr[piece.start : piece.stop + 1]
    expected = reference.spmm(indptr, graph.indices, feats, "sum", weight, before, **options)
    blocked = type(given["graph"])(*reference.block_csr(*graph.csr, graph.num_sources, BLOCK))
    return [(function(blocked, feats, weight, out, **options, piece=piece), expected)]
