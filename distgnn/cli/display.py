"""What commands give: tables on standard output, and files, refused before any work where they cannot be written."""

import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from distgnn.errors import InputError
from distgnn.system.atomic import check_name, replace_file
from distgnn.system.output import plain

GAP = 2  # between columns


def as_text(words: str) -> Text:
    """Text as it is: names of graphs and folders are neither rich's markup nor terminal control."""
    return Text(plain(words))


def print_table(title: str, rows: list[tuple[str, str]]) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), title=as_text(title), title_justify="left")
    table.title_style = "italic"
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(as_text(name), as_text(value))
    Console(width=None if sys.stdout.isatty() else 120).print(table, highlight=False)


def print_columns(title: str, columns: list[str], rows: list[list[str]], words: bool = False, keys: int = 1) -> None:
    """A table with a head, numbers to the right; of words the last column is folded.

    Args: keys: of columns that name a row: they begin each table where one would be too wide.

    Notes: the title stands by itself: rich folds it to the table's width.
    """
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(as_text(title), style="italic")
    widths = [max(map(len, column)) + GAP for column in zip(columns, *rows, strict=True)]
    for shown in [range(len(columns))] if words else _tables(widths, keys, console.width):
        table = Table(box=None, padding=(0, GAP, 0, 0))
        for place in shown:
            folded = words and place == len(columns) - 1
            table.add_column(as_text(columns[place]), justify="left" if words else "right", no_wrap=not folded)
        for row in rows:
            table.add_row(*(as_text(row[place]) for place in shown))
        console.print(table, highlight=False)


def _tables(widths: list[int], keys: int, room: int) -> list[list[int]]:
    """The columns of each table that has room."""
    found = [[*range(keys)]]
    for place in range(keys, len(widths)):
        if sum(widths[one] for one in [*found[-1], place]) > room and len(found[-1]) > keys:
            found.append([*range(keys)])
        found[-1].append(place)
    return found


def feats_of(graph: dict[str, Any]) -> str:
    """The width of features, by the `graph` section of a manifest; of each type where these have different ones."""
    widths = {kind: columns["feats"][1] for kind, columns in graph.get("typed", {}).items() if "feats" in columns}
    same = not widths or graph["num_feats"]
    return str(graph["num_feats"]) if same else " / ".join(f"{kind} {width}" for kind, width in widths.items())


def check_place(out: str | None, what: str = "", end: str = ".json") -> None:
    """Raise InputError where no file can be written to `out` (None: none is).

    Args: what: its name in the message; end: of the names of such files: those of other kinds are refused.
    """
    if out is None:
        return
    said = f"cannot write {what} {out}" if what else f"cannot write {out}"
    check_name(out, end)
    if Path(out).is_dir():
        raise InputError(f"{said}: it is a folder")
    if not Path(out).absolute().parent.is_dir():
        raise InputError(f"{said}: its folder does not exist")


def write_text(out: str, text: str) -> None:
    try:
        replace_file(Path(out), text.encode())
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error


def write_json(out: str, found: Any) -> None:
    write_text(out, json.dumps(found, indent=1) + "\n")
