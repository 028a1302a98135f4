"""`distgnn replay`: every part of a cut measured alone, and the ranks' messages played through a network model."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.display import print_columns, print_table
from distgnn.cli.options import AsJson, Only, Quiet, with_options
from distgnn.cli.output_files import check_place, write_json
from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.config.run import preset_options
from distgnn.fitting.progress import progress_bar
from distgnn.system.units import human_bytes, human_seconds

COLUMNS = ["network", "epoch", "compute mean / max", "waits mean / max", "efficiency", "sent/epoch"]


@with_options
def replay(
    parts: Annotated[str, typer.Argument(help="Partition folder, of at least 2 parts.")],
    model: ModelConfig,
    run: Annotated[RunConfig, Only("algorithm", "update", "dtype", "cache_first", "transform_first")],
    schedule: Schedule,
    training: Annotated[TrainConfig, Only("task", "seed")],
    network: Annotated[
        list[str],
        typer.Option(
            help="As 25gbit, 25gbit,latency=2us,ranks_per_node=2, or a file of distgnn calibrate --prices; several."
        ),
    ] = ["25gbit"],  # noqa: B006
    preset: Annotated[str | None, typer.Option(help="distgnn: the paper's form.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads of a rank (default: cores / --at-once).")] = None,
    at_once: Annotated[int, typer.Option(help="Parts that are measured at the same time.")] = 1,
    repeats: Annotated[int, typer.Option(help="Times that each epoch is measured.")] = 5,
    recordings: Annotated[
        str | None, typer.Option(help="Folder for what was measured; where it is there, it is not measured again.")
    ] = None,
    out: Annotated[str | None, typer.Option(help="JSON file to write.")] = None,
    figures: Annotated[str | None, typer.Option(help="Folder for a figure (PNG, SVG).")] = None,
    trace: Annotated[
        str | None, typer.Option(help="Timeline of the predicted epoch to write (Chrome, Perfetto).")
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict the epoch of a cluster: each part trains alone here, its messages cross a network model."""
    from distgnn.config import num_threads
    from distgnn.partition import read_manifest
    from distgnn.replay.measure import Measuring, check_replayable
    from distgnn.replay.network import parse_network

    if preset is not None:
        run = replace(run, **preset_options(preset))
    manifest = read_manifest(parts)
    networks = [parse_network(text) for text in network]
    settings = Settings(training, model, run, schedule).checked()
    settings.check_graph(manifest["graph"])
    check_replayable(settings, manifest["num_parts"])
    at_once = min(at_once, manifest["num_parts"])
    measuring = Measuring(threads or max(1, num_threads() // max(at_once, 1)), at_once, repeats).check()
    check_place(out, "out")
    check_place(trace, "trace")
    speak = not quiet and not as_json
    found = _recordings(parts, manifest, settings, measuring, recordings, speak)
    report = {"graph": manifest["name"], "parts": parts, "settings": asdict(settings)}
    report["replays"] = _played(found, networks, network, trace)
    if out is not None:
        write_json(out, report)
    if figures is not None:
        from distgnn.replay.figure import draw

        draw(report["replays"], Path(figures))
    if as_json:
        print(json.dumps(report, indent=1))
    elif speak:
        _show(report, manifest, settings)


def _recordings(
    parts: str, manifest: dict[str, Any], settings: Settings, measuring: Any, folder: str | None, speak: bool
) -> list[Any]:
    """What each part does in an epoch: measured, or as it was kept."""
    from distgnn.replay.measure import measure_parts
    from distgnn.replay.recording import read_recordings, write_recordings

    key = {"partition": manifest["sha256"], "settings": asdict(settings), "measuring": asdict(measuring)}
    found = None if folder is None else read_recordings(Path(folder), key)
    if found is None:
        with progress_bar("measured", manifest["num_parts"], speak) as advance:
            found = measure_parts(parts, settings, measuring, advance)
        if folder is not None:
            write_recordings(found, Path(folder), key)
    return found


def _played(found: list[Any], networks: list[Any], titles: list[str], trace: str | None) -> list[dict[str, Any]]:
    from distgnn.replay.figure import write_trace
    from distgnn.replay.outcome import replay as play

    outcomes = []
    for network, title in zip(networks, titles, strict=True):
        outcome, epochs = play(found, network)
        outcomes.append({"title": title} | outcome)
        if trace is not None and len(outcomes) == 1:
            write_trace(epochs, Path(trace))
    return outcomes


def _show(report: dict[str, Any], manifest: dict[str, Any], settings: Settings) -> None:
    """A line for each network, and what the epoch of the last one is made of."""
    outcomes = report["replays"]
    title = f"Replay of {manifest['name']}, {manifest['num_parts']} ranks"
    print_columns(title, COLUMNS, [_cells(one) for one in outcomes])
    last = outcomes[-1]
    worst = max(last["of_rank"], key=lambda rank: rank["compute_seconds"])
    path = ", ".join(f"{name} {human_seconds(seconds)}" for name, seconds in last["critical_path"].items())
    run = settings.run
    rows = [
        ("settings", f"{run.algorithm}, update on {run.update}, {settings.schedule.wire} on the wire"),
        ("threads", f"{last['threads']} per rank"),
        ("critical path", path),
        ("longest waits on it", _longest_waits(last)),
        ("busiest rank", f"{worst['rank']}: {human_seconds(worst['compute_seconds'])} of computation"),
        ("memory per rank", _memory(last["peak_rss_bytes"])),
    ]
    print_table("", rows)


def _cells(found: dict[str, Any]) -> list[str]:
    waits = [rank["wait_seconds"] for rank in found["of_rank"]]
    compute = found["compute_seconds"]
    return [
        found["title"],
        human_seconds(found["epoch_seconds"]),
        f"{human_seconds(compute['mean'])} / {human_seconds(compute['max'])}",
        f"{human_seconds(sum(waits) / len(waits))} / {human_seconds(max(waits))}",
        f"{100 * found['efficiency']:.1f} %",
        human_bytes(found["sent_bytes_per_epoch"]),
    ]


def _longest_waits(found: dict[str, Any]) -> str:
    links = [link for link in found["critical_links"] if link["name"] == "network"]
    links.sort(key=lambda link: -link["seconds"])
    told = []
    for link in links[:3]:
        what = "sum of gradients" if link["call"] < 0 else f"exchange {link['call']}"
        told.append(f"rank {link['rank']} for {what}, {human_seconds(link['seconds'])}")
    return "; ".join(told) or "none"


def _memory(peaks: list[int]) -> str:
    mean = sum(peaks) / len(peaks)
    return f"{human_bytes(max(peaks))} at most (rank {peaks.index(max(peaks))}), {human_bytes(mean)} on average"
