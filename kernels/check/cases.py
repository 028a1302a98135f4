"""The small case on which each kernel is compared before its first use: one function per kernel, all in one file.

    case(function, given) -> [(got, expected), …]

`given` are the arguments of the real call, by name: the case has their dtypes, widths and switches, and 6 targets
(one without arcs, one with most of them), 9 sources and 20 arcs of its own. Results are those of `reference`.
"""

import numpy as np

from distgnn.kernels.check import reference, reference_fused
from distgnn.kernels.wire.codecs import LEVELS, row_bytes

TARGETS, SOURCES, ARCS = 6, 9, 20
INDPTR = np.array([0, 11, 11, 12, 15, 19, 20])
INDICES = np.array([8, 0, 3, 3, 1, 7, 5, 2, 6, 4, 0, 8, 1, 2, 3, 8, 0, 6, 5, 7])


def _like(value, rows, seed=0):
    """Random rows with the dtype and width of `value`, None for None."""
    if value is None:
        return None
    value = np.asarray(value)
    random = np.random.default_rng([seed, rows]).standard_normal((rows, *value.shape[1:]))
    if value.dtype == np.uint16:
        return reference.to_bfloat16(random)
    return random.astype(value.dtype if value.dtype.kind == "f" else np.float32)


def _ids(value, rows):
    """Distinct ids in the dtype of `value`; every bit of 64-bit ones is used."""
    ids = np.random.default_rng(7).permutation(rows)
    dtype = np.asarray(value).dtype
    return ids * (2**40 // 8 + 1) if dtype == np.int64 else ids.astype(dtype)


def _places(value, rows):
    return None if value is None else np.random.default_rng(3).permutation(rows).astype(np.asarray(value).dtype)


def _graph(given):
    return INDPTR, INDICES.astype(np.asarray(given["indices"]).dtype)


def _pick(given, *names):
    return {name: given[name] for name in names if name in given}


def _spmm(function, given):
    feats, out = _like(given["feats"], SOURCES), _like(given.get("out"), TARGETS, 1)
    options = {
        **_pick(given, "reduce", "accumulate", "keep_inf"),
        "edge_weight": _like(given.get("edge_weight"), ARCS),
        "edge_ids": _places(given.get("edge_ids"), ARCS),
        "source_scale": _like(given.get("source_scale"), SOURCES, 2),
        "target_scale": _like(given.get("target_scale"), TARGETS),
        "degree": None if given.get("degree") is None else np.arange(TARGETS),
    }
    before = None if out is None else reference.widened(out).copy()
    expected = reference.spmm(*_graph(given), feats, out=before, **options)
    got = function(*_graph(given), feats, out=out, **options, **_pick(given, "winners"))
    if options.get("reduce") not in ("max", "min"):
        return [(got, expected)]
    return list(zip(got, expected, strict=True))[: 1 + (got[1] is not None)]


def _sddmm(function, given):
    rows = _like(given["source_rows"], SOURCES), _like(given["target_rows"], TARGETS)
    options = {"op": given.get("op", "dot"), "edge_ids": _places(given.get("edge_ids"), ARCS)}
    expected = reference.sddmm(*_graph(given), *rows, **options)
    return [(function(*_graph(given), *rows, out=_like(given.get("out"), ARCS), **options), expected)]


def _softmax(function, given):
    scores, ids = _like(given["scores"], ARCS), _places(given.get("edge_ids"), ARCS)
    return [(function(INDPTR, scores, edge_ids=ids), reference.edge_softmax(INDPTR, scores, edge_ids=ids))]


def _softmax_backward(function, given):
    rows = _like(given["out"], ARCS), _like(given["grad"], ARCS, 1)
    ids = _places(given.get("edge_ids"), ARCS)
    expected = reference.edge_softmax_backward(INDPTR, *rows, edge_ids=ids)
    return [(function(INDPTR, *rows, edge_ids=ids), expected)]


def _heads(given, rows):
    return rows, _like(given["source_scores"], SOURCES, 1), _like(given["target_scores"], TARGETS, 2)


def _attention(function, given):
    arguments = *_graph(given), *_heads(given, _like(given["feats"], SOURCES))
    expected = reference_fused.attention(*arguments, **_pick(given, "slope"))
    got = function(*arguments, **_pick(given, "slope"), out=_like(given.get("out"), TARGETS))
    return zip(got, expected, strict=True)


def _attention_partial(function, given):
    (out, finished), top, sums = _attention(function, given)
    return [(out, finished * sums[1][..., None]), top, sums]


def _attention_backward(function, given):
    indices = INDICES.astype(np.asarray(given["indices"]).dtype)
    arguments = _heads(given, _like(given["feats"], SOURCES))
    out, top, sums = reference_fused.attention(INDPTR, indices, *arguments, **_pick(given, "slope"))
    grad = _like(given["grad"], TARGETS, 3)
    state = [a.astype(np.asarray(given["sums"]).dtype) for a in (top, sums, (reference.widened(grad) * out).sum(2))]
    widened = reference.widened(arguments[0]), *arguments[1:], reference.widened(grad)
    expected = reference_fused.attention_backward(INDPTR, indices, *widened, *state, **_pick(given, "slope"))
    backward = reference.transpose_csr(INDPTR, indices, SOURCES)[:2]
    options = {**_pick(given, "slope"), "grad_feats": _like(given.get("grad_feats"), SOURCES)}
    got = function(*backward, *arguments, grad, *state, **options)
    return zip(got, expected, strict=True)


def _merge_attention(function, given):
    mine = [_like(given[name], TARGETS, 1) for name in ("out", "maximum", "sums")]
    other = [_like(given[f"other_{name}"], 3, 2) for name in ("out", "maximum", "sums")]
    rows = _places(given["rows"], TARGETS)[:3]
    expected = reference_fused.merge_attention(*mine, rows, *other)
    return zip(function(*mine, rows, *other), expected, strict=True)


def _finish_attention(function, given):
    out, sums = _like(given["out"], TARGETS), abs(_like(given["sums"], TARGETS, 1))
    sums[1] = 0
    divided = np.divide(out, sums[..., None], out=np.zeros_like(out), where=sums[..., None] > 0)
    return [(function(out, sums), divided)]


def _rows_for(width):
    """Enough rows that a mask keeps something of them: references draw number by number."""
    return max(3, 64 // max(1, width))


def _head_dots(function, given):
    left, heads = _like(given["left"], 5), given["heads"]
    right = _like(given["right"], 1 if len(given["right"]) == 1 else 5, 1)
    return [(function(left, right, heads, _like(given.get("out"), 5)), reference_fused.head_dots(left, right, heads))]


def _head_outer(function, given):
    feats, others = _like(given["feats"], 5), _like(given["others"], 5, 1)
    rows = _like(given["rows"], len(given["rows"]), 2)
    factors = np.stack([_like(given["factors"][0], 5, 3 + s) for s in range(len(rows))])
    sums, after = reference_fused.head_outer(feats, rows, factors, others)
    return [(function(feats, rows, factors, others), sums), (feats, after)]


def _pair_scores(function, given):
    sources, targets = _like(given["sources"], SOURCES), _like(given["targets"], TARGETS, 1)
    others, arcs = INDICES.astype(np.asarray(given["others"]).dtype), _places(given["arcs"], ARCS)
    arguments = INDPTR, others, arcs, sources, targets, _like(given["attn"], 1, 2)
    if function.__name__ == "pair_scores":
        expected = reference_fused.pair_scores(*arguments, given["heads"], **_pick(given, "slope"))
        return [(function(*arguments, given["heads"], **_pick(given, "slope")), expected)]
    grad = _like(given["grad"], ARCS, 3)
    expected = reference_fused.pair_scores_backward(*arguments, grad, **_pick(given, "slope"))
    return zip(function(*arguments, grad, **_pick(given, "slope")), expected, strict=True)


def _mask(given, rows):
    """Arguments of a dropout, as the kernel takes them and as the reference does."""
    draw = {name: 11 for name in ("seed", "step", "site")}
    ids = np.arange(rows) if given.get("row_ids") is None else _ids(given["row_ids"], rows)
    return {"p": given.get("p", 0.0), "row_ids": ids, **draw}, (given.get("p", 0.0), ids, draw)


def _dropout(function, given):
    rows = _rows_for(np.shape(given["feats"])[1])
    feats, (options, _) = _like(given["feats"], rows), _mask(given, rows)
    return [(function(feats, **options), reference.dropout(reference.widened(feats), **options))]


def _activation_inputs(given, name):
    width = np.shape(given[name])[1]
    rows = _like(given[name], _rows_for(width))
    norm = given.get("norm")
    norm = None if norm is None else tuple(_like(np.asarray(a)[None], 1, 4 + n)[0] for n, a in enumerate(norm))
    bias = np.zeros(width) if given.get("bias") is None else _like(np.asarray(given["bias"])[None], 1)[0]
    return rows, bias, norm, given.get("activation", "relu")


def _activate(function, given):
    feats, bias, norm, activation = _activation_inputs(given, "feats")
    options, mask = _mask(given, len(feats))
    options |= {**_pick(given, "eps"), "out": _like(given.get("out"), len(feats))}
    got = function(feats, bias, norm, activation=activation, **options)
    expected = reference_fused.activate(feats, bias, norm, activation, *mask, given.get("eps", 1e-5))
    return list(zip(got, expected, strict=True))[: 1 if norm is None else 2]


def _activate_backward(function, given):
    grad, bias, norm, activation = _activation_inputs(given, "grad")
    feats = _like(given["grad"] if given.get("feats") is None else given["feats"], len(grad), 9)
    options, mask = _mask(given, len(grad))
    out, stats = reference_fused.activate(feats, bias, norm, activation, *mask)
    out = reference.to_bfloat16(out) if given["out"].dtype == np.uint16 else out.astype(given["out"].dtype)
    stats = None if stats is None else stats.astype(np.asarray(given["stats"]).dtype)
    options["grad_feats"] = _like(given.get("grad_feats"), len(grad))
    got = function(grad, out, feats, bias, norm, stats, activation=activation, **options)
    wide = [reference.widened(a) for a in (grad, out, feats)]
    expected = reference_fused.activate_backward(*wide, bias, norm, stats, activation, *mask)
    return list(zip(got, expected, strict=True))[: 2 if norm is None else 4]


def _product(function, given):
    """Eight rows: six that are summed together, and two one by one."""
    pairs = [(given["rows"], given["weight"]), (given.get("more"), given.get("more_weight"))]
    pairs = [(_like(a, 8, n), _like(b, len(b), 2 + n)) for n, (a, b) in enumerate(pairs) if a is not None]
    expected = sum(rows.astype(np.float64) @ weight for rows, weight in pairs)
    out, accumulate = _like(given.get("out"), 8, 5), given.get("accumulate", False)
    expected = expected + out if accumulate else expected
    return [(function(*(array for pair in pairs for array in pair), out=out, accumulate=accumulate), expected)]


def _inner_product(function, given):
    rows, grads = _like(given["rows"], 8), _like(given["grads"], 8, 1)
    return [(function(rows, grads), reference_fused.inner_product(rows, grads))]


def _pack(function, given):
    feats, rows = _like(given["feats"], SOURCES), _places(given["rows"], SOURCES)[:5]
    return [(function(feats, rows, _like(given.get("out"), 5)), reference.widened(feats)[rows])]


def _add(function, given):
    out, rows = _like(given["out"], SOURCES), _places(given["rows"], SOURCES)[:5]
    packed = _like(given["packed"], 5)
    expected = reference.add_rows(reference.widened(out), rows, reference.widened(packed))
    return [(function(out, rows, packed), expected)]


def _encode(function, given):
    feats, rows, wire = _like(given["feats"], SOURCES), _places(given["rows"], SOURCES)[:3], given["wire"]
    ids = np.arange(SOURCES) if given.get("row_ids") is None else _ids(given["row_ids"], SOURCES)
    draw = {name: 11 for name in ("seed", "step", "site")}
    packed = function(feats, rows, wire, row_ids=ids, **draw)
    expected = reference_fused.encode_decode(feats, rows, wire, ids, draw)
    return [(_decoded(packed, wire, feats.shape[1]), np.asarray(expected, np.float32))]


def _decode(function, given):
    out, wire = _like(given["out"], SOURCES), given["wire"]
    packed = np.random.default_rng(5).integers(0, 256, (SOURCES, row_bytes(out.shape[1], wire)), np.uint8)
    if wire in LEVELS:
        packed[:, -4:] = np.linspace(0.5, 2, SOURCES, dtype=np.float32).view(np.uint8).reshape(-1, 4)
    else:
        values = _like(np.empty((0, out.shape[1]), np.float32 if wire == "float32" else np.uint16), SOURCES)
        packed = values.view(np.uint8).reshape(packed.shape)
    rows, accumulate = _places(given.get("rows"), SOURCES), given.get("accumulate", False)
    expected, places = out.copy(), slice(None) if rows is None else rows
    expected[places] = _decoded(packed, wire, out.shape[1]) + (expected[places] if accumulate else 0)
    return [(function(packed, wire, out, rows, accumulate=accumulate), expected)]


def _decoded(packed, wire, width):
    """Rows from their bytes, in numpy."""
    if wire not in LEVELS:
        return reference.widened(packed.view(np.float32 if wire == "float32" else np.uint16))
    codes = packed[:, :-4].view(np.int8).astype(np.int32)
    if wire == "int4":
        codes = np.stack([codes << 28 >> 28, codes << 24 >> 28], axis=2).reshape(len(packed), -1)[:, :width]
    return codes.astype(np.float32) * np.ascontiguousarray(packed[:, -4:]).view(np.float32)


def _csr(function, given):
    """20 edges among 9 vertices, for both functions of structure.py."""
    if function.__name__ == "transpose_csr":
        arguments = *_graph(given), SOURCES
        return zip(function(*arguments), reference.transpose_csr(*arguments), strict=True)
    keys = np.repeat(np.arange(TARGETS), np.diff(INDPTR))[::-1].astype(np.asarray(given["dst"]).dtype)
    arguments = INDICES.astype(np.asarray(given["src"]).dtype), keys, SOURCES
    return zip(function(*arguments), reference.csr_from_edges(*arguments), strict=True)


CASES = {
    "spmm": _spmm,
    "sddmm": _sddmm,
    "edge_softmax": _softmax,
    "edge_softmax_backward": _softmax_backward,
    "attention": _attention,
    "attention_partial": _attention_partial,
    "attention_backward": _attention_backward,
    "merge_attention": _merge_attention,
    "finish_attention": _finish_attention,
    "head_dots": _head_dots,
    "head_outer": _head_outer,
    "pair_scores": _pair_scores,
    "pair_scores_backward": _pair_scores,
    "dropout": _dropout,
    "activate": _activate,
    "activate_backward": _activate_backward,
    "product": _product,
    "inner_product": _inner_product,
    "pack_rows": _pack,
    "add_rows": _add,
    "encode_rows": _encode,
    "decode_rows": _decode,
    "csr_from_edges": _csr,
    "transpose_csr": _csr,
}
