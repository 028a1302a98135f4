"""`distgnn report`: runs, benchmarks and partitions as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer


def report(
    inputs: Annotated[list[str], typer.Argument(help="Run folders, bench.json files, partition folders, in any mix.")],
    out: str = typer.Option("report.html", help="File to write."),
    overwrite: bool = typer.Option(False, help="Replace an existing file."),
    quiet: bool = typer.Option(False, help="Print nothing."),
) -> None:
    """Write one HTML page about runs, benchmarks and partitions; it needs no network, and prints well."""
    from distgnn.cli.output_files import check_place, write_text
    from distgnn.errors import InputError
    from distgnn.report import make_page, read_inputs
    from distgnn.system.output import plain

    check_place(out)
    found = read_inputs(inputs)
    if Path(out).exists() and not overwrite:
        raise InputError(f"{out} exists: choose another --out, or add --overwrite to replace it")
    page = make_page(found)
    write_text(out, page)
    if not quiet:
        print(f"report: {plain(out)}")
