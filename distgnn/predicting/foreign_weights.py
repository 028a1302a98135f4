"""Weights of a model that was trained elsewhere, from its file: nothing in the file is executed."""

import pickle
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from torch.nn.parameter import is_lazy

from distgnn.errors import InputError

INSIDE = ("state_dict", "model_state_dict", "model", "net")  # keys under which trainers keep a state dict
MOST_LINES = 5


def load_foreign(model: nn.Module, file: str | Path) -> nn.Module:
    """Put the weights of a file into a model, which is returned.

    Args: file: `.safetensors`, or what `torch.save` wrote: a state dict, or a checkpoint that has one, as Lightning's.
    Raises: InputError where the file cannot be read, or names or shapes do not fit: a line for each.
    """
    expected = model.state_dict()
    state = _without_prefix(_read(Path(file)), expected)
    faults = []
    for name in expected.keys() & state.keys():
        there, here = (list(one[name].shape) for one in (state, expected))
        if there != here and not is_lazy(expected[name]):
            faults.append(f"{name} is {there} in the file, the model has {here}")
    missing, unknown = expected.keys() - state.keys(), state.keys() - expected.keys()
    faults += [f"{name} is missing{_near(name, unknown, ', the file has')}" for name in expected if name in missing]
    faults += [f"the model has no {name}{_near(name, expected, ', it has')}" for name in state if name in unknown]
    if faults:
        more = [f"and {len(faults) - MOST_LINES} more"] if len(faults) > MOST_LINES else []
        raise InputError(f"{file} does not fit {type(model).__name__}: " + "; ".join([*faults[:MOST_LINES], *more]))
    model.load_state_dict(state)
    return model


def _without_prefix(state: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """The file's weights without what all their names begin with, where names of the model are left; else as given."""
    found, prefix = state, _prefix(state)
    while prefix and not found.keys() & expected.keys():
        found = {name.removeprefix(prefix): one for name, one in found.items()}
        prefix = _prefix(found)
    return found if found.keys() & expected.keys() else state


def _prefix(state: dict[str, Any]) -> str:
    """What all names begin with: module. of DataParallel, _orig_mod. of torch.compile, net. of a LightningModule."""
    first = {name.partition(".")[0] + "." for name in state}
    return first.pop() if len(first) == 1 and all("." in name for name in state) else ""


def _near(name: str, others: Iterable[str], said: str) -> str:
    near = get_close_matches(name, list(others), 1)
    return f"{said} {near[0]}" if near else ""


def _read(file: Path) -> dict[str, torch.Tensor]:
    if not file.is_file():
        raise InputError(f"{file}: there is no such file of weights")
    try:
        if file.suffix == ".safetensors":
            return load_file(file)
        found = torch.load(file, map_location="cpu", weights_only=True)
    except SafetensorError as error:
        raise InputError(f"{file} is damaged: {error}") from error
    except pickle.UnpicklingError as error:
        raise InputError(
            f"{file} holds more than weights, and is not executed: save model.state_dict() ({str(error).split('.')[0]})"
        ) from error
    except KeyError as error:
        raise InputError(f"{file} cannot be read as weights: torch.save did not write it") from error
    except (OSError, RuntimeError, EOFError, ValueError) as error:
        raise InputError(f"{file} cannot be read as weights: {' '.join(str(error).split())[:200]}") from error
    for key in INSIDE:
        if isinstance(found, dict) and isinstance(found.get(key), dict):
            found = found[key]
    if not isinstance(found, dict) or not found or not all(isinstance(one, torch.Tensor) for one in found.values()):
        raise InputError(f"{file} holds a {type(found).__name__}, no state dict: save model.state_dict()")
    return found
