"""`distgnn report`: runs, benchmarks and partitions as a page."""

from pathlib import Path
from typing import Annotated

import typer

from distgnn.cli.display import check_place, write_text
from distgnn.cli.options import Silent
from distgnn.errors import InputError
from distgnn.system.output import plain


def report(
    inputs: Annotated[
        list[str], typer.Argument(help="Run folders, partition folders and JSON that commands wrote, in any mix.")
    ],
    out: str = typer.Option("report.html", help="File to write."),
    overwrite: bool = typer.Option(False, help="Replace an existing file."),
    quiet: Silent = False,
) -> None:
    """Write one HTML page about runs, benchmarks and partitions; it needs no network, and prints well."""
    from distgnn.extras.report.read import read_inputs
    from distgnn.extras.report.sections import make_page

    check_place(out, end=".html")
    found = read_inputs(inputs)
    if Path(out).exists() and not overwrite:
        raise InputError(f"{out} exists: choose another --out, or add --overwrite to replace it")
    page = make_page(found)
    write_text(out, page)
    if not quiet:
        print(f"report: {plain(out)}")
