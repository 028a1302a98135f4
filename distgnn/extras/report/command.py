"""`distgnn report`: runs, benchmarks and partitions as a page."""

from pathlib import Path
from typing import Annotated, Any

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

    check_place(out, end=".html")
    found = read_inputs(inputs)
    if Path(out).exists() and not overwrite:
        raise InputError(f"{out} exists: choose another --out, or add --overwrite to replace it")
    write_text(out, make_page(found))
    if not quiet:
        print(f"report: {plain(out)}")


def make_page(inputs: dict[str, list[Any]]) -> str:
    """The page in the template page.html. Args: inputs: as of `read_inputs`."""
    import jinja2

    import distgnn
    from distgnn.extras.report import others, page, runs

    makers = {"benchmark": others.bench_section, "partition": others.partition_section}
    makers["output"] = others.output_section
    sections = [runs.runs_section(inputs["run"])] if inputs["run"] else []
    sections += [make(one) for kind, make in makers.items() for one in inputs[kind]]
    counts = (f"{len(found)} {kind}{'s' * (len(found) != 1)}" for kind, found in inputs.items() if found)
    title = ", ".join(one.name for found in inputs.values() for one in found)
    surroundings = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    surroundings.filters["plain"] = page.plain
    template = surroundings.from_string(Path(__file__).with_name("page.html").read_text(encoding="utf-8"))
    words = {"title": title, "counts": ", ".join(counts), "version": distgnn.__version__}
    return template.render(sections=sections, **words) + "\n"
