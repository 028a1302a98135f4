"""The page, of sections of items: tables, lines of notice and figures; page.html says how each looks.

Drawings of the page: lines, stacked bars and matrices on matplotlib's axes, as SVG.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from distgnn.bench.figures import number
from distgnn.extras.report.read import is_square, is_table
from distgnn.system import output
from distgnn.system.plots import Axis, Phases, Series, label_axis, plot_lines, plot_stacked, styled
from distgnn.system.units import human_bytes, human_seconds

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


Cells = Sequence[Any]
SHOW: dict[str, Callable[[float], str]] = {"seconds": human_seconds, "bytes": human_bytes}
LONGEST = 160  # letters that are shown of a name
DEEPEST = 8  # objects inside objects


@dataclass
class Item:
    """Rows of cells and figures (title, drawing as SVG, sentence) below a title.

    Args: head: names of columns; kind: of rows, "facts", "differences", "words" or "notice"; folded: it opens on a
        click.
    """

    title: str
    rows: Sequence[Cells] = ()
    head: Cells = ()
    sentence: str = ""
    kind: str = ""
    folded: bool = False
    figures: list[tuple[str, str, str]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.rows or self.figures or self.sentence)


@dataclass
class Section:
    title: str
    sentence: str
    items: list[Item]


def facts(title: str, rows: Iterable[tuple[str, str | None]], folded: bool = False) -> Item:
    """Names and values, one pair a line; a value of None is left out."""
    return Item(title, [row for row in rows if row[1] is not None], kind="facts", folded=folded)


def figures(title: str, *each: tuple[str, str, str]) -> Item:
    """Figures side by side, without those that have no drawing."""
    return Item(title, figures=[one for one in each if one[1]])


def plain(value: object, longest: int = LONGEST) -> str:
    """Any value as text of one line, with what is invisible or no letter as \\x00, cut where it is long."""
    text = "–" if value is None else str(value)
    return output.plain(text if len(text) <= longest else text[: longest - 1] + "…")


def flat(values: Any, show: Callable[[str, Any], str] = lambda _, value: str(value), name: str = "") -> dict[str, str]:
    """What is single in nested objects, as {"run.wire": "int8"}."""
    if not isinstance(values, dict) or name.count(".") >= DEEPEST:
        return {name: show(name, values)}
    found: dict[str, str] = {}
    for key, value in values.items():
        if not (is_table(value) or is_square(value)):
            found |= flat(value, show, f"{name}.{key}" if name else str(key))
    return found


def human(name: str, value: Any) -> str:
    """A value with the unit that its name says."""
    if isinstance(value, list):
        return ", ".join(human(name, one) for one in value)
    found = number(value)
    if found is None:
        return {"True": "yes", "False": "no", "None": "–"}.get(str(value), str(value))
    for unit, show in SHOW.items():
        if unit in re.split(r"[._ ]", name.replace("memory", "bytes")) and found >= 0:
            return show(found)
    return f"{value:,}" if isinstance(value, int) else f"{found:.4g}"
