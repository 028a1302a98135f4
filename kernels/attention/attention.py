"""Graph attention in one gather: score, softmax over a row's arcs and weighted sum; nothing per arc is stored.

    R targets, N sources, H heads, F columns per head.

    score[e, h] = leaky_relu(source_scores[j, h] + target_scores[i, h])      arc e from j = indices[e] to i
    alpha[e, h] = exp(score[e, h] - maximum[i, h]) / sums[i, h]
    out[i, h]   = Σ_e alpha[e, h] * feats[j, h]

`attention_partial` leaves out undivided, beside maximum and sums, so that partial results of several ranks can be
merged. Backward the scores are computed again. With g the gradient of out and d[i, h] = ⟨g[i, h], out[i, h]⟩:

    change[e, h]      = alpha * (⟨g[i, h], feats[j, h]⟩ - d[i, h]) * slope of the leaky ReLU
    grad_feats[j, h]  = Σ alpha g[i, h]         over arcs from j (transposed CSR)
    grad_source[j, h] = Σ change                over arcs from j
    grad_target[i, h] = Σ change                over arcs to i

so rows are gathered once forward and once backward. The backward pass goes by source; grad_target is summed by `PARTS`
ranges of sources apart, and those are added: same bits for any number of threads. All are linear in partial arcs.
"""

import numpy as np
from numpy.typing import DTypeLike

from distgnn.kernels.attention.attention_kernels import (
    STATE,
    backward_kernel,
    divide_rows,
    forward_kernel,
    merge_rows,
    parts_kernel,
    state_kernel,
    wide_tile,
)
from distgnn.kernels.attention.head_dots import for_all_heads
from distgnn.kernels.runtime.arrays import (
    ROWS,
    empty_rows,
    flat_rows,
    index_array,
    indptr_array,
    output,
    row_array,
    sums_dtype,
)
from distgnn.kernels.runtime.threads import edge_chunks, edge_parts, even_chunks, run
from distgnn.kernels.runtime.tiles import RepeatedTile, head_tiles, repeated_tile, row_tiles
from distgnn.kernels.runtime.tuning import arcs_ahead

PARTS = 16  # each has R · H numbers of its own; 16 threads use the bandwidth of most sockets


def attention(
    indptr: np.ndarray,
    indices: np.ndarray,
    feats: np.ndarray,
    source_scores: np.ndarray,
    target_scores: np.ndarray,
    *,
    slope: float = 0.2,
    out: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Attention-weighted sum of source rows.

    Args: indptr int [R + 1]; indices int [E]; feats float32, float64 or bfloat16 (uint16) [N, H, F]; source_scores
        [N, H]; target_scores [R, H]; slope of the leaky ReLU; out [R, H, F], which may be bfloat16 if feats are.
    Returns: (out, maximum [R, H], sums [R, H]); rows without arcs are 0, with maximum -inf and sum 0.
    Notes: memory R · H · (F + 2), whatever the number of arcs. Same bits for any number of threads.
    """
    return _attend(_Graph(indptr, indices, feats, source_scores, target_scores, slope), out, divide=True)


def attention_partial(
    indptr: np.ndarray,
    indices: np.ndarray,
    feats: np.ndarray,
    source_scores: np.ndarray,
    target_scores: np.ndarray,
    *,
    slope: float = 0.2,
    out: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`attention` before the division, not in bfloat16: (out, maximum, sums), to be merged and then finished."""
    return _attend(_Graph(indptr, indices, feats, source_scores, target_scores, slope), out, divide=False)


def _attend(graph: "_Graph", out: np.ndarray | None, divide: bool) -> tuple:
    if graph.shared:
        raise ValueError(f"feats must have {graph.heads} heads, as scores have: there is one")
    narrow = divide and out is not None and out.dtype == graph.feats.dtype
    out = output(out, (graph.rows, *graph.tail), graph.feats.dtype if narrow else graph.dtype)
    top, sums = np.empty((2, graph.rows, graph.heads), graph.dtype)
    arrays = graph.indptr, graph.indices, graph.feats, *graph.scores, graph.slope, flat_rows(out), top, sums, divide
    for repeated in _tiles(graph):
        one = forward_kernel(repeated, graph.score_tile, wide_tile(graph.dtype))
        run(one, edge_chunks(graph.indptr, graph.feats.shape[1]), graph.ahead(repeated), *arrays)
    return out, top, sums


def merge_attention(
    out: np.ndarray,
    maximum: np.ndarray,
    sums: np.ndarray,
    rows: np.ndarray,
    other_out: np.ndarray,
    other_maximum: np.ndarray,
    other_sums: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Add the partial results of another rank's arcs to rows of these, in place.

    Args: out [R, H, F], maximum and sums [R, H]; rows int [M], each at most once; other_… [M, …].
    Returns: (out, maximum, sums).
    """
    rows = index_array(rows, "rows")
    flat = [row_array(flat_rows(a)) for a in (other_out, other_maximum, other_sums)]
    mine = [flat_rows(output(a, a.shape, flat[0].dtype)) for a in (out, maximum, sums)]
    run(merge_rows, even_chunks(len(rows), flat[0].shape[1]), *mine, rows, *flat)
    return out, maximum, sums


def finish_attention(out: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Divide by the sums, in place; rows without arcs are 0."""
    heads = sums.shape[1]
    flat = output(out, out.shape, sums.dtype).reshape(len(out) * heads, -1) if out.size else out.reshape(0, 1)
    run(divide_rows, even_chunks(len(flat), flat.shape[1]), flat, sums.reshape(-1))
    return out


def _room(room: np.ndarray | None, parts: int, num: int, heads: int, dtype: DTypeLike) -> np.ndarray:
    """Memory [parts, num, heads] to work in, of what was given for it."""
    room = empty_rows((PARTS * num, heads), dtype) if room is None else row_array(room, "room", (dtype,))
    if len(room) < parts * num or room.shape[1] != heads:
        raise ValueError(f"room must be at least {(parts * num, heads)}, got {room.shape}")
    return room[: parts * num].reshape(parts, num, heads)


def attention_backward(
    indptr: np.ndarray,
    indices: np.ndarray,
    feats: np.ndarray,
    source_scores: np.ndarray,
    target_scores: np.ndarray,
    grad: np.ndarray,
    maximum: np.ndarray,
    sums: np.ndarray,
    dots: np.ndarray,
    *,
    slope: float = 0.2,
    grad_feats: np.ndarray | None = None,
    grad_scores: np.ndarray | None = None,
    room: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients of `attention`.

    Args: indptr int [N + 1], indices int [E]: targets by source (transpose_csr); feats, source_scores, target_scores,
        slope, maximum, sums: as in the forward pass (merged over ranks); grad [R, H, F], float32 or bfloat16, or
        [R, 1, F] that stands for all heads; dots [R, H]: ⟨grad, out⟩ of each head; grad_feats [N, H, F]: where to
        write, may be bfloat16 if grad is, and may be feats itself; grad_scores [N, 2 H]: where to
        write both gradients of scores, side by side, if sources and targets are as many; room
        [PARTS * R, H], in the dtype of sums: memory to work in.
    Returns: (grad_feats [N, H, F], grad_source_scores [N, H], grad_target_scores [R, H]): this rank's arcs' share.
    Notes: memory R · H · (4 + PARTS).
    """
    graph = _Graph(indptr, indices, grad, target_scores, source_scores, slope)
    num, heads = graph.scores[0].shape
    feats = row_array(flat_rows(np.asarray(feats)), "feats", ROWS)
    if feats.shape != (graph.rows, heads * graph.tail[1]) or sums_dtype(feats) != graph.dtype:
        raise ValueError(f"feats {feats.dtype} {feats.shape} do not fit grad {graph.feats.dtype} {graph.feats.shape}")
    narrow = grad_feats is not None and grad_feats.dtype == graph.feats.dtype
    dtype = graph.feats.dtype if narrow else graph.dtype
    grad_feats = output(grad_feats, (graph.rows, *graph.tail), dtype, "grad_feats")
    state = _state(graph, maximum, sums, dots)
    # A constant, not the number of threads: the parts' sums are added in order, so threads do not change bits.
    parts = min(PARTS, max(1, graph.rows))
    bounds = edge_parts(graph.indptr, parts)
    grad_source = np.zeros((1, graph.rows, heads), graph.dtype)
    grad_target = _room(room, parts, num, heads, graph.dtype)
    flat = grad_feats.reshape(feats.shape)
    arrays = graph.indptr, graph.indices, graph.feats, graph.scores[1], state, graph.slope, feats, flat
    for number, repeated in enumerate(_tiles(graph)):
        # One gradient for all heads: its tile, and no step from heads to heads.
        gathered = repeated
        if graph.shared:
            gathered = repeated._replace(tile=for_all_heads(repeated.tile, graph.tail[1]), columns=0)
        work = bounds, graph.ahead(gathered), *arrays, grad_source[0], grad_target
        tiles = repeated, gathered.tile, gathered.columns, graph.score_tile, wide_tile(graph.dtype)
        one = backward_kernel(*tiles, number == 0)
        run(one, list(range(parts + 1)), *work)
    if grad_scores is None:
        return grad_feats, grad_source[0], _added(graph, grad_target, empty_rows((num, heads), graph.dtype), 0)
    grad_scores = output(grad_scores, (graph.rows, 2 * heads), graph.dtype, "grad_scores")
    for first, of_parts in ((0, grad_source), (heads, grad_target)):
        _added(graph, of_parts, grad_scores, first)
    return grad_feats, grad_scores[:, :heads], grad_scores[:, heads:]


def _state(graph: "_Graph", maximum: np.ndarray, sums: np.ndarray, dots: np.ndarray) -> np.ndarray:
    """Score, maximum, 1 / sum and dot of a target side by side, [R, STATE, H]: the backward pass reads one place."""
    columns = [row_array(np.asarray(column, graph.dtype), "state") for column in (maximum, sums, dots)]
    shape = graph.scores[0].shape
    if any(column.shape != shape for column in columns):
        raise ValueError(f"maximum, sums and dots must be {shape}, got {[column.shape for column in columns]}")
    state = empty_rows((shape[0], STATE, shape[1]), graph.dtype)
    run(state_kernel(graph.score_tile), even_chunks(shape[0], STATE * shape[1]), graph.scores[0], *columns, state)
    return state


def _added(graph: "_Graph", parts: np.ndarray, out: np.ndarray, column: int) -> np.ndarray:
    """The sums of parts, in the H columns of `out` from `column` on."""
    run(parts_kernel(graph.score_tile), even_chunks(parts.shape[1], len(parts) * parts.shape[2]), parts, out, column)
    return out


def _tiles(graph: "_Graph") -> list[RepeatedTile]:
    """One for all columns, or where heads are wider than the registers several, each for a pass over all arcs."""
    one = repeated_tile(*graph.tail, graph.dtype)
    if one:
        return [one]
    return [RepeatedTile(tile, 1, 0, graph.score_tile, 0) for tile in head_tiles(*graph.tail, graph.dtype)]


class _Graph:
    """Checked arguments: rows gathered over a CSR, and the scores at the two ends of an arc."""

    def __init__(
        self,
        indptr: np.ndarray,
        indices: np.ndarray,
        feats: np.ndarray,
        gathered_scores: np.ndarray,
        row_scores: np.ndarray,
        slope: float,
    ) -> None:
        feats = np.asarray(feats)
        if feats.ndim != 3:
            raise ValueError(f"feats must have shape [rows, heads, width], got {feats.shape}")
        self.indptr, self.indices = indptr_array(indptr), index_array(indices)
        self.rows, self.heads = len(self.indptr) - 1, np.shape(row_scores)[-1]
        self.shared = feats.shape[1] == 1 < self.heads
        self.tail = self.heads, feats.shape[2]
        self.feats = row_array(flat_rows(feats), dtypes=ROWS)
        self.dtype = sums_dtype(self.feats)
        shapes = (len(feats), self.heads), (self.rows, self.heads)
        self.scores = [row_array(np.asarray(a, self.dtype), "scores") for a in (gathered_scores, row_scores)]
        if tuple(a.shape for a in self.scores) != shapes or feats.shape[1] not in (1, self.heads):
            raise ValueError(f"scores must have shapes {shapes}, got {tuple(a.shape for a in self.scores)}")
        if not 0 <= slope <= 1:
            raise ValueError(f"slope must be in [0, 1], got {slope}")
        # All heads' scores of an arc are one tile: a softmax over a row would otherwise need a pass per tile.
        tiles = row_tiles(self.heads, self.dtype)
        if len(tiles) > 1:
            raise ValueError(f"{self.heads} heads do not fit in registers")
        self.score_tile, self.slope = tiles[0][1], self.dtype.type(slope)

    def ahead(self, repeated: RepeatedTile) -> int:
        """How many arcs before its sum a row is asked for."""
        return arcs_ahead(repeated.times * repeated.tile.width * self.feats.itemsize)
