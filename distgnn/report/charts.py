"""Figures as SVG inside the page: lines over epochs or ranks, stacked bars, a matrix of pairs.

Everything can be told apart without colour: lines by dashes and markers (each thinner than the one before it, which it
may cover), phases by lightness and stripes. Legends stand outside of the plotted area. Colours come from style.py by
class, so that dark, light and print have their own.

Each line carries its plotted rectangle in data attributes, from which tests read the numbers back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from distgnn.report.axes import Axis, Scale, limits, name_of, tick_text, ticks, unit_of
from distgnn.report.html import plain

COLOURS = 8
DASHES = ("", "9 4", "3 3", "12 3 3 3", "5 2 1 2 1 2", "16 5", "1 3")
MOST_POINTS = 600  # of a line; beyond it each bin of epochs keeps its lowest and highest value
MARKERS = 9  # on a long line, at other epochs for each line
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 10, 44


@dataclass(frozen=True)
class Series:
    """A line: its name, its points by ascending x, and where it has one, a band of (x, lowest, highest)."""

    name: str
    points: list[tuple[float, float]]
    band: list[tuple[float, float, float]] = field(default_factory=list)


def lines(series: Sequence[Series], x: Axis, y: Axis, width: int = 460, height: int = 270, limit: float = 0.0) -> str:
    """Lines over one another, with their legend below; nothing where no line has a point.

    Args:
        limit: a value that the y axis shows in any case, drawn as a thin line (0: none).
    """
    shown = [(place, one) for place, one in enumerate(series) if one.points]
    if not shown:
        return ""
    xs = [point[0] for _, one in shown for point in one.points]
    ys = [point[1] for _, one in shown for point in one.points] + [limit] * (limit > 0)
    ys += [edge for _, one in shown for entry in one.band for edge in entry[1:]]
    low, high = limits(y, ys)
    across = Scale(*limits(x, xs), LEFT, width - RIGHT)
    up = Scale(low if y.from_zero else low - 0.04 * (high - low), high + 0.04 * (high - low), height - BOTTOM, TOP)
    reference = f'<path class="limit" d="M{LEFT} {up.at(limit):.1f}H{width - RIGHT}"></path>' if limit else ""
    bands = "".join(_band(place, one, across, up) for place, one in shown)
    drawn = "".join(_line(place, one, across, up, len(shown)) for place, one in shown)
    frame = _frame(across, up, x, y, width, height)
    legend = legend_of([(place, one.name) for place, one in shown])
    return _svg(width, height, f"{y.label} over {x.label}", frame + reference + bands + drawn) + legend


def _svg(width: float, height: float, label: str, inside: str) -> str:
    size = f'viewBox="0 0 {width} {height:.0f}" style="max-width:{1.45 * width:.0f}px"'
    return f'<svg {size} role="img" aria-label="{plain(label)}">{inside}</svg>'


def _frame(across: Scale, up: Scale, x: Axis, y: Axis, width: int, height: int) -> str:
    """Grid, ticks and names of both axes."""
    pieces = []
    factor, unit = unit_of(y, up.low, up.high)
    for value in ticks(up.low / factor, up.high / factor, 6, y.whole):
        at = up.at(value * factor)
        pieces.append(f'<path class="grid" d="M{across.first} {at:.1f}H{across.last}"></path>')
        pieces.append(f'<text x="{LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{tick_text(value)}</text>')
    middle = (up.first + up.last) / 2
    name = plain(name_of(y, unit))
    pieces.append(f'<text class="name" transform="translate(13 {middle:.0f}) rotate(-90)" {CENTRED}>{name}</text>')
    factor, unit = unit_of(x, across.low, across.high)
    for value in ticks(across.low / factor, across.high / factor, 8, x.whole):
        at = across.at(value * factor)
        pieces.append(f'<path class="grid" d="M{at:.1f} {up.first}v4"></path>')
        pieces.append(f'<text x="{at:.1f}" y="{up.first + 17}" {CENTRED}>{tick_text(value)}</text>')
    middle = (across.first + across.last) / 2
    pieces.append(f'<text class="name" x="{middle:.0f}" y="{height - 8}" {CENTRED}>{plain(name_of(x, unit))}</text>')
    pieces.append(f'<path class="axis" d="M{LEFT} {TOP}V{up.first}H{across.last}"></path>')
    return "".join(pieces)


CENTRED = 'text-anchor="middle"'


def _line(place: int, one: Series, across: Scale, up: Scale, count: int) -> str:
    kept = thin(one.points)
    at = [(across.at(x), up.at(y)) for x, y in kept]
    path = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in at)
    box = f'data-x="{across.low!r} {across.high!r}" data-y="{up.low!r} {up.high!r}"'
    frame = f'data-frame="{across.first} {across.last} {up.first} {up.last}"'
    every = max(math.ceil(len(at) / MARKERS), min(count, 3, len(at)))  # lines that coincide have marks in turn
    first = place * every // count % every
    marks = "".join(_marker(place, *point) for point in at[first::every])
    dash = f' stroke-dasharray="{DASHES[place % len(DASHES)]}"' if DASHES[place % len(DASHES)] else ""
    title = f"<title>{plain(one.name)}: {one.points[0][1]:.4g} to {one.points[-1][1]:.4g}</title>"
    line = (
        f'<path class="line w{place % 5}" data-name="{plain(one.name)}" {box} {frame}{dash} d="{path}">{title}</path>'
    )
    return f'<g class="c{place % COLOURS}">{line}{marks}</g>'


def _band(place: int, one: Series, across: Scale, up: Scale) -> str:
    if len(one.band) < 2:
        return ""
    there = "L".join(f"{across.at(x):.2f} {up.at(low):.2f}" for x, low, _ in one.band)
    back = "L".join(f"{across.at(x):.2f} {up.at(high):.2f}" for x, _, high in reversed(one.band))
    return f'<path class="band c{place % COLOURS}" d="M{there}L{back}Z"></path>'


def thin(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST_POINTS points: first, last, and of each bin the lowest and the highest."""
    if len(points) <= MOST_POINTS:
        return points
    size = math.ceil(2 * (len(points) - 2) / (MOST_POINTS - 2))
    kept = [points[0]]
    for start in range(1, len(points) - 1, size):
        chunk = points[start : min(start + size, len(points) - 1)]
        kept += sorted({min(chunk, key=_height), max(chunk, key=_height)})
    return [*kept, points[-1]]


def _height(point: tuple[float, float]) -> float:
    return point[1]


MARKER_SHAPES = (
    "M-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0 -6.8 0Z",  # disc
    "M-3 -3H3V3H-3Z",  # square
    "M0 -4.4L4 3.2H-4Z",  # triangle
    "M0 -4.4L4.4 0L0 4.4L-4.4 0Z",  # diamond
    "M0 4.4L4 -3.2H-4Z",  # triangle downward
    "M-4 -1.2H-1.2V-4H1.2V-1.2H4V1.2H1.2V4H-1.2V1.2H-4Z",  # cross
    "M0 -4.6L1.3 -1.4L4.6 -1.4L2 .8L3 4.2L0 2.2L-3 4.2L-2 .8L-4.6 -1.4L-1.3 -1.4Z",  # star
    "M-4 -4L0 -1.4L4 -4L1.4 0L4 4L0 1.4L-4 4L-1.4 0Z",  # four points
)


def _marker(place: int, x: float, y: float) -> str:
    shape = MARKER_SHAPES[place % len(MARKER_SHAPES)]
    return f'<path class="mark" transform="translate({x:.2f} {y:.2f})" d="{shape}"></path>'


def legend_of(names: list[tuple[int, str]]) -> str:
    """The legend of lines, outside of the plot; none for a single line."""
    if len(names) < 2:
        return ""
    return f'<div class="legend">{"".join(_sample(place, name) for place, name in names)}</div>'


def _sample(place: int, name: str) -> str:
    dash = DASHES[place % len(DASHES)]
    line = f'<path class="line"{f" stroke-dasharray={chr(34)}{dash}{chr(34)}" if dash else ""} d="M1 7H39"></path>'
    drawing = f'<svg class="sample" viewBox="0 0 40 14">{line}{_marker(place, 20, 7)}</svg>'
    return f'<span class="c{place % COLOURS}">{drawing}{plain(name)}</span>'
