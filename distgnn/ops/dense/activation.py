"""What follows a convolution, in one pass over its rows: bias, layer norm, ReLU, dropout; and its gradient in another.

The mask is keyed by global vertex ids and drawn again, or read off the result, in the backward pass: nothing is stored
for it. Formulas: `distgnn.kernels.activate`.

Legend: O rows, D columns.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array


@dataclass(frozen=True)
class After:
    """What follows a convolution, beside bias and norm: `relu`, and dropout `p` with the key of its mask."""

    relu: bool = False
    p: float = 0.0
    row_ids: np.ndarray | None = field(default=None, repr=False)
    seed: int = 0
    step: int = 0
    site: int = 0
    eps: float = 1e-5

    @property
    def nothing(self) -> bool:
        return not self.relu and self.p == 0

    def keywords(self) -> dict:
        """As the kernels take it."""
        activation = "relu" if self.relu else "none"
        return {"activation": activation, "p": self.p} | {
            name: getattr(self, name) for name in ("row_ids", "seed", "step", "site")
        }


def after(graph, p: float = 0.0, site: int = 0, eps: float = 1e-5) -> After:
    """ReLU and dropout of the model's rows in this training step."""
    return After(True, p, graph.row_ids, graph.seed, graph.step, site, eps)


def activate(graph, rows: torch.Tensor, then: After) -> torch.Tensor:
    """ReLU and dropout of rows [O, D], as a differentiable function."""
    return _Activate.apply(rows.contiguous(), graph, then)


class _Activate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, graph, then):
        ctx.graph, ctx.then = graph, then
        out, _ = activated(graph, rows.detach(), None, None, then)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        (out,) = ctx.saved_tensors
        grads = ctx.graph.buffers.empty(*grad.shape, grad.dtype)
        key = ctx.then.keywords()
        kernels.activate_backward(as_array(grad), as_array(out), grad_feats=as_array(grads), **key)
        return grads, None, None


def activated(graph, rows, bias, norm, then: After, in_place: bool = False, dtype: torch.dtype | None = None):
    """Rows [O, D] with all that follows them.

    Args: bias [D] or None; norm: (gamma, beta) or None; in_place: write over `rows`; dtype: of the result.
    Returns: (result, statistics of the norm or None).
    """
    dtype = dtype or rows.dtype
    out = rows if in_place and dtype == rows.dtype else graph.buffers.empty(*rows.shape, dtype)
    norm = None if norm is None else tuple(map(as_array, norm))
    arrays = as_array(rows), None if bias is None else as_array(bias), norm
    _, stats = kernels.activate(*arrays, eps=then.eps, out=as_array(out), **then.keywords())
    return out, stats


@dataclass
class Before:
    """What the gradient of `activated` needs: its result, and with a norm its input and statistics."""

    out: torch.Tensor
    rows: torch.Tensor | None = None
    stats: np.ndarray | None = None


def activated_backward(graph, grad, before: Before, bias, norm, then: After, in_place: bool):
    """Gradients of `activated`: (of rows [O, D], of bias, of gamma, of beta); in_place: over `grad`."""
    target = grad if in_place else graph.buffers.empty(*grad.shape, grad.dtype)
    more = ()
    if norm is not None:
        bias = None if bias is None else as_array(bias)
        more = as_array(before.rows), bias, tuple(map(as_array, norm)), before.stats
    arrays = as_array(grad), as_array(before.out), *more
    _, *sums = kernels.activate_backward(*arrays, grad_feats=as_array(target), **then.keywords())
    return target, *(None if one is None else torch.from_numpy(one) for one in sums)
