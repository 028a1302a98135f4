"""`distgnn repartition`: another number of parts, from an old partition folder alone."""

from typing import Annotated, Any

import typer

from distgnn.cli.commands.partition import show, split_speeds
from distgnn.cli.options import AsJson, Only, Quiet, with_options
from distgnn.config import CutConfig, num_threads
from distgnn.fitting.progress import phases


@with_options
def repartition(
    config: Annotated[CutConfig, Only("refine", "capacities")],
    old: str = typer.Argument(metavar="PARTS", help="Partition folder; it stays as it is."),
    parts: int = typer.Option(..., help="Parts of the new cut, one per rank."),
    out: str = typer.Option(..., help="Partition folder to write."),
    method: str | None = typer.Option(
        None, help="cmr, libra, hdrf, metis, kahypar, dbh or random (default: as the old cut)."
    ),
    effort: str | None = typer.Option(None, help="fast, normal or best (default: as the old cut)."),
    seed: int | None = typer.Option(None, help="Of the shuffled stream (default: as the old cut)."),
    order: str | None = typer.Option(None, help="shuffled or stored (default: as the old cut)."),
    merge: bool = typer.Option(
        False, help="Join whole parts and even out, in place of a new cut: seconds, and more copies. Fewer parts only."
    ),
    threads: int | None = typer.Option(None, help="Threads (default: all cores)."),
    overwrite: bool = typer.Option(False, help="Replace an existing partition folder, if nothing else is in it."),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Cut the graph of a partition folder anew; the files are those that `partition` makes from the source."""
    from distgnn import kernels
    from distgnn.errors import InputError
    from distgnn.partition.repartition import merge_parts
    from distgnn.partition.repartition import repartition as cut_anew

    kernels.set_num_threads(threads or num_threads())
    options: dict[str, Any] = {"method": method, "effort": effort, "seed": seed, "order": order}
    options["refine"] = config.refine
    options["capacities"] = split_speeds(config.capacities)
    if merge and any(value is not None and value is not False for value in options.values()):
        raise InputError("--merge takes the old cut as it is: leave --method, --seed, --order and the like out")
    with phases(not quiet and not as_json) as advance:
        if merge:
            manifest = merge_parts(old, parts, out, overwrite=overwrite, progress=advance)
        else:
            manifest = cut_anew(old, parts, out, overwrite=overwrite, progress=advance, **options)
    show(manifest, out, quiet, as_json)
