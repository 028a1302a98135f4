"""Layer: a layer with what follows it, as functions of what they are given; and as a function of torch's on its own.

On its own (`Single`) a layer keeps its input, and what its gradient needs beside (`Kept`). It gives that up on its way
through the backward pass, and makes it again when that runs for a second time. Behind one another layers are steps of
one function: chain.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from distgnn.errors import RunError, on_all_ranks
from distgnn.ops.function import Function, GraphView
from distgnn.ops.rowwise.products import PieceRows

PLAIN = (torch.Tensor, torch.nn.Parameter)
WRITTEN = (
    "a result of this layer was written to in place before its backward pass, which needs it, and rows of a delayed "
    "exchange cannot be made again: write out of place (relu, x + y), or train with cd-0"
)
AGAIN = (
    "this backward pass runs for the second time, and the rows of a delayed exchange cannot be made again: add the "
    "losses up and call backward once, or train with cd-0"
)


class Call(NamedTuple):
    """What one call hands to both passes.

    `how`: of the layer; `site`: of its delayed exchange; `plan`: of a convolution.
    """

    graph: GraphView
    epilogue: Any
    needs_grad: bool
    how: Any = None
    site: Any = None
    plan: Any = None


class Room:
    """Memory of rows that nobody reads any more: one result may be written there."""

    def __init__(self, rows: torch.Tensor | None = None):
        self.rows = rows

    def take(self, like: torch.Tensor) -> torch.Tensor | None:
        """It, once, if it has the shape and dtype of `like`."""
        rows = self.rows
        if rows is None or rows.shape != like.shape or rows.dtype != like.dtype:
            return None
        self.rows = None
        return rows.detach()


@dataclass
class Kept:
    """What a backward pass needs beside the inputs. `epilogue`: a `SavedEpilogue` or None."""

    epilogue: Any

    @property
    def is_intact(self) -> bool:
        """Was the result not written to, where it is needed?"""
        return self.epilogue is None or self.epilogue.is_intact


@dataclass
class Given:
    """What a backward pass has: `take` hands it over, so that the layer frees it on its way.

    Args: inputs: detached; feats, the first, may be `PieceRows`. grad: of the result. needs: which inputs need a
        gradient. is_ours: nobody else has `grad`: it may be written over.
    """

    inputs: list[Any]
    kept: Any
    grad: Any
    needs: Sequence[bool]
    is_ours: bool = False

    def take(self) -> tuple[list[Any], Any, Any]:
        taken = self.inputs, self.kept, self.grad
        self.inputs = []
        self.kept = self.grad = None
        return taken


class Layer:
    """A layer that can be a step: functions of what they are given.

    Attributes: reads_feats: the backward pass needs feats, the first input; goes_over: an evaluation may write the
        result over feats of a chain.
    """

    reads_feats, goes_over = True, False

    @staticmethod
    def run(*arguments: Any) -> tuple[torch.Tensor, Any]:
        """(result, `Kept`) of inputs, call and `Room`."""
        raise NotImplementedError

    @staticmethod
    def backward(call: Call, given: Given) -> Sequence[Any]:
        """A gradient, or None, for each input."""
        raise NotImplementedError

    @staticmethod
    def again(call: Call, source: Any, inputs: Sequence[Any], out: torch.Tensor, kept: Any) -> PieceRows | None:
        """How the result is made again from what is kept; None: the step behind is to keep it. source: feats, as they
        are there in a backward pass."""
        return None


def detached(one: Any) -> Any:
    return one.detach() if isinstance(one, torch.Tensor) else one


class Saved(Function):
    """What both functions save: tensors by torch, others beside."""

    @staticmethod
    def save(ctx: Any, given: Sequence[Any]) -> None:
        plain = [one if type(one) in PLAIN else None for one in given]
        ctx.others = [None if one is there else one for one, there in zip(given, plain, strict=True)]
        ctx.save_for_backward(*plain)

    @staticmethod
    def saved(ctx: Any) -> list[Any]:
        pairs = zip(ctx.saved_tensors, ctx.others, strict=True)
        return [detached(tensor if other is None else other) for tensor, other in pairs]


class Single(Saved):
    @staticmethod
    def forward(ctx: Any, layer: type[Layer], call: Call, *inputs: Any) -> torch.Tensor:
        ctx.layer, ctx.call = layer, call
        Saved.save(ctx, inputs)
        result, ctx.kept = layer.run(*map(detached, inputs), call, Room())
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        inputs, call, kept = Saved.saved(ctx), ctx.call, ctx.kept
        ctx.kept = None
        call.graph.buffers.read_ahead()
        if kept is None or not kept.is_intact:
            check_exact([call], kept is None)
            kept = ctx.layer.run(*inputs, call, Room())[1]
        given = Given(inputs, kept, grad, ctx.needs_input_grad[2:])
        del inputs, kept
        return None, None, *ctx.layer.backward(call, given)


def check_exact(calls: Sequence[Call], is_second: bool) -> None:
    """Raise RunError, on all ranks, where a layer would have to run again and has late exchanges."""
    if any(call.site is not None for call in calls):
        raise on_all_ranks(RunError(AGAIN if is_second else WRITTEN))
