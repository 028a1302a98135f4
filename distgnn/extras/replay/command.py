"""`distgnn replay`: epochs of all ranks recorded, and their messages played through a network model."""

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer

from distgnn.cli.display import check_place, print_columns, print_table, write_json
from distgnn.cli.options import AsJson, Only, Quiet, with_options
from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.system.units import human_bytes, human_seconds

COLUMNS = ["network", "epoch", "from … to", "compute mean / max", "waits mean / max", "efficiency", "sent/epoch"]
NETWORKS: Any = typer.Option(
    ["25gbit"], help="As 25gbit, 25gbit,latency=2us,ranks_per_node=2, or a file of distgnn prices; several."
)


@with_options
def replay(
    parts: Annotated[str, typer.Argument(help="Partition folder, of at least 2 parts.")],
    model: ModelConfig,
    run: Annotated[RunConfig, Only("algorithm", "dtype", "cache_first", "transform_first")],
    schedule: Schedule,
    training: Annotated[TrainConfig, Only("task", "seed")],
    network: list[str] = NETWORKS,
    threads: int | None = typer.Option(None, help="Threads of a rank (default: cores / --at-once)."),
    at_once: int = typer.Option(1, help="Ranks that compute at the same time."),
    repeats: int = typer.Option(5, help="Times that each epoch is recorded."),
    out: str | None = typer.Option(None, help="JSON file to write."),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict the epoch of a cluster: ranks train here in turn, their messages cross a network model."""
    from distgnn.cli.places import checked_together, run_on_ranks
    from distgnn.config import num_threads
    from distgnn.errors import InputError
    from distgnn.extras.replay import predict
    from distgnn.extras.replay.network import parse_network
    from distgnn.partition import read_manifest

    with checked_together():
        manifest = read_manifest(parts)
        networks = [parse_network(text) for text in network]
        settings = Settings(training, model, run, schedule).checked()
        settings.check_graph(manifest["graph"])
        num_ranks = manifest["num_parts"]
        for name, value in (("at_once", at_once), ("repeats", repeats), ("threads", threads or 1)):
            if value < 1:
                raise InputError(f"{name} is {value}: expected at least 1")
        check_place(out, "out")
        threads = threads or max(1, num_threads() // min(at_once, num_ranks))
    run_on_ranks(num_ranks, threads)
    from distgnn.extras.replay.record import record

    (found,) = record(parts, [settings], repeats=repeats, at_once=at_once, epochs=1)
    if not found:
        return
    outcomes = [
        {"title": title, "network": one.as_dict()} | predict.epoch(found, one).as_dict()
        for title, one in zip(network, networks, strict=True)
    ]
    report = {"graph": manifest["name"], "parts": parts, "ranks": num_ranks, "threads": threads}
    report |= {"settings": asdict(settings), "replays": outcomes}
    if out is not None:
        write_json(out, report)
    if as_json:
        print(json.dumps(report, indent=1))
    elif not quiet:
        print_columns(f"Replay of {manifest['name']}, {num_ranks} ranks", COLUMNS, [_cells(one) for one in outcomes])
        print_table("", _made_of(report, settings))


def _made_of(report: dict[str, Any], settings: Settings) -> list[tuple[str, str]]:
    last, run = report["replays"][-1], settings.run
    peaks = [rank["peak_rss_bytes"] for rank in last["of_rank"]]
    return [
        ("settings", f"{run.algorithm}, {settings.schedule.wire} on the wire"),
        ("a rank", f"{report['threads']} threads, at most {human_bytes(max(peaks))} of memory"),
        ("messages", f"{last['messages']:,} in an epoch, sums over ranks apart"),
    ]


def _cells(found: dict[str, Any]) -> list[str]:
    compute, waits = ([rank[name] for rank in found["of_rank"]] for name in ("compute_seconds", "wait_seconds"))
    spans = (f"{human_seconds(sum(of) / len(of))} / {human_seconds(max(of))}" for of in (compute, waits))
    between = f"{human_seconds(found['low'])} … {human_seconds(found['high'])}"
    shares = f"{100 * found['efficiency']:.1f} %", human_bytes(found["sent_bytes"])
    return [found["title"], human_seconds(found["seconds"]), between, *spans, *shares]
