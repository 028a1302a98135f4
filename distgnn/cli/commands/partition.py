"""`distgnn partition`: cut a graph into parts, offline, in one process."""

import json
import sys

import typer

from distgnn.cli.display import epoch_line, human_bytes, human_seconds, phases, print_table

BALANCES = {"arcs": "edge", "owned": "owned", "copies": "copies"}


def register(app: typer.Typer) -> None:
    app.command()(partition)


def partition(
    source: str = typer.Argument(help="Dataset name, generated graph (rmat:… or communities:…), or folder."),
    parts: str = typer.Option(..., help="Parts, one per rank; 8x4: 8 machines of 4 ranks, cut between machines first."),
    out: str = typer.Option(..., help="Partition folder to write."),
    method: str = typer.Option("cmr", help="cmr, cmr-stream, libra, hdrf, metis, dbh or random."),
    refine: bool = typer.Option(
        False, help="Move edges and borders afterwards while that saves copies (cmr always does)."
    ),
    seed: int = typer.Option(0, help="Of the shuffled stream and of generated graphs."),
    direction: str = typer.Option("stored", help="stored, both (make it bidirected) or reversed."),
    self_loops: str = typer.Option("keep", help="keep, add (exactly one per vertex) or remove."),
    order: str = typer.Option("shuffled", help="shuffled or stored: order in which libra and hdrf meet the edges."),
    update: str = typer.Option(
        "owners", help="owners or copies: where vertices will be updated; rows or copies are few."
    ),
    objective: str = typer.Option("rows", help="rows, or epoch: the shortest epoch of the worst rank at --prices."),
    prices: str | None = typer.Option(None, help="File of distgnn calibrate --prices: predicts the epoch."),
    capacities: str | None = typer.Option(None, help="Relative speeds of the ranks, as 2,1,1 [default: all equal]."),
    normalize_feats: str = typer.Option("none", help="none or row (each vertex's features divided by their sum)."),
    data_root: str | None = typer.Option(None, help="Folder of named datasets [default: DISTGNN_DATA or ./data]."),
    memory: str | None = typer.Option(
        None, help="Most memory, as 8GB: cmr works on disk where it needs more (text and generated graphs count)."
    ),
    threads: int | None = typer.Option(None, help="Threads [default: all cores]."),
    overwrite: bool = typer.Option(False, help="Replace an existing partition folder."),
    quiet: bool = typer.Option(False, help="No progress and no table."),
    as_json: bool = typer.Option(False, "--json", help="Print partition.json instead of a table."),
) -> None:
    """Cut a graph into parts with halo vertices and write a partition folder."""
    from distgnn import kernels
    from distgnn.config import num_threads
    from distgnn.partition import partition_graph

    num_parts, groups = _parts_and_groups(parts)
    kernels.set_num_threads(threads or num_threads())
    speak = not quiet and not as_json
    with phases(speak) as advance:
        manifest = partition_graph(
            source,
            num_parts,
            out,
            method=method,
            refine=refine,
            seed=seed,
            direction=direction,
            self_loops=self_loops,
            order=order,
            groups=groups,
            update=update,
            capacities=None if capacities is None else capacities.split(","),
            normalize_feats=normalize_feats,
            overwrite=overwrite,
            data_root=data_root,
            memory=memory,
            objective=objective,
            prices=prices,
            progress=advance,
            say=(lambda line: print(f"distgnn: {line}", file=sys.stderr)) if not quiet else None,
        )
    if as_json:
        print(json.dumps({name: value for name, value in manifest.items() if name != "parts"}, indent=1))
    elif speak:
        print_table("Partitioned", rows_of_table(manifest, out))


def _parts_and_groups(text: str) -> tuple[int, int]:
    """Parts and groups of "32" or "8x4"."""
    machines, times, ranks = text.partition("x")
    try:
        return (int(machines) * int(ranks), int(machines)) if times else (int(machines), 1)
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is not a valid integer, nor two of them as in 8x4", param_hint="--parts"
        ) from None


def rows_of_table(manifest: dict, out: str) -> list[tuple[str, str]]:
    """The closing table."""
    graph = manifest["graph"]
    size = f"{manifest['num_nodes']:,} vertices, {manifest['num_arcs']:,} arcs"
    most = f"at most {manifest['max_rank_rows']:,} sent and received by one rank"
    predicted = [("predicted epoch", epoch_line(manifest["predicted_epoch"]))] if "predicted_epoch" in manifest else []
    balances = (f"{name} {manifest[f'{key}_balance']:.3f}" for name, key in BALANCES.items())
    return [
        ("graph", f"{manifest['name']}: {size}, {graph['num_feats']} features, {graph['num_classes']} classes"),
        ("parts", f"{manifest['num_parts']} ({manifest['method']}, seed {manifest['seed']})"),
        ("replication factor", f"{manifest['replication_factor']:.3f}"),
        ("exchange rows", f"{manifest['exchange_rows']:,} per layer and direction, {most}"),
        ("balance (max / mean)", ", ".join(balances)),
        *predicted,
        ("time and memory", f"{human_seconds(manifest['seconds'])}, {human_bytes(manifest['peak_rss_bytes'])}"),
        ("folder", out),
    ]
