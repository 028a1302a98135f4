"""What an epoch costs each rank under a cut, from prices measured on the ranks (`distgnn calibrate --prices FILE`).

A rank spends (L - 1) (a D arcs + x rows) + L d dense, for L layers of width D: the first layer's aggregation is
constant and kept. `arcs`: its arcs; `rows`: what it sends and receives in one layer and direction; `dense`: the rows it
computes (owned ones; with update on copies all its local rows). Arcs and dense rows take a slow rank longer.

The prices are a JSON file:

    {"format_version": 1, "width": 256, "num_layers": 3,
     "seconds_per_arc_value": 1.6e-10, "seconds_per_dense_row": 4e-6, "seconds_per_exchanged_row": 9e-7, ...}

Each is for one layer, forward and backward; more keys (ranks, threads, hosts) say where they were measured.

Shapes: P parts.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from distgnn.errors import InputError
from distgnn.partition.core.shares import part_shares
from distgnn.system.regular_file import read_text
from distgnn.system.units import human_seconds

FORMAT_VERSION = 1
MOST_SECONDS = 1e6  # for one arc or row
PRICES = ("seconds_per_arc_value", "seconds_per_dense_row", "seconds_per_exchanged_row")


class Loads(NamedTuple):
    """What each rank has: arcs, dense rows and exchanged rows (sent and received), [P] each."""

    arcs: np.ndarray
    dense: np.ndarray
    rows: np.ndarray


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
        for name in PRICES:
            value = getattr(self, name)
            # JSON's true is an int in Python. A NaN fails the comparison, as infinity does.
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MOST_SECONDS:
                raise InputError(f"{name} is {str(value)[:40]}: expected seconds, from 0 to {MOST_SECONDS:g}")
        for name in ("width", "num_layers"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < 2**31:
                raise InputError(f"{name} is {str(value)[:40]}: expected a whole number, 1 or more")
        if not any(getattr(self, name) for name in PRICES):
            raise InputError("all prices are 0: every cut would cost the same")
        return self

    @property
    def per_load(self) -> tuple[float, float, float]:
        """Seconds of an epoch for each arc, dense row and exchanged row of a rank."""
        again = max(self.num_layers - 1, 1)  # a single layer's aggregation counts: nothing else tells cuts apart
        arc, row = self.seconds_per_arc_value * self.width, self.seconds_per_exchanged_row
        # Dense rows are computed in every layer, arcs and exchanged rows cost only where aggregation is not kept.
        return (again * arc, self.num_layers * self.seconds_per_dense_row, again * row)

    def seconds(self, loads: Loads, shares: np.ndarray) -> np.ndarray:
        """Seconds of an epoch [P]; shares: [P], see `part_shares`: a rank of twice the mean share is twice as fast."""
        arc, dense, row = self.per_load
        # shares * P is a rank's speed, 1 on average. Exchanging a row takes a slow rank no longer.
        return (arc * loads.arcs + dense * loads.dense) / (shares * len(shares)) + row * loads.rows

    def predict(self, loads: Loads, shares: np.ndarray) -> dict[str, Any]:
        """The section `predicted_epoch` of `partition.json`: the worst rank, its seconds, and what they go into."""
        seconds = self.seconds(loads, shares)
        rank = int(seconds.argmax())
        # A share of the mean is a speed of 1.
        speed = shares[rank] * len(shares)
        spent = [float(price * load[rank]) for price, load in zip(self.per_load, loads, strict=True)]
        return {
            "seconds": float(seconds[rank]),
            "rank": rank,
            "mean_seconds": float(seconds.mean()),
            "aggregate_seconds": spent[0] / speed,
            "dense_seconds": spent[1] / speed,
            "exchange_seconds": spent[2],
            "prices": asdict(self),
        }


def loads_of(arcs: np.ndarray, owned: np.ndarray, local_rows: np.ndarray, pair_rows: np.ndarray, update: str) -> Loads:
    """Loads from the sizes of parts [P] and the rows [P, P] between them; update: "owners" or "copies"."""
    # Sent and received: both take time on a rank.
    rows = pair_rows.sum(axis=0) + pair_rows.sum(axis=1)
    return Loads(*(np.asarray(load) for load in (arcs, owned if update == "owners" else local_rows, rows)))


def predict_epoch(manifest: dict[str, Any], prices: EpochPrices) -> dict[str, Any]:
    """`EpochPrices.predict` of what `partition.json` says of the parts."""
    arcs, owned, rows = (np.array([part[name] for part in manifest["parts"]]) for name in ("arcs", "owned", "rows"))
    loads = loads_of(arcs, owned, rows, np.array(manifest["pair_rows"]), manifest.get("update", "owners"))
    return prices.predict(loads, part_shares(manifest["num_parts"], manifest.get("capacities")))


def epoch_line(predicted: dict[str, Any]) -> str:
    """One line about `predicted_epoch` of a partition."""
    spent = ", ".join(
        f"{name} {human_seconds(predicted[key + '_seconds'])}"
        for name, key in (("aggregation", "aggregate"), ("dense", "dense"), ("exchange", "exchange"))
    )
    worst, mean = human_seconds(predicted["seconds"]), human_seconds(predicted["mean_seconds"])
    return f"{worst} on rank {predicted['rank']} (mean {mean}): {spent}"


def read_prices(path: str | Path) -> EpochPrices:
    """Prices from a file of `distgnn calibrate --prices`.

    Raises: InputError that names the file and what is wrong with it.
    """
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
