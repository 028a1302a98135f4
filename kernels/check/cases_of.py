"""The cases of all kernels, over arcs and over rows, and the graph and rows that they are compared on. See cases.py."""

import functools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from distgnn.config.schedule import WIRES, row_bytes
from distgnn.kernels.check import reference
from distgnn.kernels.graph.csr import BlockedCsr

Pairs = Iterable[tuple[Any, Any]]  # (got, expected)


class Graph(NamedTuple):
    """Arcs by target: the sources of row i are indices[indptr[i] : indptr[i + 1]]."""

    indptr: np.ndarray
    indices: np.ndarray
    num_sources: int

    @property
    def num_targets(self) -> int:
        return len(self.indptr) - 1

    @property
    def csr(self) -> tuple[np.ndarray, np.ndarray]:
        return self.indptr, self.indices

    @property
    def num_arcs(self) -> int:
        return len(self.indices)


@functools.cache
def large_graph() -> Graph:
    """300 arcs from 41 sources to targets 0 … 39, with a hub (row 3) and rows 30 … 39 without any arc."""
    # More arcs in a row than attention takes at a time (CHUNK = 32), and rows for whole groups of six in a product.
    generator = np.random.default_rng(0)
    src, dst = generator.integers(0, 41, 300), generator.integers(0, 30, 300)
    dst[generator.random(300) < 0.2] = 3
    indptr, indices, _ = reference.csr_from_edges(src, dst, 40)
    return Graph(indptr, indices.astype(np.int32), 41)


class Rows(NamedTuple):
    """Random rows of one dtype: float32, float64 or bfloat16, and how wide cases make them."""

    dtype: str
    width: int = 37  # whole vectors and a remainder
    heads: int = 4
    each: int = 9  # columns of a head

    @property
    def full(self) -> int:
        return self.heads * self.each

    @property
    def is_narrow(self) -> bool:
        return self.dtype == "bfloat16"

    def __call__(self, count: int, *tail: int, seed: int = 0) -> np.ndarray:
        found = self.wide(count, *tail, seed=seed)
        return reference.to_bfloat16(found) if self.is_narrow else found

    def wide(self, count: int, *tail: int, seed: int = 0) -> np.ndarray:
        """The same in the dtype that they are summed in."""
        random = np.random.default_rng([seed, count]).standard_normal((count, *tail))
        return random.astype("float32" if self.is_narrow else self.dtype)


def distinct_ids(rows):
    # Masks are drawn from both words of an id: with small ids a kernel that drops the upper one would pass.
    return np.random.default_rng(7).permutation(rows) * (2**40 // 8 + 1)


def permuted(rows):
    return np.random.default_rng(3).permutation(rows)


BLOCK = 4  # sources of a block


def spmm_case(
    function: Callable, graph: Graph, rows: Rows, *, weighted=False, scales="", by_id=False,
    winners=True, **options: Any,
) -> Pairs:  # fmt: skip
    feats, adds = rows(graph.num_sources, rows.width), options.get("accumulate", False)
    options |= {
        "edge_weight": rows.wide(graph.num_arcs) if weighted else None,
        "edge_ids": permuted(graph.num_arcs) if by_id else None,
        "source_scale": rows.wide(graph.num_sources, seed=2) if "source" in scales else None,
        "target_scale": rows.wide(graph.num_targets) if "target" in scales else None,
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


def add_winners_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    _, winner = reference.spmm(*graph.csr, rows(graph.num_sources, rows.width), "max")
    grad, out = rows(graph.num_targets, rows.width), rows(graph.num_sources, rows.width, seed=1)
    expected = reference.add_winners(graph.indices, winner, grad, out)
    return [(function(graph.indices, winner.astype(np.int32), grad, out), expected)]


def count_ties_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    feats = rows(graph.num_sources, rows.width).round()
    best, _ = reference.spmm(*graph.csr, feats, "max")
    return [(function(*graph.csr, feats, best), reference.count_ties(*graph.csr, feats, best))]


def tied_sums_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    feats, best = (rows(count, rows.width).round() for count in (graph.num_targets, graph.num_sources))
    arguments = *graph.csr, feats, best, rows(graph.num_sources, rows.width, seed=1)
    return [(function(*arguments), reference.tied_sums(*arguments))]


def sddmm_case(function: Callable, graph: Graph, rows: Rows, *, heads=False) -> Pairs:
    tail = (rows.heads, rows.each) if heads else (rows.width,)
    ends = rows(graph.num_sources, *tail), rows(graph.num_targets, *tail)
    ids = permuted(graph.num_arcs) if heads else None
    return [(function(*graph.csr, *ends, edge_ids=ids), reference.sddmm(*graph.csr, *ends, edge_ids=ids))]


def _heads(graph: Graph, rows: Rows) -> tuple:
    scores = rows.wide(graph.num_sources, rows.heads, seed=1), rows.wide(graph.num_targets, rows.heads, seed=2)
    return rows(graph.num_sources, rows.heads, rows.each), *scores


def attention_case(function: Callable, graph: Graph, rows: Rows, **options: Any) -> Pairs:
    arguments = *graph.csr, *_heads(graph, rows)
    expected = reference.attention(*arguments, **options)
    out = {"out": rows(graph.num_targets, rows.heads, rows.each)} if rows.is_narrow else {}
    return zip(function(*arguments, **options, **out), expected, strict=True)


def attention_partial_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    # The reference divides; the partial result is what was divided.
    (out, finished), top, sums = attention_case(function, graph, rows)
    return [(out, finished * sums[1][..., None]), top, sums]


def attention_backward_case(function: Callable, graph: Graph, rows: Rows, *, of_mean=False, **options: Any) -> Pairs:
    arguments = _heads(graph, rows)
    out, top, sums = reference.attention(*graph.csr, *arguments, **options)
    grad = rows(graph.num_targets, 1 if of_mean else rows.heads, rows.each, seed=3)
    wide, scores = reference.widened(grad), arguments[1]
    state = [a.astype(scores.dtype) for a in (top, sums, (wide * out).sum(2))]
    widened = reference.widened(arguments[0]), *arguments[1:], wide
    expected = reference.attention_backward(*graph.csr, *widened, *state, **options)
    backward = reference.transpose_csr(*graph.csr, graph.num_sources)[:2]
    place = {"grad_feats": rows(graph.num_sources, rows.heads, rows.each)} if rows.is_narrow else {}
    return zip(function(*backward, *arguments, grad, *state, **options, **place), expected, strict=True)


def merge_attention_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    num, count = graph.num_targets, graph.num_targets // 2
    tails = (rows.heads, rows.each), (rows.heads,), (rows.heads,)
    mine, other = ([rows(size, *tail, seed=seed) for tail in tails] for size, seed in ((num, 1), (count, 2)))
    arguments = *mine, permuted(num)[:count], *other
    expected = reference.merge_attention(*arguments)
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
    return [(function(*arguments), reference.pair_scores(*arguments))]


def pair_scores_backward_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    arguments, slope = (*_pairs(graph, rows), rows(graph.num_arcs, rows.heads, seed=3)), {"slope": 0.1}
    return zip(function(*arguments, **slope), reference.pair_scores_backward(*arguments, **slope), strict=True)


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


DRAW = {"seed": 11, "step": 11, "site": 11}
P = 0.3


def head_dots_case(function: Callable, graph: Graph, rows: Rows, *, for_all_heads=False) -> Pairs:
    left = rows(graph.num_targets, rows.full)
    right = rows(graph.num_targets, rows.each if for_all_heads else rows.full, seed=1)
    return [(function(left, right, rows.heads), reference.head_dots(left, right, rows.heads))]


def head_scores_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    feats, some = rows(graph.num_targets, rows.full), rows.wide(2, rows.full, seed=1)
    expected = np.stack([reference.head_dots(feats, some[s : s + 1], rows.heads) for s in range(2)])
    return [(function(feats, some, rows.heads), expected)]


def head_mean_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    """With a bias; of bfloat16 without, and the rows in it beside the mean."""
    feats = rows.wide(graph.num_targets, rows.full)
    if not rows.is_narrow:
        bias = rows(rows.each, seed=1)
        return [(function(feats, rows.heads, bias), reference.head_mean(feats, rows.heads, bias))]
    short = np.zeros(feats.shape, np.uint16)
    mean = function(feats, rows.heads, short=short), reference.head_mean(feats, rows.heads, None)
    return [mean, (short, reference.to_bfloat16(feats))]


def relu_backward_dots_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    num = graph.num_targets
    arguments = rows(num, rows.full), rows(num, rows.full, seed=1), rows.wide(rows.full, seed=2), rows.heads
    return zip(function(*arguments, p=P), reference.relu_backward_dots(*arguments, P), strict=True)


def head_outer_case(function: Callable, graph: Graph, rows: Rows) -> Pairs:
    num = graph.num_targets
    factors = np.stack([rows.wide(num, rows.heads, seed=3 + s) for s in range(2)])
    arguments = rows(num, rows.full), rows.wide(2, rows.full, seed=2), factors
    after = reference.head_outer(*arguments)
    return [(function(*arguments), after)]


def _cross_entropy(graph: Graph, rows: Rows, smoothing: float) -> tuple:
    """(logits, labels, chosen rows), and what is expected."""
    num = graph.num_targets
    given = rows(num, rows.width), np.arange(num) % rows.width, np.arange(num) % 3 > 0
    return given, reference.cross_entropy(*given, smoothing)


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
    expected = reference.activate(feats, offset, parameters, activation, mask)
    return list(zip(got, expected, strict=True))[: 2 if norm else 1]


def activate_backward_case(function: Callable, graph: Graph, rows: Rows, *, norm=False, activation="relu") -> Pairs:
    num = _num_masked(graph, rows)
    grad, feats = rows(num, rows.width), rows(num, rows.width, seed=9)
    offset, parameters, mask = _activation(num, rows, P, norm, False)
    out, stats = reference.activate(feats, offset, parameters, activation, mask)
    out, stats = out.astype(grad.dtype), None if stats is None else stats.astype(grad.dtype)
    whole = None if norm and activation == "relu" else out
    got = function(grad, whole, feats, offset, parameters, stats, activation=activation, **mask)
    expected = reference.activate_backward(grad, out, feats, offset, parameters, stats, activation, mask)
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
    expected = reference.encode_decode(feats, some, wire, ids, DRAW)
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
