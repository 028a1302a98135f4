"""Drawings of the page: lines, stacked bars and matrices on matplotlib's axes, as SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any

from distgnn.system.plots import Axis, Phases, Series, label_axis, plot_lines, plot_stacked, styled

WIDTH, STEP = 460, 30  # points: of a drawing, from bar to bar
MOST_NUMBERS = 8  # ranks of a matrix whose cells have numbers
ATTRIBUTES = r' (?:xmlns(?::\w+)?|version|width|height|id)="[^"]*"'


def lines(series: Sequence[Series], x: Axis, y: Axis) -> str:
    """A line for each series that has points; nothing where none has."""
    if not any(one.points for one in series):
        return ""
    return svg(lambda axes: plot_lines(axes, series, x, y))


def stacked(rows: Sequence[tuple[str, Phases]], axis: Axis, show: Callable[[float], str]) -> str:
    """A bar for each name, stacked by phase."""
    return svg(lambda axes: plot_stacked(axes, rows, axis, show), 760, 70 + STEP * len(rows)) if rows else ""


def matrix(values: Sequence[Sequence[int]], unit: str = "rows") -> str:
    """What each rank sends to each, darker where it is more; numbers where there is room."""

    def draw(axes: Any) -> None:
        image = axes.imshow(values, cmap="Blues")
        axes.figure.colorbar(image, ax=axes, label=unit, shrink=0.85)
        most = max(max(row) for row in values)
        for y, row in enumerate(values if len(values) <= MOST_NUMBERS else ()):
            for x, value in enumerate(row):
                colour = "white" if 2 * value > most else "black"
                number = f"{value:,}" if value < 1e6 else f"{value / 1e6:.3g}M"
                axes.text(x, y, number, ha="center", va="center", color=colour, fontsize=9)
        axes.grid(visible=False)
        for axis, name in ((axes.xaxis, "to rank"), (axes.yaxis, "from rank")):
            label_axis(axis, Axis(name, whole=True))

    return svg(draw, height=400)


@styled()
def svg(draw: Callable[[Any], Any], width: float = WIDTH, height: float = 280) -> str:
    """What `draw` puts on axes, with a legend below where it names several things, as an element of the page."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72), layout="constrained")
    axes = figure.subplots()
    draw(axes)
    handles, names = axes.get_legend_handles_labels()
    if len(names) > 1:
        across = max(1, int(width / (6 * max(map(len, names)) + 52)))
        figure.set_figheight(figure.get_figheight() + 0.25 * -(-len(names) // across))
        figure.legend(handles, names, loc="outside lower left", ncols=across, fontsize="small")
    written = io.StringIO()
    nameless = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(written, format="svg", transparent=True, metadata=nameless)
    text = written.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", text[text.index("<svg") :], flags=re.S)
    head, rest = text.split(">", 1)
    rest = re.sub(r'<g id="[^"]*"', "<g", rest).replace("xlink:href", "href")
    return f'{re.sub(ATTRIBUTES, "", head)} style="max-width:{1.1 * width:.0f}px" role="img">{rest.strip()}'
