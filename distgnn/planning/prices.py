"""Prices of what an epoch is made of, measured on the ranks that will train (`distgnn calibrate --prices FILE`).

A JSON file:

    {"format_version": 1, "width": 256, "num_layers": 3,
     "seconds_per_arc_value": 1.6e-10, "seconds_per_dense_row": 4e-6, "seconds_per_exchanged_row": 9e-7, ...}

Each price is for one layer, forward and backward; more keys (ranks, threads, hosts) say where they were measured.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from distgnn.errors import InputError
from distgnn.system.regular_file import read_text

FORMAT_VERSION = 1
MOST_SECONDS = 1e6  # for one arc or row
PRICES = ("seconds_per_arc_value", "seconds_per_dense_row", "seconds_per_exchanged_row")


@dataclass(frozen=True)
class EpochPrices:
    """Seconds of the three things that an epoch is made of, forward and backward; see above."""

    seconds_per_arc_value: float
    seconds_per_dense_row: float
    seconds_per_exchanged_row: float
    width: int = 256
    num_layers: int = 3

    def check(self) -> EpochPrices:
        """Return self; raise `InputError` for prices that cannot be."""
        for name, value in asdict(self).items():  # JSON's true is an int in Python; a NaN fails both comparisons
            kind, least, most = (int | float, 0, MOST_SECONDS) if name in PRICES else (int, 1, 2**31 - 1)
            if isinstance(value, bool) or not isinstance(value, kind) or not least <= value <= most:
                words = f"seconds, from 0 to {MOST_SECONDS:g}" if name in PRICES else "a whole number, 1 or more"
                raise InputError(f"{name} is {str(value)[:40]}: expected {words}")
        if not any(getattr(self, name) for name in PRICES):
            raise InputError("all prices are 0: every cut would cost the same")
        return self


def read_prices(path: str | Path) -> EpochPrices:
    """Prices from a file of `distgnn calibrate --prices`. Raises: InputError that names the file and its fault."""
    try:
        found = json.loads(read_text(path))
    except OSError as error:
        raise InputError(
            f"cannot read prices {path}: {error.strerror}: distgnn calibrate --prices writes them"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON ({error}): distgnn calibrate --prices writes prices") from None
    if not isinstance(found, dict) or found.get("format_version") != FORMAT_VERSION:
        raise InputError(f"{path} is no file of prices of format version {FORMAT_VERSION}")
    names = (*PRICES, "width", "num_layers")
    missing = [name for name in names if name not in found]
    if missing:
        raise InputError(f"{path} lacks {', '.join(missing)}")
    try:
        # Other keys, which say where prices were measured, are left out.
        return EpochPrices(**{name: found[name] for name in names}).check()
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
