"""`distgnn report`: runs, benchmarks and partitions as one HTML page."""

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command()(report)


def report(
    inputs: Annotated[list[str], typer.Argument(help="Run folders, bench.json files, partition folders, in any mix.")],
    out: str = typer.Option("report.html", help="File to write."),
    overwrite: bool = typer.Option(False, help="Replace an existing file."),
    quiet: bool = typer.Option(False, help="Print nothing."),
) -> None:
    """Write one HTML page about runs, benchmarks and partitions; it needs no network, and prints well."""
    from distgnn.errors import InputError
    from distgnn.report import make_page, read_inputs
    from distgnn.system.atomic import replace_file
    from distgnn.system.output import plain

    check_place(out)
    found = read_inputs(inputs)
    if Path(out).exists() and not overwrite:
        raise InputError(f"{out} exists: choose another --out, or add --overwrite to replace it")
    page = make_page(found)
    try:
        replace_file(Path(out), page.encode())
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error
    if not quiet:
        print(f"report: {plain(out)}")


def check_place(out: str) -> None:
    """Raise InputError where no page can be written to `out`."""
    from distgnn.errors import InputError

    target = Path(out)
    if target.is_dir():
        raise InputError(f"cannot write {out}: it is a folder")
    if not target.absolute().parent.is_dir():
        raise InputError(f"cannot write {out}: its folder does not exist")
