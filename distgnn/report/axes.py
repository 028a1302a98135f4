"""Axes of the figures: round ticks, one unit for an axis, whole numbers for ranks and epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass

SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
COUNTS = ((1e9, "billions"), (1e6, "millions"), (1e3, "thousands"), (1.0, ""))
SHARES = ((0.01, "%"),)
PLAIN = ((1.0, ""),)
Units = tuple[tuple[float, str], ...]


@dataclass(frozen=True)
class Axis:
    """One axis: its name, its kind of unit, and what its ticks may be.

    Args:
        whole: ticks are whole numbers only (ranks, epochs).
        from_zero: the axis begins at zero.
    """

    label: str
    units: Units = PLAIN
    whole: bool = False
    from_zero: bool = False


@dataclass(frozen=True)
class Scale:
    """An axis laid over numbers from `low` to `high`, in pixels from `first` to `last`."""

    low: float
    high: float
    first: float
    last: float

    def at(self, value: float) -> float:
        """The pixel of a value."""
        return self.first + (value - self.low) / (self.high - self.low) * (self.last - self.first)


def limits(axis: Axis, values: list[float]) -> tuple[float, float]:
    """The lowest and highest value of an axis, never the same."""
    low, high = min(values), max(values)
    if axis.from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if not high - low > 1e-12 * max(abs(low), abs(high)):
        pad = abs(low) * 0.05 or 1.0
        low, high = (low if axis.whole or axis.from_zero else low - pad), high + pad
    return low, high


def unit_of(axis: Axis, low: float, high: float) -> tuple[float, str]:
    """The unit in which the largest value of the axis is at least one."""
    largest = max(abs(low), abs(high))
    return next((unit for unit in axis.units if largest >= unit[0]), axis.units[-1])


def name_of(axis: Axis, unit: str) -> str:
    """The axis's name with its unit."""
    return f"{axis.label} ({unit})" if unit else axis.label


def ticks(low: float, high: float, most: int, whole: bool = False) -> list[float]:
    """At most about `most` round values (1, 2 or 5 times a power of ten apart) between two values."""
    rough = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= rough * 0.999)
    if whole:
        step = max(1.0, round(step))
    start = math.ceil(low / step - 1e-9)
    return [(start + i) * step for i in range(int((high - start * step) / step + 1e-9) + 1)]


def tick_text(value: float) -> str:
    """A tick's number, short: 0, 0.25, 1500, 2e+07."""
    return f"{value + 0.0:.4g}" if abs(value) < 1e5 and value != round(value) else f"{round(value):d}"[:12]
