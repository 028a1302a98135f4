"""Function: the base of every autograd function of ours, for what torch's modes ask of all of them.

A result that is a view (of a buffer, or of numpy's memory) is handed on as a tensor of its own: torch allows no writing
to views that a custom function made. A second derivative is refused, even where the first gradient that arrives is
constant: torch would take it for zero there.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from distgnn.errors import RunError, on_all_ranks

TWICE = (
    "the gradient of an exchange of rows has no gradient of its own: take first derivatives only (no create_graph), or "
    "compute this penalty with plain torch in one process"
)


class Function(torch.autograd.Function):
    """As torch's. Attributes of a subclass: `is_twice`: its backward pass is differentiable itself."""

    is_twice = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        own = vars(cls)
        if "forward" in own:
            setattr(cls, "forward", staticmethod(_with_own_results(cls.forward)))  # noqa: B010 - typed methods
        if "backward" in own and not cls.is_twice:
            setattr(cls, "backward", staticmethod(_once(cls.backward)))  # noqa: B010


def own_tensor(result: Any) -> Any:
    """The same result; a view is detached from what it is a view of. Its memory and version stay shared."""
    return result.detach() if isinstance(result, torch.Tensor) and result._is_view() else result


def version_of(tensor: torch.Tensor | None) -> int | None:
    """How often a tensor was written to in place; None for none, and for those that torch does not count for: made in
    inference mode."""
    return None if tensor is None or tensor.is_inference() else tensor._version


def is_same(tensor: torch.Tensor, version: int | None) -> bool:
    return version_of(tensor) == version


class Facts:
    """One thing that is known of some tensors: of each until somebody writes to it, or nothing refers to it any more.

    Notes: a fact must not refer to its tensor, which would live for ever.
    """

    def __init__(self) -> None:
        self._known = WeakTensorKeyDictionary()

    def note(self, tensor: torch.Tensor, fact: Any) -> None:
        self._known[tensor] = fact, version_of(tensor)

    def of(self, tensor: Any, once: bool = False) -> Any:
        """What is known of a tensor, or None. Args: once: it is not known any more."""
        if type(tensor) is not torch.Tensor or tensor not in self._known:
            return None
        fact, version = self._known.pop(tensor) if once else self._known[tensor]
        return fact if is_same(tensor, version) else None


@contextlib.contextmanager
def constants() -> Iterator[None]:
    """A block that makes tensors to keep: without gradients, and not bound to inference mode where that is on."""
    with torch.inference_mode(False), torch.no_grad():
        yield


def _with_own_results(forward: Callable) -> Callable:
    @functools.wraps(forward)
    def run(ctx: Any, *args: Any) -> Any:
        result = forward(ctx, *args)
        return tuple(map(own_tensor, result)) if isinstance(result, tuple) else own_tensor(result)

    return run


def _once(backward: Callable) -> Callable:
    @functools.wraps(backward)
    def run(ctx: Any, *grads: Any) -> Any:
        if not torch.is_grad_enabled():
            return backward(ctx, *grads)
        with torch.no_grad():
            found = backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        link = torch.zeros((), requires_grad=True)
        return tuple(one if one is None else _Refused.apply(one, link) for one in found)

    return run


class _Refused(torch.autograd.Function):
    """A first derivative whose own derivative is refused."""

    @staticmethod
    def forward(ctx: Any, grad: torch.Tensor, link: torch.Tensor) -> torch.Tensor:
        return grad.view_as(grad).detach()

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise on_all_ranks(RunError(TWICE))


def linear_map(
    rows: torch.Tensor,
    run: Callable[[torch.Tensor], torch.Tensor],
    transposed: Callable[[torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """`run(rows)`, a linear function whose gradient is `transposed` of the gradient of its result."""
    return _LinearMap.apply(rows, run, transposed)


class _LinearMap(Function):
    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, run: Callable, transposed: Callable) -> torch.Tensor:
        ctx.transposed = transposed
        return run(rows)

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple:
        return ctx.transposed(grad), None, None
