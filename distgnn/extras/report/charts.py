"""Drawings of the page: lines, bars and matrices as SVG, whose colours are the page's variables."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from distgnn.extras.report.html import plain
from distgnn.system.plots import (
    LIGHT,
    PHASES,
    Axis,
    Phases,
    Series,
    label_axis,
    name_bars,
    plot_lines,
    plot_stacked,
    stack,
    styled,
    title,
)

MOST_CELLS = 32  # of a matrix, in each direction; beyond it neighbouring ranks are added up
MOST_COLUMNS = 60
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 460, 62, 14, 14, 44  # pixels of a drawing and around its axes
STEP, LEGEND = 30, 18  # pixels from bar to bar, and from line to line of a legend
VARIABLES = {colour: f"var(--{name})" for name, colour in reversed(LIGHT.items())}


@styled()
def lines(series: Sequence[Series], x: Axis, y: Axis, limit: float = 0.0) -> str:
    """`plot_lines` with its legend below; nothing where no line has a point."""
    if not any(one.points for one in series):
        return ""
    axes = _axes(WIDTH, 270)
    plot_lines(axes, series, x, y, limit)
    names = axes.get_legend_handles_labels()[1]
    return _svg(axes, f"{y.label} over {x.label}", legend=len(names) > 1)


@styled()
def stacked(rows: Sequence[tuple[str, Phases]], axis: Axis, show: Callable[[float], str]) -> str:
    """`plot_stacked` with its legend below; nothing where there is no bar."""
    if not rows:
        return ""
    axes = _axes(760, TOP + STEP * len(rows) + BOTTOM, left=190, right=76)
    titles = plot_stacked(axes, rows, axis, show)
    return _svg(axes, axis.label, titles, legend=True)


@styled()
def bars(rows: Sequence[tuple[str, float]], axis: Axis, show: Callable[[float], str]) -> str:
    """Horizontal bars, one per name, with their values; nothing where there is no bar."""
    if not rows:
        return ""
    axes = _axes(WIDTH, TOP + STEP * len(rows) + BOTTOM, left=178, right=76)
    names, values = zip(*rows, strict=True)
    axes.barh(range(len(rows)), values, height=0.66, color=PHASES["aggregate"][0])
    name_bars(axes, names, values, axis, show)
    return _svg(axes, axis.label)


@styled()
def columns(epochs: Sequence[tuple[int, Phases]], axis: Axis) -> str:
    """Columns over epochs, stacked by phase, at most MOST_COLUMNS: beyond it each is the mean of neighbouring epochs.

    The first epoch compiles: a column far above the others ends at the top with a mark; its value is in its title.
    """
    if not epochs:
        return ""
    axes = _axes(WIDTH, 240)
    size = -(-max(len(epochs) - 1, 1) // (MOST_COLUMNS - 1))
    chunks = [epochs[:1], *(epochs[start : start + size] for start in range(1, len(epochs), size))]  # the first alone
    groups = []
    for chunk in chunks:
        first, last = chunk[0][0], chunk[-1][0]
        means = {name: sum(one[name] for _, one in chunk) / len(chunk) for name in chunk[0][1]}
        groups.append((f"epoch {first}" if first == last else f"epochs {first} to {last}", means))
    ends, titles = stack(partial(axes.bar, width=0.88), "bottom", groups, "{:.3g} s".format)
    usual = sorted(ends)[len(ends) * 9 // 10 - (len(ends) > 1)]
    top = 1.04 * min(max(ends), 1.6 * usual) or 1.0
    axes.set_ylim(0, top)
    for place, end in enumerate(ends):
        if end > top:
            axes.text(place, top, "↑", ha="center", va="bottom")
    label_axis(axes.yaxis, axis)
    label_axis(axes.xaxis, Axis("epoch", whole=True))
    axes.xaxis.set_major_formatter(lambda at, _: str(chunks[int(at)][0][0]) if 0 <= at < len(chunks) else "")
    return _svg(axes, axis.label, titles, legend=True)


@styled()
def matrix(values: Sequence[Sequence[int]], unit: str = "rows") -> str:
    """A square of what each rank sends to each, darker where it is more; numbers of `unit` where there is room."""
    from matplotlib.patches import Rectangle

    count = len(values)
    size = -(-count // MOST_CELLS)
    ranks = [(first, min(first + size, count) - 1) for first in range(0, count, size)]
    cells = [
        [sum(sum(values[i][b : e + 1]) for i in range(a, c + 1)) for b, e in ranks] for a, c in ranks
    ]  # the sum over neighbouring ranks where there are many
    spans = [str(first) if first == last else f"{first} to {last}" for first, last in ranks]
    most = max((cell for line in cells for cell in line), default=0) or 1
    side = max(12, min(56, 380 // len(ranks)))
    axes = _axes(LEFT + side * len(ranks) + RIGHT, TOP + side * len(ranks) + BOTTOM)
    titles: list[str] = []
    for y, line in enumerate(cells):
        for x, cell in enumerate(line):
            box = Rectangle((x - 0.48, y - 0.48), 0.96, 0.96, color=LIGHT["cell"], alpha=0.04 + 0.86 * cell / most)
            box.set(linewidth=0)
            title(box, titles, f"from {spans[y]} to {spans[x]}: {cell:,} {unit}")
            axes.add_patch(box)
            if side >= 34:
                short = (
                    f"{cell / 1e6:.3g}M" if cell >= 1e6 else f"{cell / 1e3:.0f}k" if cell >= 100_000 else f"{cell:,}"
                )
                axes.text(x, y, short, ha="center", va="center", color=LIGHT["on" if cell > most / 2 else "ink"])
    axes.set(xlim=(-0.5, len(ranks) - 0.5), ylim=(len(ranks) - 0.5, -0.5))
    for axis, name in ((axes.xaxis, "to"), (axes.yaxis, "from")):
        label_axis(axis, Axis(f"{name} rank", whole=True))
        axis.set_major_formatter(lambda at, _: str(ranks[int(at)][0]) if 0 <= at < len(ranks) else "")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    return _svg(axes, f"{unit} per pair of ranks", titles)


def _axes(width: float, height: float, left: float = LEFT, right: float = RIGHT) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / 72, height / 72))
    inside = left / width, BOTTOM / height, (width - left - right) / width, (height - BOTTOM - TOP) / height
    axes = figure.add_axes(inside)
    figure.patch.set_visible(False)
    axes.patch.set_visible(False)
    return axes


def _svg(axes: Any, label: str, titles: Sequence[str] = (), legend: bool = False) -> str:
    """The figure as an element of the page: its colours are the page's, and a title is shown over each named piece."""
    from matplotlib.transforms import Bbox

    figure, under = axes.figure, 0
    if legend:
        names = axes.get_legend_handles_labels()[1]
        across = max(1, int((72 * figure.get_figwidth() - 10) / (5.9 * max(map(len, names)) + 48)))
        under = -(-len(names) // across) * LEGEND
        place = {"loc": "upper left", "borderaxespad": 0, "bbox_to_anchor": (0, 0), "ncols": across}
        axes.legend(**place, bbox_transform=figure.transFigure)
    # As wide as it was made, so that letters have one size on the page; the legend hangs below.
    box = Bbox([[0, -under / 72], figure.get_size_inches()])
    written = io.StringIO()
    nameless = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(written, format="svg", bbox_inches=box, metadata=nameless)
    inside = written.getvalue()
    inside = inside[inside.index("<svg") :]
    _, _, wide, high = re.search(r'viewBox="([^"]+)"', inside)[1].split()  # type: ignore[index]
    inside = re.sub(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", "", inside, flags=re.DOTALL)
    inside = re.sub(r'<g id="title-(\d+)">', lambda found: f"<g><title>{plain(titles[int(found[1])])}</title>", inside)
    inside = re.sub(r'<g id="[^"]*"', "<g", inside).replace("xlink:href", "href")
    inside = re.sub(r"font: ([\d.]+px) [^;\"]+", r"font-size: \1", inside)
    inside = re.sub(r"#[0-9a-f]{6}\b", lambda found: VARIABLES.get(found[0], found[0]), inside)
    inside = inside[inside.index(">") + 1 :]
    size = f'viewBox="0 0 {wide} {high}" style="max-width:{1.1 * float(wide):.0f}px"'
    return f'<svg {size} role="img" aria-label="{plain(label)}">{inside}'.strip()
