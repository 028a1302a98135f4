"""Pieces of the page: escaped text, tables, figures with their sentence, sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape

from distgnn.system import output

LONGEST, LONGEST_FACT = 160, 2000  # letters that are shown of a name, and of a value with a line of its own
NOTHING = "–"


def plain(value: object, longest: int = LONGEST) -> str:
    """Any value as text that a browser shows as it is: escaped, and what is invisible or no letter as \\x00."""
    found = str(value)
    found = found if len(found) <= longest else found[: longest - 1] + "…"
    return escape(output.plain(found))


def shown(value: float | None, how: Callable[[float], str]) -> str | None:
    return None if value is None else how(value)


def table(head: Sequence[str], rows: Iterable[Sequence[str | None]], kind: str = "") -> str:
    """A table with names in the first column; cells are plain text, None is a dash.

    Args:
        kind: "differences" or "words": how it is shown (style.py).
    """
    first, *others = head
    columns = f"<th>{plain(first)}</th>" + "".join(f'<th class="n">{plain(name)}</th>' for name in others)
    body = ""
    for name, *cells in rows:
        values = "".join(f'<td class="n">{NOTHING if cell is None else plain(cell)}</td>' for cell in cells)
        body += f'<tr><th scope="row">{plain(name)}</th>{values}</tr>'
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{columns}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def facts(rows: Iterable[tuple[str, str | None]]) -> str:
    """Names and values, one pair a line; a value of None is left out."""
    lines = "".join(
        f"<dt>{plain(name)}</dt><dd>{plain(value, LONGEST_FACT)}</dd>" for name, value in rows if value is not None
    )
    return f'<dl class="facts">{lines}</dl>'


def figure(title: str, drawing: str, sentence: str) -> str:
    """A drawing with its title and one sentence that explains it; nothing where there is no drawing."""
    if not drawing:
        return ""
    return f"<figure><h4>{plain(title)}</h4>{drawing}<figcaption>{escape(sentence)}</figcaption></figure>"


def side_by_side(*figures: str) -> str:
    """Figures in a row where the window is wide enough."""
    shown = [one for one in figures if one]
    return f'<div class="row">{"".join(shown)}</div>' if shown else ""


def section(anchor: str, title: str, sentence: str, *content: str) -> str:
    """A section of the page with a heading and a sentence; nothing where it has no content."""
    inside = "".join(content)
    if not inside:
        return ""
    return f'<section id="{anchor}"><h2>{plain(title)}</h2><p>{escape(sentence)}</p>{inside}</section>'


def part(title: str, *content: str) -> str:
    """A titled piece of a section; nothing where it has no content."""
    inside = "".join(content)
    return f"<h3>{plain(title)}</h3>{inside}" if inside else ""


def folded(title: str, content: str) -> str:
    """Content that opens on a click, and is always open in print."""
    return f"<details><summary>{plain(title)}</summary>{content}</details>"
