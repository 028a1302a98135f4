"""`distgnn prices`: what messages cost between these ranks, for `--network`."""

import json

import typer

from distgnn.cli.display import check_place, write_json
from distgnn.cli.options import AsJson


def prices(
    out: str = typer.Argument(help="JSON file to write."),
    ranks: int = typer.Option(2, help="Ranks to start where none were started, at least 2."),
    as_json: AsJson = False,
) -> None:
    """Send messages between the ranks that are given, and write what they cost."""
    from distgnn.cli.ranks import checked_together, run_on_ranks
    from distgnn.errors import InputError, on_all_ranks

    with checked_together():
        check_place(out)
    run_on_ranks(ranks, 1)
    from distgnn.extras.replay.measured_network import measure_network
    from distgnn.system.launch import import_mpi
    from distgnn.system.output import plain

    comm = import_mpi().COMM_WORLD
    if comm.size < 2:
        raise on_all_ranks(InputError("a single rank sends nothing: measure prices on two or more, as --ranks 2"))
    network = measure_network(comm)
    with checked_together():
        if comm.rank == 0:
            write_json(out, {"network": network})
    if comm.rank:
        return
    if as_json:
        print(json.dumps({"network": network}, indent=1))
    else:
        speed = f"{8e-9 * network['bandwidth']:.3g} Gbit/s, {1e6 * network['latency']:.3g} µs"
        print(f"messages: {speed}; written to {plain(out)}")
