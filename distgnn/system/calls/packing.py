"""Objects as bytes that ranks can read, by cloudpickle: classes of a notebook, lambdas and closures travel too."""

import io
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from distgnn.errors import InputError

DEEPEST = 20  # attributes inside attributes that are named
INSIDE_MODULE = ("_modules", "_parameters", "_buffers")  # where torch keeps what is written as an attribute


def pack(value: Any, name: str) -> bytes:
    """The value as bytes. Raises: InputError that names the attribute which cannot travel; name: of the whole value."""
    try:
        return _dumps(value)
    except Exception as error:
        place, reason = _culprit(value, name, error)
        raise InputError(
            f"{place} cannot travel to the ranks: {reason}; give a function that makes it on the ranks, or leave it "
            "out of the object's state (__getstate__)"
        ) from None


def unpack(packed: bytes) -> Any:
    import cloudpickle

    return cloudpickle.loads(packed)


def _dumps(value: Any) -> bytes:
    """As `cloudpickle.dumps`, with modules that torch has parametrized (weight_norm): torch refuses to pickle them."""
    import cloudpickle

    torch: Any = sys.modules.get("torch")  # not loaded: no module is here

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, one: Any) -> Any:
            if isinstance(one, torch.nn.Module) and torch.nn.utils.parametrize.is_parametrized(one):
                kind = torch.nn.utils.parametrize.type_before_parametrizations(one)
                return _parametrized, (kind, vars(one))
            return super().reducer_override(one)

    with io.BytesIO() as file:
        (Pickler if torch else cloudpickle.Pickler)(file).dump(value)
        return file.getvalue()


def _parametrized(kind: Any, state: dict[str, Any]) -> Any:
    """A module of this class with this state. torch makes its properties, before it gets its own parametrizations."""
    from torch import empty, nn
    from torch.nn.utils.parametrize import register_parametrization

    module = kind.__new__(kind)
    module.__setstate__(state)
    kept = module.parametrizations
    del module.parametrizations
    for name in kept:
        module.register_buffer(name, empty(0))
        register_parametrization(module, name, nn.Identity(), unsafe=True)
    module.parametrizations = kept
    return module


def _culprit(value: Any, name: str, error: Exception) -> tuple[str, str]:
    """The innermost attribute, item or variable that fails, and why."""
    for _ in range(DEEPEST):
        for inside, one in _contents(value, name):
            try:
                _dumps(one)
            except Exception as its_error:
                value, name, error = one, inside, its_error
                break
        else:
            break
    return name, " ".join(str(error).split()) or type(error).__name__


def _contents(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """What a value holds, with the name of each as one would write it; of a function the variables that it uses."""
    if isinstance(value, dict):
        yield from ((f"{name}[{key!r}]", one) for key, one in value.items())
    elif isinstance(value, list | tuple | set | frozenset):
        yield from ((f"{name}[{place}]", one) for place, one in enumerate(value))
    elif callable(value) and hasattr(value, "__code__"):
        for variable, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            with suppress(ValueError):  # not assigned yet
                yield f"variable {variable} of {name}", cell.cell_contents
        known = value.__globals__
        used = (variable for variable in value.__code__.co_names if variable in known)
        yield from ((f"variable {variable} of {name}", known[variable]) for variable in used)
    for key, one in getattr(value, "__dict__", {}).items() if not isinstance(value, type) else ():
        if key in INSIDE_MODULE and isinstance(one, dict):
            yield from ((f"{name}.{inner}", child) for inner, child in one.items())
        else:
            yield f"{name}.{key}", one
