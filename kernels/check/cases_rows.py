"""The cases of kernels that go over rows: dense work, dropout, gathering, codecs. See cases.py."""

from collections.abc import Callable

import numpy as np

from distgnn.config.wires import WIRES, row_bytes
from distgnn.kernels.check import reference, reference_fused
from distgnn.kernels.check.inputs import Graph, Pairs, distinct_ids, like, permuted

DRAW = {"seed": 11, "step": 11, "site": 11}


def _masked_rows(width, graph):
    """Enough rows that a mask keeps something of them, and no more: references draw number by number."""
    return max(graph.num_sources // 3, 64 // max(1, width))


def head_dots_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    num, heads = graph.num_targets, given["heads"]
    # A row of one head's width stands for all heads and goes with one row of `left`, also where that has one row only.
    one = given["right"].shape == (1, given["left"].shape[1])
    left, right = like(given["left"], num), like(given["right"], 1 if one else num, 1)
    return [(function(left, right, heads), reference_fused.head_dots(left, right, heads))]


def head_scores_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    heads, feats = given["heads"], like(given["feats"], graph.num_targets)
    rows = like(given["rows"], len(given["rows"]), 1)
    expected = np.stack([reference_fused.head_dots(feats, rows[s : s + 1], heads) for s in range(len(rows))])
    return [(function(feats, rows, heads), expected)]


def head_mean_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    heads, feats, short = given["heads"], like(given["feats"], graph.num_targets), given.get("short")
    bias = None if given.get("bias") is None else like(given["bias"], len(given["bias"]), 1)
    if short is not None:
        short = np.zeros(feats.shape, np.uint16)
    pairs = [(function(feats, heads, bias, short=short), reference_fused.head_mean(feats, heads, bias))]
    return pairs if short is None else [*pairs, (short, reference.to_bfloat16(feats))]


def relu_backward_dots_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    num, heads, p = graph.num_targets, given["heads"], given.get("p", 0.0)
    grad, out = like(given["grad"], num), like(given["out"], num, 1)
    bias = None if given.get("bias") is None else like(given["bias"], len(given["bias"]), 2)
    expected = reference_fused.relu_backward_dots(grad, out, bias, heads, p)
    return zip(function(grad, out, bias, heads, p=p), expected, strict=True)


def cross_entropy_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    num, classes = graph.num_targets, given["logits"].shape[1]
    logits, labels = like(given["logits"], num), np.arange(num) % max(1, classes)
    rows = (np.arange(num) % 3 > 0) & (classes > 0)
    smoothing = given.get("smoothing", 0.0)
    loss, state, grad = reference_fused.cross_entropy(logits, labels, rows, smoothing)
    if function.__name__ == "cross_entropy_backward":
        state = state.astype(logits.dtype)
        got = function(logits, labels, rows, state, given["factor"], smoothing=smoothing)
        return [(got, grad * given["factor"])]
    got, got_state = function(logits, labels, rows, smoothing)
    return [(np.array([got], logits.dtype), np.array([loss])), (got_state[rows], state[rows])]


cross_entropy_backward_case = cross_entropy_case


def head_outer_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    num = graph.num_targets
    feats, rows = like(given["feats"], num), like(given["rows"], len(given["rows"]), 2)
    factors = np.stack([like(given["factors"][0], num, 3 + s) for s in range(len(rows))])
    after = reference_fused.head_outer(feats, rows, factors)
    return [(function(feats, rows, factors), after)]


def _mask(given, rows):
    """Arguments of a dropout."""
    return {"p": given.get("p", 0.0), "row_ids": distinct_ids(rows), **DRAW}


def dropout_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    rows = _masked_rows(np.shape(given["feats"])[1], graph)
    feats, options = like(given["feats"], rows), _mask(given, rows)
    return [(function(feats, **options), reference.dropout(reference.widened(feats), **options))]


def _activation_inputs(given, name, graph):
    width = np.shape(given[name])[1]
    rows = like(given[name], _masked_rows(width, graph))
    norm = given.get("norm")
    norm = None if norm is None else tuple(like(np.asarray(a)[None], 1, 4 + n)[0] for n, a in enumerate(norm))
    bias = np.zeros(width) if given.get("bias") is None else like(np.asarray(given["bias"])[None], 1)[0]
    return rows, bias, norm, given.get("activation", "relu")


def activate_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    feats, bias, norm, activation = _activation_inputs(given, "feats", graph)
    mask, out = _mask(given, len(feats)), like(given.get("out"), len(feats))
    got = function(feats, bias, norm, activation=activation, **mask, out=out)
    expected = reference_fused.activate(feats, bias, norm, activation, mask)
    return list(zip(got, expected, strict=True))[: 1 if norm is None else 2]


def activate_backward_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    grad, bias, norm, activation = _activation_inputs(given, "grad", graph)
    feats = like(given["grad"] if given.get("feats") is None else given["feats"], len(grad), 9)
    mask = _mask(given, len(grad))
    out, stats = reference_fused.activate(feats, bias, norm, activation, mask)
    dtype = given["grad" if given["out"] is None else "out"].dtype
    out = reference.to_bfloat16(out) if dtype == np.uint16 else out.astype(dtype)
    stats = None if stats is None else stats.astype(np.asarray(given["stats"]).dtype)
    got = function(grad, None if given["out"] is None else out, feats, bias, norm, stats, activation=activation, **mask)
    before, after, wide = (reference.widened(a) for a in (feats, out, grad))
    expected = reference_fused.activate_backward(wide, after, before, bias, norm, stats, activation, mask)
    return list(zip(got, expected, strict=True))[: 2 if norm is None else 4]


def product_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    """Rows in sixes that are summed together, and some one by one: 9 or 41."""
    num = graph.num_sources
    pairs = [(given["rows"], given["weight"]), (given.get("more"), given.get("more_weight"))]
    pairs = [(like(a, num, n), like(b, len(b), 2 + n)) for n, (a, b) in enumerate(pairs) if a is not None]
    expected = sum(reference.widened(rows).astype(np.float64) @ weight for rows, weight in pairs)
    out, accumulate = like(given.get("out"), num, 5), given.get("accumulate", False)
    expected = expected + out if accumulate else expected
    return [(function(*(array for pair in pairs for array in pair), out=out, accumulate=accumulate), expected)]


def inner_product_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    rows, grads = like(given["rows"], graph.num_sources), like(given["grads"], graph.num_sources, 1)
    return [(function(rows, grads), reference_fused.inner_product(*map(reference.widened, (rows, grads))))]


def narrow_product_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    rows, grads = like(given["rows"], graph.num_sources), like(given["grads"], graph.num_sources, 1)
    return [(function(rows, grads), reference_fused.inner_product(rows, reference.widened(grads)))]


def pack_rows_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    feats, rows = like(given["feats"], graph.num_sources), _half(graph)
    return [(function(feats, rows, like(given.get("out"), len(rows))), reference.widened(feats)[rows])]


def add_rows_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    out, rows = like(given["out"], graph.num_sources), _half(graph)
    packed = like(given["packed"], len(rows))
    expected = reference.add_rows(reference.widened(out), rows, reference.widened(packed))
    return [(function(out, rows, packed), expected)]


def _half(graph):
    """Half of the sources, each once."""
    return permuted(graph.num_sources)[: graph.num_sources // 2 + 1]


def encode_rows_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    num, wire = graph.num_sources, given["wire"]
    feats, rows = like(given["feats"], num), permuted(num)[: -(-num // 3)]
    ids = distinct_ids(num)
    packed = function(feats, rows, wire, row_ids=ids, **DRAW)
    expected = reference_fused.encode_decode(feats, rows, wire, ids, DRAW)
    return [(_decoded(packed, wire, feats.shape[1]), np.asarray(expected, np.float32))]


def decode_rows_case(function: Callable, given: dict, graph: Graph) -> Pairs:
    num, wire = graph.num_sources, given["wire"]
    out = like(given["out"], num)
    packed = np.random.default_rng(5).integers(0, 256, (num, row_bytes(out.shape[1], wire)), np.uint8)
    if WIRES[wire].levels:
        # Any bytes are codes; the four of the scale must be a sensible float.
        packed[:, -4:] = np.linspace(0.5, 2, num, dtype=np.float32).view(np.uint8).reshape(-1, 4)
    else:
        values = like(np.empty((0, out.shape[1]), np.float32 if wire == "float32" else np.uint16), num)
        packed = values.view(np.uint8).reshape(packed.shape)
    return [(function(packed, wire, out), _decoded(packed, wire, out.shape[1]))]


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
