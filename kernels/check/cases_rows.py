"""The cases of kernels that go over rows: dense work, dropout, gathering, codecs. See cases.py."""

from collections.abc import Callable

import numpy as np

from distgnn.config.wires import WIRES, row_bytes
from distgnn.kernels.check import reference, reference_fused
from distgnn.kernels.check.inputs import Graph, Pairs, Rows, distinct_ids, permuted

DRAW = {"seed": 11, "step": 11, "site": 11}
P = 0.3


def head_dots_case(function: Callable, graph: Graph, rows: Rows, *, for_all_heads=False) -> Pairs:
    left = rows(graph.num_targets, rows.full)
    right = rows(graph.num_targets, rows.each if for_all_heads else rows.full, seed=1)
    return [(function(left, right, rows.heads), reference_fused.head_dots(left, right, rows.heads))]


def head_scores_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    feats, some = rows(graph.num_targets, rows.full), rows.wide(2, rows.full, seed=1)
    expected = np.stack([reference_fused.head_dots(feats, some[s : s + 1], rows.heads) for s in range(2)])
    return [(function(feats, some, rows.heads), expected)]


def head_mean_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    """With a bias; of bfloat16 without, and the rows in it beside the mean."""
    feats = rows.wide(graph.num_targets, rows.full)
    if not rows.is_narrow:
        bias = rows(rows.each, seed=1)
        return [(function(feats, rows.heads, bias), reference_fused.head_mean(feats, rows.heads, bias))]
    short = np.zeros(feats.shape, np.uint16)
    mean = function(feats, rows.heads, short=short), reference_fused.head_mean(feats, rows.heads, None)
    return [mean, (short, reference.to_bfloat16(feats))]


def relu_backward_dots_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    num = graph.num_targets
    arguments = rows(num, rows.full), rows(num, rows.full, seed=1), rows.wide(rows.full, seed=2), rows.heads
    return zip(function(*arguments, p=P), reference_fused.relu_backward_dots(*arguments, P), strict=True)


def head_outer_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    num = graph.num_targets
    factors = np.stack([rows.wide(num, rows.heads, seed=3 + s) for s in range(2)])
    arguments = rows(num, rows.full), rows.wide(2, rows.full, seed=2), factors
    after = reference_fused.head_outer(*arguments)
    return [(function(*arguments), after)]


def _cross_entropy(graph: Graph, rows: Rows, smoothing: float) -> tuple:
    """(logits, labels, chosen rows), and what is expected."""
    num = graph.num_targets
    given = rows(num, rows.width), np.arange(num) % rows.width, np.arange(num) % 3 > 0
    return given, reference_fused.cross_entropy(*given, smoothing)


def cross_entropy_case(function: Callable, graph: Graph, rows: Rows, *, smoothing=0.0) -> Pairs:
    given, (loss, state, _) = _cross_entropy(graph, rows, smoothing)
    got, got_state = function(*given, smoothing)
    return [(np.array([got], given[0].dtype), np.array([loss])), (got_state[given[2]], state[given[2]])]


def cross_entropy_backward_case(function: Callable, graph: Graph, rows: Rows, *, smoothing=0.0) -> Pairs:
    given, (_, state, grad) = _cross_entropy(graph, rows, smoothing)
    return [(function(*given, state.astype(given[0].dtype), 0.1, smoothing=smoothing), grad * 0.1)]


def dropout_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    num = _num_masked(graph, rows)
    feats, options = rows(num, rows.width), {"p": P, "row_ids": distinct_ids(num), **DRAW}
    return [(function(feats, **options), reference.dropout(feats, **options))]


def _num_masked(graph: Graph, rows: Rows) -> int:
    """Enough rows that a mask keeps something of them, and no more: references draw number by number."""
    return max(graph.num_sources // 3, 64 // rows.width)


def _activation(num: int, rows: Rows, p: float, norm: bool, bias: bool) -> tuple:
    """(bias or zeros, parameters of a norm or None, arguments of a dropout)."""
    parameters = (rows.wide(rows.width, seed=4), rows.wide(rows.width, seed=5)) if norm else None
    return (
        rows.wide(rows.width) if bias else np.zeros(rows.width),
        parameters,
        {"p": p, "row_ids": distinct_ids(num), **DRAW},
    )


def activate_case(
    function: Callable, graph: Graph, rows: Rows, *, p=0.0, norm=False, bias=False, activation="relu", to=None
) -> Pairs:
    num = _num_masked(graph, rows)
    feats = rows.wide(num, rows.width) if to else rows(num, rows.width)
    offset, parameters, mask = _activation(num, rows, p, norm, bias)
    out = np.empty(feats.shape, to) if to else None
    got = function(feats, offset, parameters, activation=activation, **mask, out=out)
    expected = reference_fused.activate(feats, offset, parameters, activation, mask)
    return list(zip(got, expected, strict=True))[: 2 if norm else 1]


def activate_backward_case(function: Callable, graph: Graph, rows: Rows, *, norm=False, activation="relu") -> Pairs:
    num = _num_masked(graph, rows)
    grad, feats = rows(num, rows.width), rows(num, rows.width, seed=9)
    offset, parameters, mask = _activation(num, rows, P, norm, False)
    out, stats = reference_fused.activate(feats, offset, parameters, activation, mask)
    out, stats = out.astype(grad.dtype), None if stats is None else stats.astype(grad.dtype)
    whole = None if norm and activation == "relu" else out
    got = function(grad, whole, feats, offset, parameters, stats, activation=activation, **mask)
    expected = reference_fused.activate_backward(grad, out, feats, offset, parameters, stats, activation, mask)
    return list(zip(got, expected, strict=True))[: 4 if norm else 2]


def product_case(function: Callable, graph: Graph, rows: Rows, *, accumulate=False) -> Pairs:
    """Rows in sixes that are summed together, and some one by one; the sum of two products, or one that is added."""
    num, count = graph.num_sources, 1 if accumulate else 2
    pairs = [(rows(num, rows.width, seed=n), rows.wide(rows.width, rows.width, seed=2 + n)) for n in range(count)]
    expected = sum(reference.widened(each).astype(np.float64) @ weight for each, weight in pairs)
    out = rows.wide(num, rows.width, seed=5) if accumulate else None
    expected = expected + out if accumulate else expected
    return [(function(*(array for pair in pairs for array in pair), out=out, accumulate=accumulate), expected)]


def inner_product_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    both = rows(graph.num_sources, rows.width), rows(graph.num_sources, rows.width, seed=1)
    left, right = (reference.widened(each).astype(np.float64) for each in both)
    return [(function(*both), left.T @ right)]


def narrow_product_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    few, grads = rows.wide(graph.num_sources, 3), rows(graph.num_sources, rows.width, seed=1)
    return [(function(few, grads), few.T.astype(np.float64) @ reference.widened(grads))]


def pack_rows_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    feats, half = rows.wide(graph.num_sources, rows.width), _half(graph)
    out = rows(len(half), rows.width) if rows.is_narrow else None
    return [(function(feats, half, out), feats[half])]


def add_rows_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    out, half = rows.wide(graph.num_sources, rows.width), _half(graph)
    packed = rows(len(half), rows.width)
    expected = reference.add_rows(out, half, reference.widened(packed))
    return [(function(out, half, packed), expected)]


def _half(graph: Graph) -> np.ndarray:
    """Half of the sources, each once."""
    return permuted(graph.num_sources)[: graph.num_sources // 2 + 1]


def encode_rows_case(function: Callable, graph: Graph, rows: Rows, *, wire: str) -> Pairs:
    num = graph.num_sources
    feats, some, ids = rows(num, rows.width), permuted(num)[: -(-num // 3)], distinct_ids(num)
    packed = function(feats, some, wire, row_ids=ids, **DRAW)
    expected = reference_fused.encode_decode(feats, some, wire, ids, DRAW)
    return [(_decoded(packed, wire, rows.width), np.asarray(expected, np.float32))]


def decode_rows_case(function: Callable, graph: Graph, rows: Rows, *, wire: str) -> Pairs:
    num = graph.num_sources
    packed = np.random.default_rng(5).integers(0, 256, (num, row_bytes(rows.width, wire)), np.uint8)
    if WIRES[wire].levels:
        # Any bytes are codes; the four of the scale must be a sensible float.
        packed[:, -4:] = np.linspace(0.5, 2, num, dtype=np.float32).view(np.uint8).reshape(-1, 4)
    else:
        packed = Rows(wire)(num, rows.width).view(np.uint8).reshape(packed.shape)
    return [(function(packed, wire, rows(num, rows.width)), _decoded(packed, wire, rows.width))]


def _decoded(packed, wire, width):
    """Rows from their bytes, in numpy."""
    if not WIRES[wire].levels:
        return reference.widened(packed.view(np.float32 if wire == "float32" else np.uint16))
    codes = packed[:, :-4].view(np.int8).astype(np.int32)
    if wire == "int4":
        codes = np.stack([codes << 28 >> 28, codes << 24 >> 28], axis=2).reshape(len(packed), 2 * codes.shape[1])[
            :, :width
        ]
    return codes.astype(np.float32) * np.ascontiguousarray(packed[:, -4:]).view(np.float32)
