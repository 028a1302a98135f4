"""Rematerialisation: keep the input of a layer, compute the layer again when its gradient is needed.

Masks are keyed by (seed, step, site), so the second time they are the same; exchanges happen again, on every rank at
the same point. What a layer stores for its gradient is then there for one layer at a time.

Source: Chen et al., Training deep nets with sublinear memory cost, 2016.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from distgnn.errors import RunError, on_all_ranks
from distgnn.ops.entry import operator
from distgnn.ops.function import Function, is_same, version_of
from distgnn.ops.graph_view import GraphView

ONCE = (
    "a layer with remat runs its backward pass once, and on the rows that it had: add the losses up and call backward "
    "once, write to its input out of place, or leave remat out"
)
Run = Callable[[torch.Tensor], torch.Tensor]


@operator
def recompute(
    graph: GraphView,
    run: Run,
    feats: torch.Tensor,
    parameters: Sequence[torch.Tensor],
    again: Run | None = None,
    alike: bool = False,
) -> torch.Tensor:
    """`run(feats)`, keeping only `feats` [O, D] for the backward pass.

    Collective: as `run`, and once more in the backward pass.

    Args: run: a function of rows, and of `parameters` (a list of tensors); its exchanges must be exact;
        again: `run` for the backward pass, where nobody reads the result; alike: `run` has the same bits without
        gradients, so the first pass keeps nothing.

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
    return _Recompute.apply(feats, graph, run, again or run, alike, *parameters)


class _Recompute(Function):
    @staticmethod
    def forward(
        ctx: Any,
        feats: torch.Tensor,
        graph: GraphView,
        run: Run,
        again: Run,
        alike: bool,
        *parameters: torch.Tensor,
    ) -> torch.Tensor:
        ctx.graph, ctx.again, ctx.parameters = graph, again, parameters
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
            out = ctx.again(feats)
        ctx.graph.random_keys.set_draws(now)
        wanted = [one for one in (feats, *ctx.parameters) if one.requires_grad]
        grads = iter(torch.autograd.grad(out, wanted, grad))
        found = [next(grads) if one.requires_grad else None for one in (feats, *ctx.parameters)]
        return found[0], None, None, None, None, *found[1:]


def _leaf(ctx: Any) -> torch.Tensor:
    """The rows as the start of a graph of their own; constant rows stay the tensor that aggregations are kept for."""
    return ctx.feats.detach().requires_grad_() if ctx.needs_input_grad[0] else ctx.feats
