"""What follows a convolution, in one pass over its rows: bias, layer norm, ReLU, dropout; and its gradient in another.

The mask is keyed by global vertex ids and drawn again, or read off the result, in the backward pass: nothing is stored
for it. Formulas: `distgnn.kernels.activate`.

Legend: O rows, D columns.

Dropout whose mask belongs to vertices or arcs, not to ranks: the same for any number of ranks and threads.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.function import Facts, Function, GraphView, is_same, linear_map, operator, version_of
from distgnn.ops.rowwise.layer import Call, Room
from distgnn.ops.rowwise.products import PieceRows


@operator
def dropout(graph: GraphView, rows: torch.Tensor, p: float, site: int, over: str = "vertices") -> torch.Tensor:
    """Zero entries with probability `p` and scale the rest by 1 / (1 - p).

    Args:
        rows: the model's rows, [O, ...], or with over="arcs" one row per local arc, [A, ...].
        site: number of the dropout site in the model; with (seed, training step, global id of the vertex or arc,
            column) it is the key of a counter-based generator, so nothing is stored for the backward pass.

    Source: Philox 4x32-10, Salmon et al., SC'11.

    Example:
        >>> dropped = dg.ops.dropout(graph, torch.ones(graph.num_nodes(), 8), 0.5, site=0)
        >>> sorted(set(dropped.flatten().tolist()))
        [0.0, 2.0]
    """
    source = before_relu(rows) if over == "vertices" else None
    if source is not None:
        return activate(graph, source, relu_dropout(graph, p, site))
    ids = graph.row_ids if over == "vertices" else graph.local.arc_ids
    return dropout_of(graph, rows, ids, p, site)


@operator
def dropout_of(graph: GraphView, rows: torch.Tensor, ids: np.ndarray, p: float, site: int) -> torch.Tensor:
    """The same for rows that have some other global ids, int64 [rows].

    Example:
        >>> dg.ops.dropout_of(graph, torch.ones(2, 3), np.array([10, 20]), 0.5, site=0).shape
        torch.Size([2, 3])
    """
    return _dropped(rows, graph, ids, p, graph.seed, graph.step, site)


@operator
def dropout_by_key(graph: GraphView, rows: torch.Tensor, ids: np.ndarray, p: float, key: int) -> torch.Tensor:
    """The same with a key that stands for seed, step and site."""
    return _dropped(rows, graph, ids, p, key, 0, 0)


def _dropped(
    rows: torch.Tensor, graph: GraphView, ids: np.ndarray, p: float, seed: int, step: int, site: int
) -> torch.Tensor:
    def masked(rows: torch.Tensor) -> torch.Tensor:
        flat = rows.detach().reshape(len(rows), rows.shape[1:].numel())
        out = graph.buffers.empty_like(flat)
        kernels.dropout(as_array(flat), ids, p, seed=seed, step=step, site=site, out=as_array(out))
        return out.view(rows.shape)

    return linear_map(rows, masked, masked)


BLOCK_ROWS = 1 << 12  # rows of a pass, which stay in the caches from one operation to the next
Norm = tuple[torch.Tensor, torch.Tensor]  # gamma and beta of a layer norm, [D] each
_relu_of, _column_sums = Facts(), Facts()


@dataclass(frozen=True)
class Epilogue:
    """What follows a convolution, beside bias and norm: `relu`, and dropout `p` with the key of its mask.

    Example:
        >>> dg.ops.Epilogue(relu=True, p=0.5)
        Epilogue(relu=True, p=0.5, seed=0, step=0, site=0, eps=1e-05)
    """

    relu: bool = False
    p: float = 0.0
    row_ids: np.ndarray | None = field(default=None, repr=False)
    seed: int = 0
    step: int = 0
    site: int = 0
    eps: float = 1e-5

    @property
    def is_empty(self) -> bool:
        return not self.relu and self.p == 0

    def keywords(self) -> dict[str, Any]:
        key = {"row_ids": self.row_ids, "seed": self.seed, "step": self.step, "site": self.site}
        return {"activation": "relu" if self.relu else "none", "p": self.p} | key


NO_EPILOGUE = Epilogue()


def relu_dropout(graph: GraphView, p: float = 0.0, site: int = 0, eps: float = 1e-5) -> Epilogue:
    """ReLU and dropout of the model's rows in this training step.

    Example:
        >>> epilogue = dg.ops.relu_dropout(graph, p=0.5)
        >>> epilogue.relu, epilogue.p
        (True, 0.5)
    """
    return Epilogue(True, p, graph.row_ids, graph.seed, graph.step, site, eps)


@operator
def activate(graph: GraphView, rows: torch.Tensor, epilogue: Epilogue) -> torch.Tensor:
    """ReLU and dropout of rows [O, D], as a differentiable function.

    Example:
        >>> rows = graph.feats - 0.5
        >>> bool((dg.ops.activate(graph, rows, dg.ops.Epilogue(relu=True)) == rows.relu()).all())
        True
    """
    return _Activate.apply(rows.contiguous(), graph, epilogue)


@operator
def relu(graph: GraphView, rows: torch.Tensor) -> torch.Tensor:
    """ReLU of rows [O, D]. A dropout of its result takes both in one pass: see `before_relu`.

    Example:
        >>> dg.ops.relu(graph, graph.feats - 0.5).min().item()
        0.0
    """
    out = activate(graph, rows, Epilogue(relu=True))
    _relu_of.note(out, (rows, version_of(rows)))
    return out


def before_relu(rows: torch.Tensor) -> torch.Tensor | None:
    """The rows of which these are the `relu`, once, and if nobody wrote to either since; else None.

    A dropout that starts from them needs no row that ReLU made, and nothing is saved for ReLU alone.
    """
    source, version = _relu_of.of(rows, once=True) or (None, None)
    return source if source is not None and is_same(source, version) else None


def column_sums(grad: torch.Tensor) -> torch.Tensor:
    """Sums [D] over the rows of a gradient [O, D]; those of `_LetThrough` are known where nobody wrote to it since."""
    sums: torch.Tensor | None = _column_sums.of(grad)
    return grad.sum(0) if sums is None else sums


class _Activate(Function):
    is_twice = True

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, graph: GraphView, epilogue: Epilogue) -> torch.Tensor:
        ctx.graph, ctx.epilogue = graph, epilogue
        out, _ = activated(graph, rows.detach(), None, None, epilogue)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        return _LetThrough.apply(grad, ctx.saved_tensors[0].detach(), ctx.graph, ctx.epilogue), None, None


class _LetThrough(Function):
    """What ReLU and mask let through of a gradient: linear, so it is its own derivative."""

    is_twice = True

    @staticmethod
    def forward(ctx: Any, grad: torch.Tensor, out: torch.Tensor, graph: GraphView, epilogue: Epilogue) -> torch.Tensor:
        ctx.given = out, graph, epilogue
        grads = graph.buffers.empty_like(grad)
        arrays = as_array(grad), as_array(out)
        _, sums, *_ = kernels.activate_backward(*arrays, grad_feats=as_array(grads), **epilogue.keywords())
        _column_sums.note(grads, torch.from_numpy(sums))
        return grads

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        return _LetThrough.apply(grad, *ctx.given), None, None, None


def activated(
    graph: GraphView,
    rows: torch.Tensor,
    bias: torch.Tensor | None,
    norm: Norm | None,
    epilogue: Epilogue,
    in_place: bool = False,
    dtype: torch.dtype | None = None,
    out: torch.Tensor | None = None,
) -> tuple[torch.Tensor, np.ndarray | None]:
    """Rows [O, D] with all that follows them.

    Args: bias [D] or None; norm: (gamma, beta) or None; in_place: write over `rows`; dtype: of the result; out: where
        to write it.
    Returns: (result, statistics of the norm or None).
    """
    dtype = dtype or rows.dtype
    if out is None:
        out = rows if in_place and dtype == rows.dtype else graph.buffers.empty_like(rows, dtype)
    parameters = None if norm is None else (as_array(norm[0]), as_array(norm[1]))
    offset = None if bias is None else as_array(bias)
    _, stats = kernels.activate(
        as_array(rows), offset, parameters, eps=epilogue.eps, out=as_array(out), **epilogue.keywords()
    )
    return out, stats


def rows_of(epilogue: Epilogue, rows: slice) -> Epilogue:
    """What follows some of the rows."""
    ids = epilogue.row_ids
    return epilogue if ids is None else replace(epilogue, row_ids=ids[rows])


def activated_again(call: Call, inputs: Sequence[Any], out: torch.Tensor, saved: Any) -> PieceRows | None:
    """How the result of a layer norm, and what follows, is made from z, which is kept; None where it is not.

    Args: inputs: of the layer, the last three are bias, gamma and beta. saved: its `SavedEpilogue`.
    """
    bias, gamma, beta = inputs[-3:]
    if gamma is None or not call.needs_grad:
        return None
    graph, epilogue, z, dtype = call.graph, call.epilogue, saved.rows, out.dtype

    def make(rows: slice) -> torch.Tensor:
        return activated(graph, z[rows], bias, (gamma, beta), rows_of(epilogue, rows), dtype=dtype)[0]

    return PieceRows(make, z.shape, dtype)


@dataclass
class SavedEpilogue:
    """What the gradient of `activated` needs: its result, or with a norm its input and statistics."""

    out: torch.Tensor | None
    rows: torch.Tensor | None = None
    stats: np.ndarray | None = None

    def __post_init__(self) -> None:
        self._version = version_of(self.out)

    @property
    def is_made_again(self) -> bool:
        """Is nothing kept? Then the backward pass makes it."""
        return self.out is None and self.rows is None

    @property
    def is_intact(self) -> bool:
        """Was the result not written to since?"""
        return self.out is None or is_same(self.out, self._version)


def finish(
    call: Call,
    z: torch.Tensor,
    bias: torch.Tensor | None,
    norm: Norm | None,
    room: Room,
    *,
    may_write: bool = True,
    dtype: torch.dtype | None = None,
) -> tuple[torch.Tensor, SavedEpilogue | None]:
    """What follows z, in `dtype`, and what its gradient needs. z is written over where nothing needs it, else what
    `room` has."""
    follows = norm is not None or not call.epilogue.is_empty
    if bias is None and not follows:
        return z, None
    keeps_z = norm is not None and call.needs_grad
    over = room.take(z) if keeps_z and may_write and dtype in (None, z.dtype) else None
    out, stats = activated(call.graph, z, bias, norm, call.epilogue, may_write and not keeps_z, dtype, over)
    if norm is not None:
        return out, SavedEpilogue(None, z, stats)
    return out, SavedEpilogue(out.detach()) if follows else None


def activated_backward(
    graph: GraphView,
    grad: torch.Tensor,
    saved: SavedEpilogue,
    bias: torch.Tensor | None,
    norm: Norm | None,
    epilogue: Epilogue,
    may_overwrite_grad: bool,
) -> tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None, torch.Tensor | None]:
    """Gradients of `activated`: (of rows [O, D], of bias, of gamma, of beta)."""
    target = grad if may_overwrite_grad else graph.buffers.empty_like(grad)
    of_norm: tuple = ()
    if norm is not None and saved.rows is not None:
        offset = None if bias is None else as_array(bias)
        of_norm = as_array(saved.rows), offset, tuple(map(as_array, norm)), saved.stats
    arrays = as_array(grad), None if saved.out is None else as_array(saved.out), *of_norm
    _, *sums = kernels.activate_backward(*arrays, grad_feats=as_array(target), **epilogue.keywords())
    of_bias, gamma, beta = (None if one is None else torch.from_numpy(one) for one in sums)
    return target, of_bias, gamma, beta
