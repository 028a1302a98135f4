"""`distgnn replay`: every part of a cut measured alone, and the ranks' messages played through a network model."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from distgnn.cli.display import check_place, print_columns, print_table, write_json
from distgnn.cli.options import AsJson, Only, Quiet, with_options
from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.config.run import preset_options
from distgnn.fitting.progress import progress_bar
from distgnn.system.units import human_bytes, human_seconds

COLUMNS = ["network", "epoch", "compute mean / max", "waits mean / max", "efficiency", "sent/epoch"]
NETWORKS: Any = typer.Option(
    ["25gbit"], help="As 25gbit, 25gbit,latency=2us,ranks_per_node=2, or a file of distgnn prices; several."
)


@with_options
def replay(
    parts: Annotated[str, typer.Argument(help="Partition folder, of at least 2 parts.")],
    model: ModelConfig,
    run: Annotated[RunConfig, Only("algorithm", "update", "dtype", "cache_first", "transform_first")],
    schedule: Schedule,
    training: Annotated[TrainConfig, Only("task", "seed")],
    network: list[str] = NETWORKS,
    preset: str | None = typer.Option(None, help="distgnn: the paper's form."),
    threads: int | None = typer.Option(None, help="Threads of a rank (default: cores / --at-once)."),
    at_once: int = typer.Option(1, help="Parts that are measured at the same time."),
    repeats: int = typer.Option(5, help="Times that each epoch is measured."),
    recordings: str | None = typer.Option(
        None, help="Folder for what was measured; where it is there, it is not measured again."
    ),
    out: str | None = typer.Option(None, help="JSON file to write."),
    figures: str | None = typer.Option(None, help="Folder for a figure (PNG, SVG)."),
    trace: str | None = typer.Option(None, help="Timeline of the predicted epoch to write (Chrome, Perfetto)."),
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Predict the epoch of a cluster: each part trains alone here, its messages cross a network model."""
    from distgnn.config import num_threads
    from distgnn.extras.replay.measure import Measuring, check_replayable
    from distgnn.extras.replay.network import parse_network
    from distgnn.extras.replay.outcome import replay as play
    from distgnn.extras.replay.outcome import write_trace
    from distgnn.partition import read_manifest

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
    found = _recorded(parts, manifest, settings, measuring, recordings, speak)
    played = [play(found, one) for one in networks]
    if trace is not None:
        write_trace(played[0][1], Path(trace))
    outcomes = [{"title": title} | outcome for title, (outcome, _) in zip(network, played, strict=True)]
    report = {"graph": manifest["name"], "parts": parts, "settings": asdict(settings), "replays": outcomes}
    if out is not None:
        write_json(out, report)
    if figures is not None:
        from distgnn.extras.replay.outcome import draw

        draw(outcomes, Path(figures))
    if as_json:
        print(json.dumps(report, indent=1))
    elif speak:
        title = f"Replay of {manifest['name']}, {manifest['num_parts']} ranks"
        print_columns(title, COLUMNS, [_cells(one) for one in outcomes])
        print_table("", _made_of(outcomes[-1], settings))


def _recorded(
    parts: str, manifest: dict[str, Any], settings: Settings, measuring: Any, folder: str | None, speak: bool
) -> Any:
    """What the folder holds; else what is measured now, which it then holds."""
    from distgnn.extras.replay.measure import measure_parts
    from distgnn.extras.replay.recording import read_recordings, write_recordings

    key = {"partition": manifest["sha256"], "settings": asdict(settings), "measuring": asdict(measuring)}
    found = None if folder is None else read_recordings(Path(folder), key)
    if found is None:
        with progress_bar("measured", manifest["num_parts"], speak) as advance:
            found = measure_parts(parts, settings, measuring, advance)
        if folder is not None:
            write_recordings(found, Path(folder), key)
    return found


def _made_of(outcome: dict[str, Any], settings: Settings) -> list[tuple[str, str]]:
    worst = max(outcome["of_rank"], key=lambda rank: rank["compute_seconds"])
    path = ", ".join(f"{name} {human_seconds(seconds)}" for name, seconds in outcome["critical_path"].items())
    links = [link for link in outcome["critical_links"] if link["name"] == "network"]
    waits = []
    for link in sorted(links, key=lambda link: -link["seconds"])[:3]:
        what = "sum of gradients" if link["call"] < 0 else f"exchange {link['call']}"
        waits.append(f"rank {link['rank']} for {what}, {human_seconds(link['seconds'])}")
    peaks, run = outcome["peak_rss_bytes"], settings.run
    most, mean = max(peaks), sum(peaks) / len(peaks)
    return [
        ("settings", f"{run.algorithm}, update on {run.update}, {settings.schedule.wire} on the wire"),
        ("threads", f"{outcome['threads']} per rank"),
        ("critical path", path),
        ("longest waits on it", "; ".join(waits) or "none"),
        ("busiest rank", f"{worst['rank']}: {human_seconds(worst['compute_seconds'])} of computation"),
        ("memory per rank", f"{human_bytes(most)} at most (rank {peaks.index(most)}), {human_bytes(mean)} on average"),
    ]


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
