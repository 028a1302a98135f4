"""Options with a fixed list of values."""

import difflib
from collections.abc import Iterable

from distgnn.errors import InputError

DTYPES = ("float32", "float64", "bfloat16")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise InputError unless `value` is one of `choices`."""
    if value not in choices:
        raise InputError(f"unknown {name} {value!r}: choose from {', '.join(choices)}{did_you_mean(value, choices)}")


def did_you_mean(value: str, names: Iterable[str]) -> str:
    """A question that names the most similar of `names`, or nothing where none is similar."""
    similar = difflib.get_close_matches(str(value)[:100], list(names), n=1)
    return f" (did you mean {similar[0]}?)" if similar else ""
