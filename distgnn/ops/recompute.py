"""Rematerialisation: keep the input of a layer, compute the layer again when its gradient is needed.

Masks are keyed by (seed, step, site), so the second time they are the same; exchanges happen again, on every rank at
the same point. What a layer stores for its gradient is then there for one layer at a time.

Source: Chen et al., Training deep nets with sublinear memory cost, 2016.

What torch's own functions keep for their gradients, moved into the pool of buffers: `--offload` for any module.

Layers of ours keep rows of the pool, which wait in files by themselves. Rows that torch has made are copied into it
when a function saves them; what torch held is then free.
"""

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from distgnn.errors import RunError, on_all_ranks
from distgnn.ops.buffers import SMALL, Buffers
from distgnn.ops.function import Function, GraphView, is_same, operator, version_of

WRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: a tensor {} was "
    "written to after it was saved for the backward pass; write out of place (relu, x + y)"
)


@contextlib.contextmanager
def saved_in(buffers: Buffers) -> Iterator[None]:
    """A forward pass whose saved rows wait in files; without a folder nothing changes."""
    if buffers.disk is None:
        yield
        return
    rows = _SavedRows(buffers)
    with torch.autograd.graph.saved_tensors_hooks(rows.pack, rows.unpack):
        yield


class _SavedRows:
    """The hooks of one forward pass: (what is kept, its version)."""

    def __init__(self, buffers: Buffers):
        self._buffers = buffers
        self._copies: dict[tuple, weakref.ref] = {}  # several functions save one tensor

    def pack(self, tensor: torch.Tensor) -> tuple[torch.Tensor, int | None]:
        """As it is, or a copy in the pool: of large rows of numbers that torch has made."""
        rows = type(tensor) is torch.Tensor and tensor.is_floating_point() and tensor.is_contiguous()
        if not rows or tensor.nbytes < SMALL or self._buffers.holds(tensor.data_ptr()):
            return tensor, version_of(tensor)
        plain = tensor.detach()
        key = plain.data_ptr(), version_of(plain), plain.shape, plain.dtype
        known = self._copies.get(key)
        copy = None if known is None else known()
        as_bits = (one.view(-1).view(torch.uint8) for one in (copy, plain) if one is not None)
        if copy is None or not torch.equal(*as_bits):  # another tensor may lie there by now
            copy = self._buffers.empty(1, plain.numel(), plain.dtype).view(plain.shape).copy_(plain)
            self._copies[key] = weakref.ref(copy)
        return copy, version_of(copy)

    def unpack(self, kept: tuple[torch.Tensor, int | None]) -> torch.Tensor:
        """What was saved. Raises: RuntimeError, as torch does, where it was written to since."""
        tensor, version = kept
        if not is_same(tensor, version):
            raise RuntimeError(WRITTEN.format(list(tensor.shape)))
        self._buffers.read_ahead()
        return tensor


ONCE = (
    "a layer with remat runs its backward pass once, and on the rows that it had: add the losses up and call backward "
    "once, write to its input out of place, or leave remat out"
)
Run = Callable[[torch.Tensor], torch.Tensor]


@operator
def recompute(
    graph: GraphView, run: Run, feats: torch.Tensor, parameters: Sequence[torch.Tensor], alike: bool = False
) -> torch.Tensor:
    """`run(feats)`, keeping only `feats` [O, D] for the backward pass.

    Collective: as `run`, and once more in the backward pass.

    Args: run: a function of rows, and of `parameters` (a list of tensors); its exchanges must be exact; alike: `run`
        has the same bits without gradients, so the first pass keeps nothing.

    Example:
        >>> plain, layer = graph.plain, dg.nn.GraphConv(8, 8)
        >>> rows = plain.feats.clone().requires_grad_()
        >>> out = dg.ops.recompute(plain, lambda rows: layer(plain, rows), rows, list(layer.parameters()))
        >>> out.sum().backward()
        >>> rows.grad.shape
        torch.Size([60, 8])
    """
    if not torch.is_grad_enabled():
        return run(feats)
    return _Recompute.apply(feats, graph, run, alike, *parameters)


class _Recompute(Function):
    @staticmethod
    def forward(
        ctx: Any, feats: torch.Tensor, graph: GraphView, run: Run, alike: bool, *parameters: torch.Tensor
    ) -> torch.Tensor:
        ctx.graph, ctx.run, ctx.parameters = graph, run, parameters
        ctx.draws, ctx.feats = graph.random_keys.draws(), feats.detach() if feats.requires_grad else feats
        ctx.version = version_of(feats)
        with torch.set_grad_enabled(not alike):  # or else the same branches as the second time
            return run(_leaf(ctx)).detach()

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        if ctx.feats is None or not is_same(ctx.feats, ctx.version):
            raise on_all_ranks(RunError(ONCE))
        feats, now = _leaf(ctx), ctx.graph.random_keys.draws()
        ctx.feats = None
        ctx.graph.random_keys.set_draws(ctx.draws)
        with torch.enable_grad():
            out = ctx.run(feats)
        ctx.graph.random_keys.set_draws(now)
        wanted = [one for one in (feats, *ctx.parameters) if one.requires_grad]
        grads = iter(torch.autograd.grad(out, wanted, grad))
        found = [next(grads) if one.requires_grad else None for one in (feats, *ctx.parameters)]
        return found[0], None, None, None, *found[1:]


def _leaf(ctx: Any) -> torch.Tensor:
    """The rows as the start of a graph of their own; constant rows stay the tensor that aggregations are kept for."""
    return ctx.feats.detach().requires_grad_() if ctx.needs_input_grad[0] else ctx.feats
