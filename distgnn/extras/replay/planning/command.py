"""`distgnn plan`: how many ranks, which algorithm, what memory; before there is a cluster, or even the data."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.display import check_place, print_columns, print_table, write_json
from distgnn.cli.options import AsJson, Only, with_options
from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.system.units import human_bytes, human_seconds

COLUMNS: dict[str, Callable[[dict[str, Any]], str]] = {
    "ranks": lambda row: str(row["ranks"]),
    "algorithm": lambda row: row["algorithm"],
    "wire": lambda row: row["wire"],
    "epoch": lambda row: human_seconds(row["epoch_seconds"]),
    "from … to": lambda row: f"{human_seconds(row['least_seconds'])} … {human_seconds(row['most_seconds'])}",
    "efficiency": lambda row: f"{100 * row['efficiency']:.0f} %",
    "sent/epoch": lambda row: human_bytes(row["sent_bytes"]),
    "memory": lambda row: human_bytes(row["memory_bytes"]),
    "fits": lambda row: "yes" if row["fits"] else "no",
}
COLUMNS_MEAN = (
    "efficiency: share of the epoch that ranks compute; sent/epoch: by all of them; memory: of the largest rank",
    "from … to: all messages hidden behind computation, to none hidden, with prices as wrong as they may be",
)
THREADS = 28  # of a socket of the paper
UNMEASURED = 2.0  # so wrong prices may be that were not measured
DOUBT = "epochs may take half or twice as long"
KEPT = "epochs: without what --remat computes again, and --offload writes and reads"


@with_options
def plan(
    source: Annotated[
        str, typer.Argument(help="Partition folder, graph folder, generated graph or name of a data set.")
    ],
    model: Annotated[ModelConfig, Only("name", "num_layers", "hidden_feats", "norm", "remat")],
    run: Annotated[RunConfig, Only("dtype")],
    train: Annotated[TrainConfig, Only("offload")],
    ranks: str = typer.Option("1,2,…,128", help="Numbers of ranks, as 1,2,4,…,128."),
    memory_per_rank: str | None = typer.Option(None, help="As 64GB (default: no limit)."),
    network: str = typer.Option("25gbit", help="As of distgnn replay."),
    prices: str | None = typer.Option(None, help="File of distgnn prices, measured as ranks will run."),
    threads: int | None = typer.Option(None, help="Cores of a rank (default: as of the prices, else 28)."),
    target_seconds: float | None = typer.Option(None, help="An epoch shall take no longer."),
    data_root: str | None = typer.Option(None, help="Folder of named datasets."),
    out: str | None = typer.Option(None, help="JSON file to write."),
    as_json: AsJson = False,
) -> None:
    """Say which cuts fit, what epochs take, and what to type. The graph need not be there."""
    from distgnn.config.model import EDGE_MODELS
    from distgnn.errors import InputError
    from distgnn.extras.replay.network import parse_network
    from distgnn.extras.replay.planning.choose import all_estimates, choose, commands, parse_ranks
    from distgnn.extras.replay.planning.graph_sizes import sizes_of_parts, sizes_of_source
    from distgnn.partition import read_manifest
    from distgnn.system.sizes import parse_bytes

    check_place(out)
    counts, links = parse_ranks(ranks), parse_network(network)
    memory = None if memory_per_rank is None else parse_bytes(memory_per_rank)
    settings = Settings(train, model, run, Schedule()).checked()
    if model.name in (*EDGE_MODELS, "rgcn"):
        raise InputError(f"plan counts no edge features and relations, which {model.name} needs: train says its memory")
    if (threads is not None and threads < 1) or (target_seconds is not None and not target_seconds > 0):
        raise InputError("expected at least 1 thread and a target of more than 0 seconds")
    rank = _rank(prices, threads)
    is_parts = (Path(source) / "partition.json").is_file()
    sizes = sizes_of_parts(read_manifest(source)) if is_parts else sizes_of_source(source, data_root)
    found = all_estimates(sizes, counts, settings, rank, links)
    assumed = [f"rows sent: {sizes.basis}"]
    assumed += (
        [] if prices is not None else [f"prices: a Zen 4 core of our benchmarks, {rank.threads} of them; {DOUBT}"]
    )
    assumed += [KEPT] if model.remat or train.offload else []
    report: dict[str, Any] = {
        "graph": {"name": sizes.name, "num_nodes": sizes.num_nodes, "num_arcs": sizes.num_arcs}
        | {"num_feats": sizes.num_feats, "num_classes": sizes.num_classes},
        "network": links.as_dict(),
        "threads": rank.threads,
        "memory_per_rank": memory,
        "assumed": assumed,
        "rows": [one.as_dict() | {"fits": memory is None or one.memory_bytes <= memory} for one in found],
    }
    if not as_json:  # also where nothing in it is good enough, so that one sees how far off it is
        cells = [[cell(row) for cell in COLUMNS.values()] for row in report["rows"]]
        print_columns(_title(report), list(COLUMNS), cells)
    best = choose(found, memory, target_seconds)
    report |= {"advised": best.as_dict() | {"method": "cmr"}}
    report |= {"commands": commands(best, source, settings, links, is_parts)}
    if out is not None:
        write_json(out, report)
    if as_json:
        print(json.dumps(report, indent=1))
    else:
        print_table("", _advice(report))


def _rank(prices: str | None, threads: int | None) -> Any:
    """A rank of the file's prices, or of assumed ones."""
    from distgnn.extras.replay.planning.epoch_estimate import Rank, assumed_prices, read_prices

    if prices is None:
        return Rank(assumed_prices(threads or THREADS), threads or THREADS, UNMEASURED)
    return Rank(read_prices(prices), threads or int(json.loads(Path(prices).read_text()).get("threads", 1)))


def _title(report: dict[str, Any]) -> str:
    graph, memory = report["graph"], report["memory_per_rank"]
    size = f"{graph['num_nodes']:,} vertices, {graph['num_arcs']:,} arcs, {graph['num_feats']} features"
    room = "any memory" if memory is None else human_bytes(memory)
    speed = f"{8e-9 * report['network']['bandwidth']:g} Gbit/s a node"
    return f"{graph['name']}: {size}; {report['threads']} threads and {room} a rank, {speed}"


def _advice(report: dict[str, Any]) -> list[tuple[str, str]]:
    """What to take, what to type, and what that rests on."""
    advised = report["advised"]
    wire = f"{advised['algorithm']}, {advised['wire']} on the wire, {advised['dtype']}, cut by cmr"
    epoch = f"{human_seconds(advised['epoch_seconds'])} an epoch"
    lines = {"advised": [f"{advised['ranks']} ranks, {wire}: {epoch}"], "type": report["commands"]}
    lines |= {"assumed": report["assumed"], "columns": list(COLUMNS_MEAN)}
    return [(name * (not place), text) for name, of in lines.items() for place, text in enumerate(of)]
