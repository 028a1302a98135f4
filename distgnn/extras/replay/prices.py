"""`distgnn prices`: what epochs and messages cost on these ranks, for `distgnn replay` and `distgnn plan`."""

import json

import typer

from distgnn.cli.display import check_place, write_json
from distgnn.cli.options import AsJson, Threads


def prices(
    out: str = typer.Argument(help="JSON file to write."),
    ranks: int = typer.Option(2, help="Ranks to start where none were started, at least 2."),
    seconds: float = typer.Option(3.0, help="How long epochs are trained."),
    threads: Threads = None,
    hidden_feats: int = typer.Option(256, help="Of the model whose epochs the prices are for."),
    num_layers: int = typer.Option(3, help="Of that model, at least 2."),
    as_json: AsJson = False,
) -> None:
    """Train small epochs and send messages on the ranks it is given, and write what they cost."""
    from distgnn.cli.ranks import checked_together, run_on_ranks
    from distgnn.errors import InputError, on_all_ranks

    if not 0 < seconds <= 600:
        raise on_all_ranks(InputError(f"seconds is {seconds}: expected more than 0 and at most 600"))
    if hidden_feats < 1 or num_layers < 2:
        raise on_all_ranks(InputError("prices are of models with at least 2 layers and a hidden width of 1 or more"))
    with checked_together():
        check_place(out)
    run_on_ranks(ranks, threads)
    from distgnn.extras.replay.epoch_prices import measure_prices
    from distgnn.extras.replay.network_prices import measure_network
    from distgnn.extras.replay.planning.epoch_estimate import FORMAT_VERSION
    from distgnn.system.launch import import_mpi
    from distgnn.system.output import plain

    comm = import_mpi().COMM_WORLD
    if comm.size < 2:
        raise on_all_ranks(InputError("a single rank exchanges no rows: measure prices on two or more, as --ranks 2"))
    measured = {"format_version": FORMAT_VERSION} | measure_prices(comm, seconds, hidden_feats, num_layers)
    network = measure_network(comm)
    measured["network"] = network
    with checked_together():
        if comm.rank == 0:
            write_json(out, measured)
    if comm.rank:
        return
    if as_json:
        print(json.dumps(measured, indent=1))
        return
    names = {"arc_value": "arc and feature", "dense_row": "dense row", "exchanged_row": "exchanged row"}
    told = (f"{1e9 * measured[f'seconds_per_{key}']:.3g} ns for each {name}" for key, name in names.items())
    print(f"one layer, forward and backward: {', '.join(told)}; written to {plain(out)}")
    speed = f"{8e-9 * network['rank_bandwidth']:.3g} Gbit/s, {1e6 * network['latency']:.3g} µs"
    print(f"messages: {speed}; while ranks compute {8e-9 * network['overlap_bandwidth']:.3g} Gbit/s")
