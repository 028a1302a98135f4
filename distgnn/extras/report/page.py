"""The page, of sections of items: tables, lines of notice and figures; page.html says how each looks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from distgnn.bench.figures import number
from distgnn.extras.report.read import is_square, is_table
from distgnn.system import output
from distgnn.system.units import human_bytes, human_seconds

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
