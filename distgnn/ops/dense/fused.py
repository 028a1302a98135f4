"""Fused: the base of layers that run with what follows them (bias, norm, ReLU, dropout) as one differentiable function.

A backward pass needs more than the inputs, gives that up on its way, and can make it again. Of the input it keeps the
way to make it where the layer before offers one, and of a norm it offers its result in the same way (made_again.py).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from distgnn.errors import RunError, on_all_ranks
from distgnn.ops.dense.activation import Epilogue, SavedEpilogue, activated_again
from distgnn.ops.dense.made_again import MadeAgain, lend, offer, taken
from distgnn.ops.function import Function
from distgnn.ops.graph_view import GraphView

PLAIN = (torch.Tensor, torch.nn.Parameter)
WRITTEN = (
    "a result of this layer was written to in place before its backward pass, which needs it, and rows of a delayed "
    "exchange cannot be made again: write out of place (relu, x + y), or train with cd-0"
)
ONCE = "with remat a backward pass runs once: add the losses up and call backward once, or leave remat out"
AGAIN = (
    "this backward pass runs for the second time, and the rows of a delayed exchange cannot be made again: add the "
    "losses up and call backward once, or train with cd-0"
)


class Call(NamedTuple):
    """What one call hands to both passes.

    `alone`: only this function uses the gradient of its result and may write over it, and only one other function reads
    the result. `how`: of the layer; `site`: of its delayed exchange; `plan`: of a convolution.
    """

    graph: GraphView
    epilogue: Epilogue
    alone: bool
    needs_grad: bool
    how: Any = None
    site: Any = None
    plan: Any = None
    kind: Any = None  # the class of the function: `Fused.of` says it


@dataclass
class Kept:
    """What a backward pass needs beside the inputs."""

    epilogue: SavedEpilogue | None

    @property
    def is_intact(self) -> bool:
        """Was the result not written to, where it is needed?"""
        return self.epilogue is None or self.epilogue.is_intact


class Fused(Function):
    """A subclass has `run(*inputs, call, room) -> (result, Kept)` and `backward`, which asks `inputs_and_kept`.

    Inputs: feats, what the layer needs, and last bias, gamma and beta of a layer norm, or None.

    Notes: inputs are saved by torch, which refuses those that were written to, and a second backward pass without
        retain_graph.
    """

    @staticmethod
    def run(*arguments: Any) -> tuple[torch.Tensor, Any]:
        raise NotImplementedError

    @classmethod
    def of(
        cls,
        inputs: tuple[Any, ...],
        call: Call,
        again: MadeAgain | None = None,
        room: torch.Tensor | None = None,
        lends: bool = False,
    ) -> torch.Tensor:
        """The result.

        Args: again: how to make feats again, where another function takes them, too; room: lent rows; lends: nobody
            looks at feats, though somebody may at the result.
        """
        if again is None and call.needs_grad:
            again = taken(inputs[0])
            if again is not None and (call.alone or lends):
                lend(inputs[0])
        offered: list[MadeAgain] = []
        out: torch.Tensor = cls.apply(*inputs, again, call._replace(kind=cls), offered, room)
        return offer(out, offered[0]) if offered and out.requires_grad else out

    @classmethod
    def again_of(cls, call: Call, inputs: list[Any], out: torch.Tensor, kept: Any) -> MadeAgain | None:
        """How the layer behind may make the result again; None: it is to keep it."""
        bias, gamma, beta = inputs[-3:]
        if gamma is None or kept.epilogue.is_made_in_pieces or not (call.needs_grad and call.alone):
            return None
        return activated_again(call.graph, kept.epilogue.rows, bias, (gamma, beta), call.epilogue, out.dtype)

    @staticmethod
    def forward(ctx: Any, *given: Any) -> torch.Tensor:
        *inputs, again, call, offered, room = given
        plain = [one if one is None or type(one) in PLAIN else None for one in inputs]
        ctx.others = [None if one is there else one for one, there in zip(inputs, plain, strict=True)]
        ctx.again = None if again is None else again.of(())
        ctx.is_spent = False
        if again is None:
            ctx.save_for_backward(*plain)
        else:
            ctx.save_for_backward(None, *plain[1:], *again.kept)
            inputs = [again, *inputs[1:]] if again.is_unread else inputs
        result, ctx.kept = call.kind.run(*inputs, call, room)
        ctx.call = call
        found = call.kind.again_of(call, inputs, result, ctx.kept)
        if found is not None:
            offered.append(found)
        return result

    @classmethod
    def inputs_and_kept(cls, ctx: Any) -> tuple[list[Any], Any]:
        """The inputs, detached, and what `run` kept, or makes again. Collective: where it makes it again."""
        if ctx.is_spent:
            raise on_all_ranks(RunError(ONCE))
        ctx.is_spent = ctx.again is not None and ctx.again.is_unread
        tensors, count = ctx.saved_tensors, len(ctx.others)
        ctx.call.graph.buffers.read_ahead()
        inputs = [tensor if other is None else other for tensor, other in zip(tensors[:count], ctx.others, strict=True)]
        if ctx.again is not None:
            inputs[0] = ctx.again.of(tensors[count:])
        kept, ctx.kept = ctx.kept, None
        if kept is None or not kept.is_intact:
            if ctx.call.site is not None:
                raise on_all_ranks(RunError(AGAIN if kept is None else WRITTEN))
            first = inputs[0] if ctx.again is None else inputs[0].whole()
            kept = cls.run(first, *inputs[1:], ctx.call, None)[1]
        return [one if one is None else one.detach() for one in inputs], kept
