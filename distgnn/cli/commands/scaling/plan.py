"""`distgnn plan`: how many ranks, which algorithm, what memory; before there is a cluster, or even the data."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.display import print_columns, print_table
from distgnn.cli.options import AsJson, Only, with_options
from distgnn.cli.output_files import check_place, write_json
from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.system.units import human_bytes, human_seconds

COLUMNS = ["ranks", "algorithm", "wire", "columns", "epoch", "from … to", "efficiency", "sent/epoch", "memory", "fits"]
COLUMNS_MEAN = (
    "efficiency: share of the epoch that ranks compute; sent/epoch: by all of them; memory: of the largest rank",
    "columns: ranks that share a part (train --columns), where that is quicker than one rank a part",
    "from … to: all messages hidden behind computation, to none hidden, with prices as wrong as they may be",
)
THREADS = 28  # of a socket of the paper
UNMEASURED = 2.0  # so wrong prices may be that were not measured


@with_options
def plan(
    source: Annotated[
        str, typer.Argument(help="Partition folder, graph folder, generated graph or name of a data set.")
    ],
    model: Annotated[ModelConfig, Only("name", "num_layers", "hidden_feats", "norm", "remat")],
    run: Annotated[RunConfig, Only("dtype")],
    train: Annotated[TrainConfig, Only("offload")],
    ranks: Annotated[str, typer.Option(help="Numbers of ranks, as 1,2,4,…,128.")] = "1,2,…,128",
    memory_per_rank: Annotated[str | None, typer.Option(help="As 64GB (default: no limit).")] = None,
    network: Annotated[str, typer.Option(help="As of distgnn replay.")] = "25gbit",
    prices: Annotated[
        str | None, typer.Option(help="File of distgnn calibrate --prices, measured as ranks will run.")
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Cores of a rank (default: as of the prices, else 28).")] = None,
    target_seconds: Annotated[float | None, typer.Option(help="An epoch shall take no longer.")] = None,
    data_root: Annotated[str | None, typer.Option(help="Folder of named datasets.")] = None,
    out: Annotated[str | None, typer.Option(help="JSON file to write.")] = None,
    as_json: AsJson = False,
) -> None:
    """Say which cuts fit, what epochs take, and what to type. The graph need not be there."""
    from distgnn.errors import InputError
    from distgnn.partition import read_manifest
    from distgnn.planning.choose import all_estimates, choose, commands, parse_ranks
    from distgnn.planning.graph_sizes import sizes_of_parts, sizes_of_source
    from distgnn.replay.network import parse_network
    from distgnn.system.sizes import parse_bytes

    check_place(out)
    counts, links = parse_ranks(ranks), parse_network(network)
    memory = None if memory_per_rank is None else parse_bytes(memory_per_rank)
    settings = Settings(train, model, run, Schedule()).checked()
    if (threads is not None and threads < 1) or (target_seconds is not None and not target_seconds > 0):
        raise InputError("expected at least 1 thread and a target of more than 0 seconds")
    rank = _rank(prices, threads)
    is_parts = (Path(source) / "partition.json").is_file()
    sizes = sizes_of_parts(read_manifest(source)) if is_parts else sizes_of_source(source, data_root)
    found = all_estimates(sizes, counts, settings, rank, links)
    assumed = [f"rows sent: {sizes.basis}"]
    if prices is None:
        assumed.append(
            f"prices: a Zen 4 core of our benchmarks, {rank.threads} of them; epochs may take half or twice as long"
        )
    if model.remat or train.offload:
        assumed.append("epochs: without what --remat computes again, and --offload writes and reads")
    report: dict[str, Any] = {
        "graph": {"name": sizes.name, "num_nodes": sizes.num_nodes, "num_arcs": sizes.num_arcs}
        | {"num_feats": sizes.num_feats, "num_classes": sizes.num_classes},
        "network": links.as_dict(),
        "threads": rank.threads,
        "memory_per_rank": memory,
        "assumed": assumed,
        "rows": [one.as_dict() | {"fits": memory is None or one.memory_bytes <= memory} for one in found],
    }
    if not as_json:
        _show_choices(report)
    best = choose(found, memory, target_seconds)
    report |= {"advised": best.as_dict() | {"method": "cmr"}}
    report |= {"commands": commands(best, source, settings, links, is_parts)}
    if out is not None:
        write_json(out, report)
    if as_json:
        print(json.dumps(report, indent=1))
    else:
        _show_advice(report)


def _rank(prices: str | None, threads: int | None) -> Any:
    """What a rank computes with."""
    from distgnn.planning.epoch_estimate import Rank, assumed_prices
    from distgnn.planning.prices import read_prices

    if prices is None:
        return Rank(assumed_prices(threads or THREADS), threads or THREADS, UNMEASURED)
    found = read_prices(prices)
    return Rank(found, threads or int(json.loads(Path(prices).read_text()).get("threads", 1)))


def _show_choices(report: dict[str, Any]) -> None:
    """The table; also where nothing in it is good enough, so that one sees how far off it is."""
    graph, memory = report["graph"], report["memory_per_rank"]
    title = (
        f"{graph['name']}: {graph['num_nodes']:,} vertices, {graph['num_arcs']:,} arcs, {graph['num_feats']} features; "
        f"{report['threads']} threads and {'any memory' if memory is None else human_bytes(memory)} a rank, "
        f"{8e-9 * report['network']['bandwidth']:g} Gbit/s a node"
    )
    print_columns(title, COLUMNS, [_cells(row) for row in report["rows"]])


def _show_advice(report: dict[str, Any]) -> None:
    best = report["advised"]
    shared = f", {best['columns']} of which share a part," if best["columns"] > 1 else ","
    chosen = (
        f"{best['ranks']} ranks{shared} {best['algorithm']}, {best['wire']} on the wire, {best['dtype']}, cut by cmr"
    )
    rows = [("advised", f"{chosen}: {human_seconds(best['epoch_seconds'])} an epoch")]
    rows += [("type" if place == 0 else "", line) for place, line in enumerate(report["commands"])]
    rows += [("assumed" if place == 0 else "", line) for place, line in enumerate(report["assumed"])]
    rows += [("columns" if place == 0 else "", line) for place, line in enumerate(COLUMNS_MEAN)]
    print_table("", rows)


def _cells(row: dict[str, Any]) -> list[str]:
    return [
        str(row["ranks"]),
        row["algorithm"],
        row["wire"],
        str(row["columns"]),
        human_seconds(row["epoch_seconds"]),
        f"{human_seconds(row['least_seconds'])} … {human_seconds(row['most_seconds'])}",
        f"{100 * row['efficiency']:.0f} %",
        human_bytes(row["sent_bytes"]),
        human_bytes(row["memory_bytes"]),
        "yes" if row["fits"] else "no",
    ]
