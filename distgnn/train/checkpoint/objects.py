"""State of other people's objects (torch optimisers, schedulers, callbacks) without pickle: JSON and tensors.

| value | JSON |
|---|---|
| None, bool, int, str, finite float | itself |
| other float | {"float": "inf"} |
| tensor, array | {"tensor": name}, {"array": name}; the values go into a safetensors file under this name |
| list, tuple, set | {"list": [...]}, {"tuple": [...]}, {"set": [...]} |
| dict, Counter | {"dict": [[key, value], ...]}, {"counter": ...}: keys may be numbers |
"""

import math
from collections import Counter, OrderedDict, defaultdict
from typing import Any

import numpy as np
import torch

from distgnn.errors import InputError

_DICTS: dict[type[Any], str] = {dict: "dict", OrderedDict: "dict", defaultdict: "dict", Counter: "counter"}
_LISTS: dict[type[Any], str] = {list: "list", tuple: "tuple", set: "set"}
_MAKE_LIST: dict[str, Any] = {name: kind for kind, name in _LISTS.items()}


def flatten(value: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    """`value` as JSON, tensors into `tensors` under their path. Raises: InputError naming what cannot be stored."""
    kind = type(value)
    if isinstance(value, np.generic):
        return flatten(value.item(), path, tensors)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, torch.Tensor) and value.layout == torch.strided:
        tensors[path] = value
        return {"tensor": path}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        tensors[path] = torch.from_numpy(np.array(value))
        return {"array": path}
    if kind in _LISTS:
        return {_LISTS[kind]: [flatten(one, f"{path}.{i}", tensors) for i, one in enumerate(value)]}
    if kind in _DICTS and all(type(key) in (int, str, float) for key in value):
        pairs = [[key, flatten(one, f"{path}.{key}", tensors)] for key, one in value.items()]
        return {_DICTS[kind]: pairs}
    raise InputError(
        f"{path} is of type {kind.__name__}: a checkpoint holds numbers, text, tensors, lists and dicts only. Leave it "
        "out of state_dict(), or train without run_dir"
    )


def unflatten(stored: Any, tensors: dict[str, torch.Tensor]) -> Any:
    """What `flatten` was given. Raises: KeyError, TypeError or ValueError where it is not its output."""
    if not isinstance(stored, dict):
        return stored
    ((kind, content),) = stored.items()
    if kind == "float":
        return float(content)
    if kind == "tensor":
        return tensors[content].clone()
    if kind == "array":
        return tensors[content].numpy().copy()
    if kind in _MAKE_LIST:
        return _MAKE_LIST[kind](unflatten(one, tensors) for one in content)
    pairs = {key: unflatten(one, tensors) for key, one in content}
    return {"dict": dict, "counter": Counter}[kind](pairs)
