"""A module of a user's model that fails on what it is given: one line with its name, what came and what it takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from distgnn.errors import DistGNNError, InputError

LIBRARIES = ("torch.", "torch_geometric.", "dgl.", "distgnn.")  # whose code the user did not write
FAULTS = (RuntimeError, ValueError, TypeError, IndexError, AssertionError)
WIDTHS = ("in_features", "in_channels", "num_features")  # as modules of torch and PyG call the width they take
LONGEST = 300  # letters of another library's message

Call = tuple[nn.Module, list[Any]]  # the module, shape and dtype of its tensors, and kinds of its other arguments


@contextmanager
def named_faults(model: nn.Module, graph: Any) -> Iterator[None]:
    """Within, what a library's module inside the model raises is an InputError that names the module.

    Errors of the user's own code, and of the program, are raised as they are.
    """
    running: list[Call] = []

    def enter(module: nn.Module, args: tuple[Any, ...]) -> None:
        running.append((module, [_described(one) for one in args]))

    def leave(module: nn.Module, args: Any, out: Any) -> None:
        running.pop()

    hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave)]
    try:
        yield
    except FAULTS as error:
        if isinstance(error, DistGNNError) or not running or not _is_library(running[-1][0]):
            raise
        made = InputError(_line(model, graph, running, error))
        made.traced = False
        raise made from None
    finally:
        for hook in hooks:
            hook.remove()


def _line(model: nn.Module, graph: Any, running: list[Call], error: Exception) -> str:
    names = {module: name for name, module in model.named_modules()}
    outer = next(place for place, (module, _) in enumerate(running) if _is_library(module) and not _is_box(module))
    for module, given in reversed(running[outer:]):
        width = next((getattr(module, name) for name in WIDTHS if isinstance(getattr(module, name, None), int)), -1)
        came = given[0][0][-1] if given and isinstance(given[0], tuple) and given[0][0] else -1
        if -1 not in (width, came) and width != came:
            source = "the graph's features" if came == graph.num_feats else "rows"
            return f"{_name(model, names, module)} takes rows of width {width}, and was given {source} of width {came}"
    module, given = running[outer]
    shown = ", ".join(one if isinstance(one, str) else f"{one[0]} {one[1]}" for one in given) or "nothing"
    message = " ".join(str(error).split())[:LONGEST]
    return f"{_name(model, names, module)} was given ({shown}): {message}"


def _name(model: nn.Module, names: dict[nn.Module, str], module: nn.Module) -> str:
    """The module as the user wrote it."""
    kind = type(module).__name__
    return f"{names[module]} ({kind}) of {type(model).__name__}" if names.get(module) else kind


def _described(one: Any) -> Any:
    if isinstance(one, torch.Tensor):
        return list(one.shape), str(one.dtype).removeprefix("torch.")
    return type(one).__name__


def _is_library(module: nn.Module) -> bool:
    return type(module).__module__.startswith(LIBRARIES)


def _is_box(module: nn.Module) -> bool:
    return isinstance(module, nn.Sequential | nn.ModuleList | nn.ModuleDict)
