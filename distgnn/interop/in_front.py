"""Functions of ours in front of another library's: what ours does not answer goes on to theirs."""

import functools
from collections.abc import Callable
from typing import Any

import torch


def in_front(ours: Callable[..., Any], theirs: Callable[..., Any]) -> Callable[..., Any]:
    """`theirs`, unless `ours` gives anything but NotImplemented. `torch.compile` looks into neither."""

    @functools.wraps(theirs)
    def dispatch(*args: Any, **kwargs: Any) -> Any:
        if torch.compiler.is_compiling():
            return torch.compiler.disable(dispatch)(*args, **kwargs)
        found = ours(*args, **kwargs)
        return theirs(*args, **kwargs) if found is NotImplemented else found

    return dispatch


def put_in_front(place: Any, name: str, ours: Callable[..., Any]) -> None:
    """Put `ours` in front of the function `name` of a module, or the method of a class."""
    setattr(place, name, in_front(ours, getattr(place, name)))
