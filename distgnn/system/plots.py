"""Lines and stacked bars on matplotlib's axes, in one style for all figures.

Everything can be told apart without colour: lines by dashes and markers (each thinner than the one before it, which it
may cover), phases by lightness and stripes. pyplot, which keeps figures, is not used.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from distgnn.system import output

LIGHT = {
    "ink": "#1a2129", "soft": "#55606c", "rule": "#d8dee5", "panel": "#f5f7f9", "accent": "#0b62a8",
    "warn": "#8a4b00", "warnbg": "#fff4e0", "c0": "#0b62a8", "c1": "#c2410c", "c2": "#15803d", "c3": "#7e22ce",
    "c4": "#b91c5c", "c5": "#0e7490", "c6": "#854d0e", "c7": "#475569", "p0": "#1f5a96", "p1": "#cfd6de",
    "p2": "#b0841c", "p3": "#6d3176", "p4": "#f2a79f", "stripe": "#a33327", "cell": "#0b4a80", "on": "#ffffff",
}  # fmt: skip
Units = tuple[tuple[float, str], ...]
SECONDS: Units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
BYTES: Units = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
SHARES: Units = ((0.01, "%"),)
PLAIN: Units = ((1.0, ""),)

REST = "dense, packing and all else"  # where only some phases were recorded: the place of "dense"
PHASES = {  # name -> (colour, hatching)
    "aggregate": (LIGHT["p0"], ""),
    "dense": (LIGHT["p1"], ""),
    REST: (LIGHT["p1"], ""),
    "pack": (LIGHT["p2"], ""),
    "all-reduce": (LIGHT["p3"], ""),
    "wait": (LIGHT["p4"], "////"),
}
COLOURS = [LIGHT[f"c{place}"] for place in range(8)]
DASHES: tuple[Any, ...] = ("-", (0, (6, 3)), (0, (2, 2)), "-.", (0, (5, 1, 1, 1, 1, 1)), (0, (10, 3)), (0, (1, 2)))
MARKERS = "os^Dv*PX"
MARKED = 9  # points of a long line that have a marker, at other epochs for each line
STYLE: Any = {  # matplotlib has a type of its own for these names
    "svg.fonttype": "none",
    "svg.hashsalt": "distgnn",  # the same figure has the same names of pieces
    "text.parse_math": False,  # a name with a $ is a name
    "font.size": 11.5,
    "text.color": LIGHT["ink"],
    "axes.labelcolor": LIGHT["ink"],
    "axes.edgecolor": LIGHT["soft"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.xmargin": 0.02,
    "grid.color": LIGHT["rule"],
    "xtick.color": LIGHT["soft"],
    "ytick.color": LIGHT["soft"],
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "hatch.color": LIGHT["stripe"],
    "legend.frameon": False,
    "legend.handlelength": 3,
    "legend.columnspacing": 1.4,
    "legend.labelspacing": 0.4,
}
Phases = dict[str, float]


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
class Series:
    """A line: its name, and its points by ascending x."""

    name: str
    points: list[tuple[float, float]]


@contextmanager
def styled() -> Iterator[None]:
    """What is drawn and saved inside has the style of all figures, whatever the user's own is; also a decorator."""
    import matplotlib.style

    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        # Letters that matplotlib's font lacks are the browser's to draw.
        warnings.filterwarnings("ignore", message="Glyph")
        yield


def line_styles() -> Iterator[dict[str, Any]]:
    """Colour, dash and marker for one line after another, endlessly; no two of the first 56 lines are alike."""
    for place, (colour, marker) in enumerate(cycle(zip(COLOURS, MARKERS, strict=True))):
        width = 2.8 - 0.4 * (place % 5)
        style = {"color": colour, "marker": marker, "linestyle": DASHES[place % len(DASHES)]}
        yield style | {"linewidth": width, "markersize": 1.5 + 1.5 * width}


def plot_lines(axes: Any, series: Sequence[Series], x: Axis, y: Axis) -> None:
    """The lines that have points, each with its marks at other places where lines coincide."""
    shown = [one for one in series if one.points]
    for place, (one, style) in enumerate(zip(shown, line_styles(), strict=False)):
        every = max(-(-len(one.points) // MARKED), min(len(shown), 3, len(one.points)))
        marks = (place * every // len(shown) % every, every)
        axes.plot(*zip(*one.points, strict=True), label=short(one.name, 54), markevery=marks, **style)
    if x.from_zero:
        axes.set_xlim(left=0)
    if y.from_zero:
        axes.set_ylim(bottom=0)
    label_axis(axes.xaxis, x)
    label_axis(axes.yaxis, y)


def plot_stacked(axes: Any, rows: Sequence[tuple[str, Phases]], axis: Axis, show: Callable[[float], str]) -> None:
    """Horizontal bars, one per name, stacked by phase; the sum stands at the end of each."""
    ends = stack(partial(axes.barh, height=0.66), "left", rows)
    name_bars(axes, [name for name, _ in rows], ends, axis, show)


def stack(draw: Callable[..., Any], base: str, rows: Sequence[tuple[str, Phases]]) -> list[float]:
    """Bars stacked by phase, by `bar` or `barh` of axes; returns where each ends.

    Args: base: what `draw` calls the place where a block begins.
    """
    ends = [0.0] * len(rows)
    for phase in dict.fromkeys(phase for _, phases in rows for phase in phases):
        values = [phases.get(phase, 0.0) for _, phases in rows]
        colour, hatch = PHASES[phase]
        style = {"color": colour, "hatch": hatch, "edgecolor": LIGHT["panel"], "linewidth": 0.8}
        draw(range(len(rows)), values, **{base: ends}, label=phase, **style)
        ends = [end + value for end, value in zip(ends, values, strict=True)]
    return ends


def label_axis(axis: Any, about: Axis) -> None:
    """Round ticks in one unit, in which the largest value is at least one; the axis's name with its unit."""
    from matplotlib.ticker import MaxNLocator

    largest = max(map(abs, axis.get_view_interval()))
    factor, unit = next((unit for unit in about.units if largest >= unit[0]), about.units[-1])
    axis.set_major_locator(MaxNLocator(nbins=6, integer=about.whole, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(lambda value, _: f"{value / factor + 0.0:.4g}")
    axis.set_label_text(f"{about.label} ({unit})" if unit else about.label)


def save(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG; returns the files."""
    paths = [folder / f"{name}.{kind}" for kind in ("png", "svg")]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths


def legend_beside(figure: Any, axes: Any) -> None:
    """One legend for all axes of a figure, outside of what is plotted."""
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize="small")


def name_bars(axes: Any, names: Sequence[str], ends: Sequence[float], axis: Axis, show: Callable[[float], str]) -> None:
    axes.set_yticks(range(len(names)), [short(name) for name in names])
    axes.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, max(ends) or 1.0))
    for place, end in enumerate(ends):
        axes.annotate(show(end), (end, place), (6, 0), textcoords="offset points", va="center")
    label_axis(axes.xaxis, axis)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)


def short(name: str, most: int = 28) -> str:
    """A name as a figure shows it: invisible letters as \\x00, cut where it is long."""
    name = output.plain(name)
    if name.startswith("_"):  # matplotlib has no line of the legend for such a name
        name = f" {name}"
    return name if len(name) <= most else f"{name[: most - 9]}…{name[-8:]}"
