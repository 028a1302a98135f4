"""`distgnn calibrate`: how fast each rank is (`--capacities` of a cut in proportion), and what epochs cost."""

import json

import typer

from distgnn.cli.display import print_columns, write_json
from distgnn.cli.options import AsJson, Threads
from distgnn.system.output import plain


def calibrate(
    ranks: int = typer.Option(1, help="Ranks to start where none were started."),
    seconds: float = typer.Option(3.0, help="How long each rank works."),
    threads: Threads = None,
    prices: str | None = typer.Option(
        None, help="Train small epochs and send messages too; write prices for replay and plan here (JSON)."
    ),
    hidden_feats: int = typer.Option(256, help="Of the model whose epochs the prices are for."),
    num_layers: int = typer.Option(3, help="Of that model, at least 2."),
    as_json: AsJson = False,
) -> None:
    """Measure the ranks it is given, all at the same time, as they would train; prints --capacities for partition."""
    from distgnn.cli.ranks import checked_together, run_on_ranks
    from distgnn.errors import InputError, on_all_ranks

    if not 0 < seconds <= 600:
        raise on_all_ranks(InputError(f"seconds is {seconds}: expected more than 0 and at most 600"))
    if prices is not None and (hidden_feats < 1 or num_layers < 2):
        raise on_all_ranks(InputError("prices are of models with at least 2 layers and a hidden width of 1 or more"))
    run_on_ranks(ranks, threads)
    from distgnn.bench.prices import measure_speeds
    from distgnn.system.launch import import_mpi

    comm = import_mpi().COMM_WORLD
    if prices is not None and comm.size < 2:
        raise on_all_ranks(InputError("a single rank exchanges no rows: measure prices on two or more, as --ranks 2"))
    rows = measure_speeds(comm, seconds)
    measured = None
    if prices is not None:
        from distgnn.bench.network_prices import measure_network
        from distgnn.bench.prices import measure_prices
        from distgnn.planning.epoch_estimate import FORMAT_VERSION

        measured = {"format_version": FORMAT_VERSION} | measure_prices(comm, seconds, hidden_feats, num_layers)
        measured["network"] = measure_network(comm)
        with checked_together():
            if comm.rank == 0:
                write_json(prices, measured)
    if comm.rank:
        return
    capacities = ",".join(f"{row['capacity']:.2f}" for row in rows)
    if as_json:
        print(json.dumps({"capacities": capacities, "ranks": rows, "prices": measured}, indent=1))
        return
    cells = [
        [
            *(str(row[key]) for key in ("rank", "host", "threads")),
            f"{row['rounds_per_second']:.1f}",
            f"{row['capacity']:.2f}",
        ]
        for row in rows
    ]
    print_columns("Speed of ranks", ["rank", "host", "threads", "rounds/s", "speed"], cells)
    print(f"distgnn partition … --parts {len(rows)} --capacities {capacities}")
    if measured is not None:
        names = {"arc_value": "arc and feature", "dense_row": "dense row", "exchanged_row": "exchanged row"}
        told = (f"{1e9 * measured[f'seconds_per_{key}']:.3g} ns for each {name}" for key, name in names.items())
        print(f"one layer, forward and backward: {', '.join(told)}; written to {plain(prices)}")
        network = measured["network"]
        speed = f"{8e-9 * network['rank_bandwidth']:.3g} Gbit/s, {1e6 * network['latency']:.3g} µs"
        print(f"messages: {speed}; while ranks compute {8e-9 * network['overlap_bandwidth']:.3g} Gbit/s")
