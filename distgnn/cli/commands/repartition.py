"""`distgnn repartition`: another number of parts, from an old partition folder alone."""

import json

import typer

from distgnn.cli.display import phases, print_table


def register(app: typer.Typer) -> None:
    app.command()(repartition)


def repartition(
    old: str = typer.Argument(metavar="PARTS", help="Partition folder; it stays as it is."),
    parts: int = typer.Option(..., help="Parts of the new cut, one per rank."),
    out: str = typer.Option(..., help="Partition folder to write."),
    method: str | None = typer.Option(None, help="cmr, libra, hdrf, metis, dbh or random [default: as the old cut]."),
    refine: bool = typer.Option(
        False, help="Move edges and borders afterwards while that saves copies (cmr always does)."
    ),
    seed: int | None = typer.Option(None, help="Of the shuffled stream [default: as the old cut]."),
    order: str | None = typer.Option(None, help="shuffled or stored [default: as the old cut]."),
    capacities: str | None = typer.Option(None, help="Relative speeds of the ranks, such as 2,1,1 [default: equal]."),
    threads: int | None = typer.Option(None, help="Threads [default: all cores]."),
    overwrite: bool = typer.Option(False, help="Replace an existing partition folder."),
    quiet: bool = typer.Option(False, help="No progress and no table."),
    as_json: bool = typer.Option(False, "--json", help="Print partition.json instead of a table."),
) -> None:
    """Cut the graph of a partition folder anew; the files are those that `partition` makes from the source."""
    from distgnn import kernels
    from distgnn.cli.commands.partition import rows_of_table
    from distgnn.config import num_threads
    from distgnn.partition.repartition import repartition as cut_anew

    kernels.set_num_threads(threads or num_threads())
    speak = not quiet and not as_json
    with phases(speak) as advance:
        manifest = cut_anew(
            old,
            parts,
            out,
            method,
            seed,
            order,
            refine=refine,
            capacities=None if capacities is None else capacities.split(","),
            overwrite=overwrite,
            progress=advance,
        )
    if as_json:
        print(json.dumps({name: value for name, value in manifest.items() if name != "parts"}, indent=1))
    elif speak:
        print_table("Partitioned", rows_of_table(manifest, out))
