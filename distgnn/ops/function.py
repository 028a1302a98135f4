"""Function: the base of every autograd function of ours, for what torch's modes ask of all of them.

A result that is a view (of a buffer, or of numpy's memory) is handed on as a tensor of its own: torch allows no writing
to views that a custom function made. A second derivative is refused, even where the first gradient that arrives is
constant: torch would take it for zero there.

The entry of every public operator: what all of them owe to torch's modes, in one place.

torch.compile      the operator is an opaque call: the graph of operations breaks before it and goes on behind it
torch.autocast     off inside
half               arguments are widened, and results rounded once; bfloat16, too, where the operator does not take it
                   (`of_floats`), and in autocast unless the graph's own rows are that narrow
results            tensors of their own, not views: they may be written to, in any mode
rows of all ranks  (`distgnn.rows`) the operator gets this rank's rows, and what it gives are rows again
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import torch
from torch import nn
from torch.utils.weak import WeakTensorKeyDictionary

from distgnn.errors import RunError, on_all_ranks

if TYPE_CHECKING:  # the graph that operators and layers take: a DistGraph of any kind, or what layers ask a batch for
    from distgnn.graph.dist_graph import DistGraph as GraphView
else:
    GraphView = Any

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


def only_looks(hook: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a hook of ours that a layer may pass over, where it does the work of a layer inside it."""
    hook.only_looks = True  # type: ignore[attr-defined]
    return hook


def is_alone(module: nn.Module) -> bool:
    """Has nobody but us hooks on a module inside a layer?"""
    everywhere = vars(nn.modules.module)
    kinds = (getattr(module, f"{kind}_hooks") for kind in (*HOOKS, "_forward_pre"))
    tables = (*kinds, *(everywhere[f"_global{kind}_hooks"] for kind in HOOKS))
    return all(getattr(hook, "only_looks", False) for table in tables for hook in table.values())


def runs_as(module: Any, *kinds: Any) -> bool:
    """Has a module the forward pass of one of these classes, and none of a class or of its own?"""
    forward = getattr(module.forward, "__func__", None)
    return any(forward is kind.forward for kind in kinds)


def multiplies(module: Any, *kinds: Any) -> bool:
    """May a layer read the weight and bias of a linear layer inside it, and not call it?

    Not where it is another module (an adapter), or somebody sees it: pruning and norms of weights may be hooks.

    Args: kinds: classes of linear layers beside torch's.
    """
    return runs_as(module, nn.Linear, *kinds) and is_alone(module)


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
    rows: torch.Tensor, run: Callable[[torch.Tensor], torch.Tensor], transposed: Callable[[torch.Tensor], torch.Tensor]
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
