"""The cases of kernels that go over arcs: aggregation, scores, attention, structure. See cases.py."""

from collections.abc import Callable
from typing import Any

import numpy as np

from distgnn.kernels.check import reference, reference_fused
from distgnn.kernels.check.inputs import Graph, Pairs, Rows, permuted
from distgnn.kernels.runtime.formats import BlockedCsr

BLOCK = 4  # sources of a block


def spmm_case(
    function: Callable, graph: Graph, rows: Rows, *, weighted=False, scales="", by_id=False, degrees=False,
    winners=True, **options: Any,
) -> Pairs:  # fmt: skip
    feats, adds = rows(graph.num_sources, rows.width), options.get("accumulate", False)
    options |= {
        "edge_weight": rows.wide(graph.num_arcs) if weighted else None,
        "edge_ids": permuted(graph.num_arcs) if by_id else None,
        "source_scale": rows.wide(graph.num_sources, seed=2) if "source" in scales else None,
        "target_scale": rows.wide(graph.num_targets) if "target" in scales else None,
        "degree": np.arange(graph.num_targets) if degrees else None,
    }
    before = rows.wide(graph.num_targets, rows.width, seed=1) if adds else None
    expected = reference.spmm(*graph.csr, feats, out=before, **options)
    got = function(*graph.csr, feats, out=None if before is None else before.copy(), winners=winners, **options)
    if options.get("reduce") not in ("max", "min"):
        return [(got, expected)]
    return list(zip(got, expected, strict=True))[: 1 + winners]


def spmm_blocked_case(function: Callable, graph: Graph, rows: Rows, *, is_piece=False) -> Pairs:
    """All rows with weights, or a piece of them with scales, which is added to what is there."""
    feats, last = rows(graph.num_sources, rows.width), graph.num_targets - 1
    piece = slice(1, last) if is_piece and last > 1 else slice(0, last + 1)
    count, weight, out, scales = piece.stop - piece.start, None, None, {}
    if is_piece:
        scales = {"source_scale": rows.wide(graph.num_sources, seed=2), "target_scale": rows.wide(count)}
        out = rows.wide(count, rows.width, seed=1)
    else:
        weight = rows.wide(graph.num_arcs)
    before, options = None if out is None else out.copy(), {**scales, "accumulate": is_piece}
    indptr = graph.indptr[piece.start : piece.stop + 1]
    expected = reference.spmm(indptr, graph.indices, feats, "sum", weight, before, **options)
    blocked = BlockedCsr(*reference.block_csr(*graph.csr, graph.num_sources, BLOCK))
    return [(function(blocked, feats, weight, out, **options, piece=piece), expected)]


def sddmm_case(function: Callable, graph: Graph, rows: Rows, *, heads=False, **options: Any) -> Pairs:
    tail = (rows.heads, rows.each) if heads else (rows.width,)
    ends = rows(graph.num_sources, *tail), rows(graph.num_targets, *tail)
    options |= {"edge_ids": permuted(graph.num_arcs) if heads else None}
    return [(function(*graph.csr, *ends, **options), reference.sddmm(*graph.csr, *ends, **options))]


def edge_softmax_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    scores, ids = rows(graph.num_arcs, rows.heads), permuted(graph.num_arcs)
    return [(function(graph.indptr, scores, edge_ids=ids), reference.edge_softmax(graph.indptr, scores, edge_ids=ids))]


def edge_softmax_backward_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    both, ids = (rows(graph.num_arcs, rows.heads), rows(graph.num_arcs, rows.heads, seed=1)), permuted(graph.num_arcs)
    expected = reference.edge_softmax_backward(graph.indptr, *both, edge_ids=ids)
    return [(function(graph.indptr, *both, edge_ids=ids), expected)]


def _heads(graph: Graph, rows: Rows) -> tuple:
    scores = rows.wide(graph.num_sources, rows.heads, seed=1), rows.wide(graph.num_targets, rows.heads, seed=2)
    return rows(graph.num_sources, rows.heads, rows.each), *scores


def attention_case(function: Callable, graph: Graph, rows: Rows, **options: Any) -> Pairs:
    arguments = *graph.csr, *_heads(graph, rows)
    expected = reference_fused.attention(*arguments, **options)
    out = {"out": rows(graph.num_targets, rows.heads, rows.each)} if rows.is_narrow else {}
    return zip(function(*arguments, **options, **out), expected, strict=True)


def attention_partial_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    # The reference divides; the partial result is what was divided.
    (out, finished), top, sums = attention_case(function, graph, rows)
    return [(out, finished * sums[1][..., None]), top, sums]


def attention_backward_case(function: Callable, graph: Graph, rows: Rows, *, of_mean=False, **options: Any) -> Pairs:
    arguments = _heads(graph, rows)
    out, top, sums = reference_fused.attention(*graph.csr, *arguments, **options)
    grad = rows(graph.num_targets, 1 if of_mean else rows.heads, rows.each, seed=3)
    wide, scores = reference.widened(grad), arguments[1]
    state = [a.astype(scores.dtype) for a in (top, sums, (wide * out).sum(2))]
    widened = reference.widened(arguments[0]), *arguments[1:], wide
    expected = reference_fused.attention_backward(*graph.csr, *widened, *state, **options)
    backward = reference.transpose_csr(*graph.csr, graph.num_sources)[:2]
    place = {"grad_feats": rows(graph.num_sources, rows.heads, rows.each)} if rows.is_narrow else {}
    return zip(function(*backward, *arguments, grad, *state, **options, **place), expected, strict=True)


def merge_attention_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    num, count = graph.num_targets, graph.num_targets // 2
    tails = (rows.heads, rows.each), (rows.heads,), (rows.heads,)
    mine, other = ([rows(size, *tail, seed=seed) for tail in tails] for size, seed in ((num, 1), (count, 2)))
    arguments = *mine, permuted(num)[:count], *other
    expected = reference_fused.merge_attention(*arguments)
    return zip(function(*arguments), expected, strict=True)


def finish_attention_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    out, sums = rows(graph.num_targets, rows.heads, rows.each), abs(rows(graph.num_targets, rows.heads, seed=1))
    sums[1:2] = 0
    divided = np.divide(out, sums[..., None], out=np.zeros_like(out), where=sums[..., None] > 0)
    return [(function(out, sums), divided)]


def _pairs(graph: Graph, rows: Rows) -> tuple:
    ends = rows(graph.num_sources, rows.full), rows(graph.num_targets, rows.full, seed=1)
    return *graph.csr, permuted(graph.num_arcs), *ends, rows(1, rows.full, seed=2)


def pair_scores_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    arguments = *_pairs(graph, rows), rows.heads
    return [(function(*arguments), reference_fused.pair_scores(*arguments))]


def pair_scores_backward_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    arguments, slope = (*_pairs(graph, rows), rows(graph.num_arcs, rows.heads, seed=3)), {"slope": 0.1}
    return zip(function(*arguments, **slope), reference_fused.pair_scores_backward(*arguments, **slope), strict=True)


def csr_from_edges_case(function: Callable, graph: Graph, _rows: Rows) -> Pairs:
    keys = np.repeat(np.arange(graph.num_targets), np.diff(graph.indptr))[::-1]
    arguments = graph.indices, keys, graph.num_sources
    return zip(function(*arguments), reference.csr_from_edges(*arguments), strict=True)


def transpose_csr_case(function: Callable, graph: Graph, _rows: Rows) -> Pairs:
    arguments = *graph.csr, graph.num_sources
    return zip(function(*arguments), reference.transpose_csr(*arguments), strict=True)


def block_csr_case(function: Callable, graph: Graph, _rows: Rows) -> Pairs:
    arguments = *graph.csr, graph.num_sources, BLOCK
    return zip(function(*arguments), reference.block_csr(*arguments), strict=True)
