"""Functions of ours in front of another library's: what ours does not answer goes on to theirs."""

import functools
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch


def in_front(
    ours: Callable[..., Any], theirs: Callable[..., Any], concerns: Callable[[Any], bool] = bool
) -> Callable[..., Any]:
    """`theirs`, unless `ours` gives anything but NotImplemented.

    While torch compiles or exports, it looks into theirs, and into neither where the arguments concern us. The function
    has the globals of theirs: there `torch.jit.script` looks up the names in their source.

    Args: concerns: are a graph, its rows or arcs among some arguments? By default where there is any argument.
    """
    compiler = torch.compiler

    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if compiler.is_compiling():
            if not concerns((*args, *kwargs.values())):
                return theirs(*args, **kwargs)
            if compiler.is_dynamo_compiling():
                return compiler.disable(itself[0])(*args, **kwargs)
        found = ours(*args, **kwargs)
        return theirs(*args, **kwargs) if found is NotImplemented else found

    names = getattr(theirs, "__globals__", dispatch.__globals__)
    itself = [functools.wraps(theirs)(FunctionType(dispatch.__code__, names, closure=dispatch.__closure__))]
    return itself[0]


def put_in_front(place: Any, name: str, ours: Callable[..., Any], *concerns: Callable[[Any], bool]) -> None:
    """Put `ours` in front of the function `name` of a module, or the method of a class."""
    setattr(place, name, in_front(ours, getattr(place, name), *concerns))
