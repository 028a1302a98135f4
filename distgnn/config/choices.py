"""Options with a fixed list of values."""

from distgnn.errors import InputError

DTYPES = ("float32", "float64", "bfloat16")


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise InputError unless `value` is one of `choices`."""
    if value not in choices:
        raise InputError(f"unknown {name} {value!r}: choose from {', '.join(choices)}")
