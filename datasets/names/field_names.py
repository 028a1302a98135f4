"""What users call the fields of a graph: PyG's names are taken too, unknown ones are answered with the nearest."""

from collections.abc import Iterable
from typing import Any, NoReturn

from distgnn.config import did_you_mean
from distgnn.errors import InputError

# PyG's name -> ours.
ALIASES = {"x": "feats", "y": "labels", "train_mask": "train", "val_mask": "valid", "test_mask": "test"}


def our_names(given: dict[str, Any]) -> dict[str, Any]:
    """Field name -> value, PyG's names replaced by ours. Raises: InputError where one field is given twice."""
    twice = sorted(name for name, ours in ALIASES.items() if name in given and ours in given)
    if twice:
        raise InputError(f"{twice[0]} and {ALIASES[twice[0]]} are the same field: give one of them")
    return {ALIASES.get(name, name): value for name, value in given.items()}


def refuse_unknown(name: str, known: Iterable[str]) -> NoReturn:
    """Raise InputError for a name that is no field."""
    names = list(known)
    nearest = did_you_mean(name, [*names, *ALIASES])
    raise InputError(f"unknown field of a graph: {name!r}{nearest}; known are {', '.join(names)}")
