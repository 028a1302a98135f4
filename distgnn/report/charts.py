"""Every drawing, with matplotlib: lines, stacked bars and matrices, as SVG inside the page or on axes of a figure.

Everything can be told apart without colour: lines by dashes and markers (each thinner than the one before it, which it
may cover), phases by lightness and stripes. Colours are those of the light page in style.py; inside the page they
become its variables, so that dark, light and print have their own. pyplot, which keeps figures, is not used.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any

from distgnn.report.html import plain
from distgnn.report.style import LIGHT
from distgnn.system import output

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
MOST_CELLS = 32  # of a matrix, in each direction; beyond it neighbouring ranks are added up
MOST_COLUMNS = 60
WIDTH, LEFT, RIGHT, TOP, BOTTOM = 460, 62, 14, 14, 44  # pixels of a drawing and around its axes
STEP, LEGEND = 30, 18  # pixels from bar to bar, and from line to line of a legend
VARIABLES = {colour: f"var(--{name})" for name, colour in reversed(LIGHT.items())}
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
    """A line: its name, its points by ascending x, and where it has one, a band of (x, lowest, highest)."""

    name: str
    points: list[tuple[float, float]]
    band: list[tuple[float, float, float]] = field(default_factory=list)


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


def plot_lines(axes: Any, series: Sequence[Series], x: Axis, y: Axis, limit: float = 0.0) -> None:
    """The lines that have points, each with its marks at other places where lines coincide, and their bands.

    Args:
        limit: a value that the y axis shows in any case, drawn as a thin line (0: none).
    """
    shown = [one for one in series if one.points]
    for place, (one, style) in enumerate(zip(shown, line_styles(), strict=False)):
        every = max(-(-len(one.points) // MARKED), min(len(shown), 3, len(one.points)))
        marks = (place * every // len(shown) % every, every)
        axes.plot(*zip(*one.points, strict=True), label=_short(one.name, 54), markevery=marks, **style)
        if len(one.band) > 1:
            axes.fill_between(*zip(*one.band, strict=True), color=style["color"], alpha=0.13, linewidth=0)
    if limit:
        axes.axhline(limit, color=LIGHT["ink"], linewidth=1, linestyle=(0, (2, 2)))
    if x.from_zero:
        axes.set_xlim(left=0)
    if y.from_zero:
        axes.set_ylim(bottom=0)
    label_axis(axes.xaxis, x)
    label_axis(axes.yaxis, y)


def plot_stacked(axes: Any, rows: Sequence[tuple[str, Phases]], axis: Axis, show: Callable[[float], str]) -> list[str]:
    """Horizontal bars, one per name, stacked by phase; the sum stands at the end of each. Returns titles of blocks."""
    ends, titles = stack(partial(axes.barh, height=0.66), "left", rows, show)
    _name_bars(axes, [name for name, _ in rows], ends, axis, show)
    return titles


def stack(
    draw: Callable[..., Any], base: str, rows: Sequence[tuple[str, Phases]], show: Callable[[float], str]
) -> tuple[list[float], list[str]]:
    """Bars stacked by phase, by `bar` or `barh` of axes; returns where each ends, and titles of blocks.

    Args: base: what `draw` calls the place where a block begins.
    """
    ends, titles = [0.0] * len(rows), list[str]()
    for phase in dict.fromkeys(phase for _, phases in rows for phase in phases):
        values = [phases.get(phase, 0.0) for _, phases in rows]
        colour, hatch = PHASES[phase]
        style = {"color": colour, "hatch": hatch, "edgecolor": LIGHT["panel"], "linewidth": 0.8}
        blocks = draw(range(len(rows)), values, **{base: ends}, label=phase, **style)
        for (name, _), value, block in zip(rows, values, blocks, strict=True):
            _title(block, titles, f"{name}, {phase}: {show(value)}")
        ends = [end + value for end, value in zip(ends, values, strict=True)]
    return ends, titles


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
    _name_bars(axes, names, values, axis, show)
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
            _title(box, titles, f"from {spans[y]} to {spans[x]}: {cell:,} {unit}")
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


def _title(piece: Any, titles: list[str], text: str) -> None:
    piece.set_gid(f"title-{len(titles)}")
    titles.append(text)


def _name_bars(
    axes: Any, names: Sequence[str], ends: Sequence[float], axis: Axis, show: Callable[[float], str]
) -> None:
    axes.set_yticks(range(len(names)), [_short(name) for name in names])
    axes.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, max(ends) or 1.0))
    for place, end in enumerate(ends):
        axes.annotate(show(end), (end, place), (6, 0), textcoords="offset points", va="center")
    label_axis(axes.xaxis, axis)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="x")
    axes.spines["left"].set_visible(False)


def _short(name: str, most: int = 28) -> str:
    """A name as a figure shows it: invisible letters as \\x00, cut where it is long."""
    name = output.plain(name)
    if name.startswith("_"):  # matplotlib has no line of the legend for such a name
        name = f" {name}"
    return name if len(name) <= most else f"{name[: most - 9]}…{name[-8:]}"
