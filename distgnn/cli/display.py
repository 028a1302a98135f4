"""Tables on standard output."""

import sys

from rich.console import Console
from rich.table import Table

from distgnn.fitting.progress import as_text


def print_table(title: str, rows: list[tuple[str, str]]) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), title=as_text(title), title_justify="left")
    table.title_style = "italic"
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(as_text(name), as_text(value))
    Console(width=None if sys.stdout.isatty() else 120).print(table, highlight=False)


def print_columns(title: str, columns: list[str], rows: list[list[str]], words: bool = False) -> None:
    """A table with a head, numbers to the right; of words the last column is folded.

    Notes: the title stands by itself: rich folds it to the table's width.
    """
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        folded = words and column == columns[-1]
        table.add_column(as_text(column), justify="left" if words else "right", no_wrap=not folded)
    for row in rows:
        table.add_row(*(as_text(cell) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else 160)
    console.print(as_text(title), style="italic")
    console.print(table, highlight=False)
