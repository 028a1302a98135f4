"""Read the text that asks for a generated graph: `rmat:scale=18,edge_factor=16`."""

from dataclasses import field, fields
from typing import Any, TypeVar

import numpy as np

from distgnn.errors import InputError

Options = TypeVar("Options")


def within(low: float, high: float, default: Any) -> Any:
    """A field of options with the range of its values."""
    return field(default=default, metadata={"range": (low, high)})


def parse_spec(text: str, options_class: type[Options], seed: int) -> Options:
    """Fill a dataclass of options from `kind:key=value,...`, each within its range.

    Args:
        text: the whole source, for error messages too.
        options_class: dataclass whose fields are the known keys, with defaults that give their types; has `seed`.
        seed: used if the text names none.
    """
    kind, _, body = text.partition(":")
    known = {entry.name: entry for entry in fields(options_class)}  # type: ignore[arg-type]  # a dataclass
    values: dict[str, Any] = {"seed": seed}
    named = set()
    for item in filter(None, (part.strip() for part in body.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or key not in known:
            raise InputError(f"{kind}: unknown option {item!r}; known are {', '.join(known)} (as key=value)")
        if key in named:
            raise InputError(f"{kind}: option {key!r} is given twice")
        named.add(key)
        whole = known[key].type is int
        try:
            number: float = float(value)
            if whole:
                number = int(value) if number != int(number) or "e" not in value.lower() else int(number)
        except (ValueError, OverflowError):
            expected = "a whole number" if whole else "a number"
            raise InputError(f"{kind}: {key} must be {expected}, found {value!r}") from None
        values[key] = number
    options = options_class(**values)
    for name, entry in known.items():
        (low, high), found = entry.metadata["range"], getattr(options, name)
        if entry.type is int and not isinstance(found, int | np.integer):  # a seed beside the text
            raise InputError(f"{kind}: {name} must be a whole number, found {found!r}")
        if not low <= found <= high:
            raise InputError(f"{kind}: {name} must be between {low} and {high}, found {found}")
    return options
