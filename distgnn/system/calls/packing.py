"""Objects as bytes that ranks can read, by cloudpickle: classes of a notebook, lambdas and closures travel too."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from distgnn.errors import InputError

DEEPEST = 20  # attributes inside attributes that are named
INSIDE_MODULE = ("_modules", "_parameters", "_buffers")  # where torch keeps what is written as an attribute


def pack(value: Any, name: str) -> bytes:
    """The value as bytes. Raises: InputError that names the attribute which cannot travel; name: of the whole value."""
    import cloudpickle

    try:
        packed: bytes = cloudpickle.dumps(value)
    except Exception as error:
        place, reason = _culprit(value, name, error)
        raise InputError(
            f"{place} cannot travel to the ranks: {reason}; make it there, or leave it out of the object's state "
            "(__getstate__)"
        ) from None
    return packed


def unpack(packed: bytes) -> Any:
    import cloudpickle

    return cloudpickle.loads(packed)


def _culprit(value: Any, name: str, error: Exception) -> tuple[str, str]:
    """The innermost attribute, item or variable that fails, and why."""
    import cloudpickle

    for _ in range(DEEPEST):
        for inside, one in _contents(value, name):
            try:
                cloudpickle.dumps(one)
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
