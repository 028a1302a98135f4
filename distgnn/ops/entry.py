"""The entry of every public operator: what all of them owe to torch's modes, in one place.

torch.compile      the operator is an opaque call: the graph of operations breaks before it and goes on behind it
torch.autocast     off inside
half               arguments are widened, and results rounded once; bfloat16, too, where the operator does not take it
                   (`of_floats`), and in autocast unless the graph's own rows are that narrow
results            tensors of their own, not views: they may be written to, in any mode
rows of all ranks  (`distgnn.rows`) the operator gets this rank's rows, and what it gives are rows again
"""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import nn

from distgnn.errors import RunError, on_all_ranks
from distgnn.ops.function import own_tensor

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
NARROW = (torch.bfloat16, torch.float16)
OF_GRADIENTS = ("_backward", "_backward_pre")  # as torch calls its tables of hooks
HOOKS = ("_forward", *OF_GRADIENTS)
OF_TRANSFORMS = ("functorch", "that doesn't have storage", "vmap")  # torch's words: an argument has no numbers
TRANSFORMED = (
    "the transforms of torch.func (grad, vmap, jacrev) cannot pass an exchange of rows: take gradients with backward() "
    "or torch.autograd.grad; functional_call needs no transform and works"
)


def operator(run: Callable[Parameters, Result], takes_narrow: bool = True) -> Callable[Parameters, Result]:
    """Decorate a public operator; its first argument is the graph, or the object that it is a method of."""

    @functools.wraps(run)
    def entry(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if torch.compiler.is_dynamo_compiling():
            return torch.compiler.disable(entry)(*args, **kwargs)
        for one in args[:4]:
            if getattr(type(one), "knows_rows", False):
                return one.face.in_rows(entry, args, kwargs)  # type: ignore[attr-defined]
        try:
            autocast = torch.is_autocast_enabled("cpu")
            is_own = getattr(args[0], "dtype", None) in NARROW if autocast else takes_narrow
            narrow = _narrow_of((torch.float16,) if is_own else NARROW, *args, *kwargs.values())
            if not autocast and narrow is None:
                return _own(run(*args, **kwargs))
            with torch.autocast("cpu", enabled=False):
                if narrow is None:
                    return _own(run(*args, **kwargs))
                named: Any = {name: wide(one) for name, one in kwargs.items()}
                found = _own(run(*map(wide, args), **named))
                return found if autocast else rounded(found, narrow)
        except RuntimeError as error:
            if any(words in str(error) for words in OF_TRANSFORMS):
                raise on_all_ranks(RunError(TRANSFORMED)) from None
            raise

    return entry


def opaque(run: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorate the forward pass of a layer: `torch.compile` calls it and does not look into it."""

    @functools.wraps(run)
    def entry(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        if torch.compiler.is_dynamo_compiling():
            return torch.compiler.disable(entry)(*args, **kwargs)
        if len(args) > 1 and getattr(type(args[1]), "knows_rows", False) and not isinstance(args[1], torch.Tensor):
            return args[1].in_rows(entry, args, kwargs)  # type: ignore[attr-defined]  # (layer, graph, rows)
        return run(*args, **kwargs)

    return entry


def is_watched(module: Any, kinds: tuple[str, ...] = HOOKS) -> bool:
    """Has a user hooks on a module (or on all modules), which may keep its result or the gradient of it?"""
    everywhere = vars(nn.modules.module)
    return any(getattr(module, f"{kind}_hooks") or everywhere[f"_global{kind}_hooks"] for kind in kinds)


def is_seen(module: nn.Module) -> bool:
    """Has a user hooks that see what a module is given, what it gives, or gradients?

    Those before every module's forward pass do not count: our own are there.
    """
    return is_watched(module) or bool(getattr(module, "_forward_pre_hooks"))  # noqa: B009 - torch has no public name


of_floats = functools.partial(operator, takes_narrow=False)


def _narrow_of(dtypes: tuple[torch.dtype, ...], *values: Any) -> torch.dtype | None:
    """The dtype of the first tensor that has one of some dtypes."""
    return next((one.dtype for one in values if isinstance(one, torch.Tensor) and one.dtype in dtypes), None)


def wide(argument: Any) -> Any:
    """A bfloat16 or half tensor as float32."""
    is_narrow = isinstance(argument, torch.Tensor) and argument.dtype in NARROW
    return argument.float() if is_narrow else argument


def rounded(found: Any, dtype: torch.dtype) -> Any:
    """A result, or several, of widened arguments in their own dtype."""
    if isinstance(found, tuple):
        values = [rounded(one, dtype) for one in found]
        return tuple(values) if type(found) is tuple else type(found)(values)
    return found.to(dtype) if isinstance(found, torch.Tensor) and found.dtype == torch.float32 else found


def _own(result: Any) -> Any:
    """The same result; a view that no gradient flows through is detached from what it is a view of."""
    if type(result) is tuple:
        return tuple(map(_own, result))
    return result if getattr(result, "requires_grad", False) else own_tensor(result)
