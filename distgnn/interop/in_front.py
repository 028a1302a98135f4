"""Functions of ours in front of another library's: what ours does not answer goes on to theirs."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch


def in_front(
    ours: Callable[..., Any], theirs: Callable[..., Any], watches: Callable[[], bool] = lambda: False
) -> Callable[..., Any]:
    """`theirs`, unless `ours` gives anything but NotImplemented.

    `torch.compile` looks into neither where a graph, its rows or arcs are among the arguments; else, as `torch.export`,
    into theirs. The function has the globals of theirs: there `torch.jit.script` looks up the names in their source.

    Args: watches: is there anything to say to ordinary tensors?
    """
    compiler, watched, cut = torch.compiler, torch.compiler.assume_constant_result(watches), _is_cut

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if compiler.is_compiling():
            if not watched() and not cut((*args, *kwargs.values())):
                return theirs(*args, **kwargs)
            if compiler.is_dynamo_compiling():
                return compiler.disable(itself[0])(*args, **kwargs)
        found = ours(*args, **kwargs)
        return theirs(*args, **kwargs) if found is NotImplemented else found

    names = getattr(theirs, "__globals__", dispatch.__globals__)
    itself = [functools.wraps(theirs)(FunctionType(dispatch.__code__, names, closure=dispatch.__closure__))]
    return itself[0]


def _is_cut(values: tuple[Any, ...] | list[Any]) -> bool:
    """Is a graph that is cut, or its rows or arcs, among some arguments?"""
    for one in values:
        if isinstance(one, (tuple, list)):
            if _is_cut(one):
                return True
        elif isinstance(one, torch.Tensor):
            if getattr(type(one), "knows_rows", False) or getattr(type(one), "stands_for_arcs", False):
                return True
        elif hasattr(one, "forward_arcs"):
            return True
    return False


def put_in_front(place: Any, name: str, ours: Callable[..., Any], *watches: Callable[[], bool]) -> None:
    """Put `ours` in front of the function `name` of a module, or the method of a class."""
    setattr(place, name, in_front(ours, getattr(place, name), *watches))
