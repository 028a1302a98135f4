"""Seconds and passes over the graph until a validation accuracy: a race of contestants.

    python tests/bench/steps/race.py parts-1 94.6 --limit 120 --figures figures \\
        --contestant "--optimizer adam --lr 0.003" --contestant "--recipe fast" --contestant "dgl-sampling --lr 0.003"

Contestants run one after the other, seed by seed, each in processes of its own and until the limit, past the target,
or until a multiple of the seconds to it: so the table also has the best validation accuracy, and the test accuracy
there. Seconds are those of training; evaluation is apart. A run that does not reach the target counts as later than all
that do. Not run by pytest.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

import typer
from contestants import Contestant, End, run_one

from distgnn.cli.display import print_columns
from distgnn.cli.main import make_app
from distgnn.partition import read_manifest
from distgnn.system.plots import SHARES, Axis, Series, legend_beside, plot_lines, save, styled
from distgnn.system.processor import machine
from distgnn.system.units import human_seconds, human_share

COLUMNS = ["contestant", "reached", "passes", "seconds", "evaluation", "best valid", "test there"]
DEFAULT = ("--optimizer adam --lr 0.01", "--optimizer adam --lr 0.003", "--recipe fast", "dgl-sampling")


def race(parts: str, contestants: list[Contestant], end: End, seeds: list[int], threads: int | None) -> list[dict]:
    """Each contestant with each seed: {contestant, seed, stopped, curve, …} with what `reached` gives."""
    runs = []
    for seed in seeds:
        for number, contestant in enumerate(contestants):
            with tempfile.TemporaryDirectory() as folder:
                one = run_one(contestant, parts, Path(folder) / f"{number}-{seed}", seed, end, threads)
            runs.append(one | reached(one["curve"], end.target))
            passes, seconds = runs[-1]["passes_to_target"], runs[-1]["seconds_to_target"]
            when = "not reached" if passes is None else f"pass {passes}, {seconds:.2f} s"
            print(f"seed {seed}, {contestant.text}: {when}", file=sys.stderr, flush=True)
    return runs


def reached(curve: list[dict], target: float) -> dict:
    """Where a curve first is at the target, and its best point; raw, and the same of smoothed scores where it has some.

    Returns: passes_to_target, seconds_to_target, evaluation_seconds_to_target (None: not reached), best_valid,
        test_at_best; with "smoothed_" in front the same.
    """
    found: dict = {}
    for prefix in ("", "smoothed_"):
        points = [point for point in curve if point.get(f"{prefix}valid_metric") is not None]
        if prefix and not points:
            continue
        first = next((point for point in points if point[f"{prefix}valid_metric"] >= target), {})
        for name in ("passes", "seconds", "evaluation_seconds"):
            found[f"{prefix}{name}_to_target"] = first.get(name)
        best = max(points, key=lambda point: point[f"{prefix}valid_metric"], default={})
        found[f"{prefix}best_valid"] = best.get(f"{prefix}valid_metric")
        found[f"{prefix}test_at_best"] = best.get(f"{prefix}test_metric")
    return found


def medians(runs: list[dict]) -> list[dict]:
    """A row per contestant: medians over seeds, and how many seeds reached the target."""
    rows = []
    for text in dict.fromkeys(run["contestant"] for run in runs):
        own = [run for run in runs if run["contestant"] == text]
        names = [name for name in own[0] if name not in ("contestant", "seed", "stopped", "curve")]
        row: dict = {"contestant": text, "seeds": len(own)}
        row["reached"] = sum(run["passes_to_target"] is not None for run in own)
        rows.append(row | {name: _median([run.get(name) for run in own]) for name in names})
    return rows


def _median(values: list[float | None]) -> float | None:
    """Median; what is not there counts as infinite, of two the later one."""
    found = statistics.median_high(math.inf if value is None else value for value in values)
    return None if math.isinf(found) else found


def _rows(row: dict[str, Any]) -> list[list[str]]:
    """Cells of a contestant, and of its smoothed scores where it has some."""
    rows = [_cells(row, "", row["contestant"])]
    return rows + ([_cells(row, "smoothed_", "  corrected and smoothed")] if "smoothed_best_valid" in row else [])


def _cells(row: dict[str, Any], prefix: str, name: str) -> list[str]:
    def value(key: str, text: Any) -> str:
        found = row[f"{prefix}{key}"]
        return "-" if found is None else text(found)

    return [
        name,
        "" if prefix else f"{row['reached']} of {row['seeds']}",
        value("passes_to_target", str),
        value("seconds_to_target", human_seconds),
        value("evaluation_seconds_to_target", human_seconds),
        value("best_valid", human_share),
        value("test_at_best", human_share),
    ]


@styled()
def draw(report: dict, folder: Path) -> None:
    """FOLDER/time_to_accuracy.png, .svg: validation accuracy against passes and seconds; the target is a thin line."""
    from matplotlib.figure import Figure

    folder.mkdir(parents=True, exist_ok=True)
    figure = Figure(figsize=(11.5, 4.5), layout="constrained")
    axes = figure.subplots(1, 2)
    for one, key in zip(axes, ("passes", "seconds"), strict=True):
        series = [
            Series(
                f"{run['contestant']}, {run['seed']}", [(point[key], point["valid_metric"]) for point in run["curve"]]
            )
            for run in report["runs"]
        ]
        plot_lines(one, series, Axis(key, from_zero=True), Axis("validation accuracy", SHARES), report["target"])
    figure.suptitle(report["graph"])
    legend_beside(figure, axes[0])
    save(figure, folder, "time_to_accuracy")


def main() -> None:
    """Run the race; writes a JSON file, and figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", help="partition folder; of one part where a contestant is dgl-sampling")
    parser.add_argument("target", type=float, help="validation accuracy, a share or in percent")
    parser.add_argument("--contestant", action="append", help="options of train, or dgl-sampling and its own")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of training of each run")
    parser.add_argument(
        "--past-target", type=float, default=0.0, help="end a run after so many times those to the target"
    )
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--seeds", type=int, default=3, help="how many")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    parser.add_argument("--figures", type=Path, help="folder")
    options = parser.parse_args()
    target = options.target if options.target < 1 else options.target / 100
    contestants = [Contestant(text) for text in options.contestant or DEFAULT]
    commands: Any = typer.main.get_command(make_app(["train"]))
    for one in contestants:
        one.check(options.parts, commands.commands["train"])
    end, seeds = End(options.limit, target, options.past_target), range(options.seed, options.seed + options.seeds)
    graph = read_manifest(options.parts)["name"]
    runs = race(options.parts, contestants, end, list(seeds), options.threads)
    report = {"machine": machine(), "graph": graph, "command": sys.argv, "target": target}
    report |= {"limit_seconds": options.limit, "past_target": options.past_target, "rows": medians(runs), "runs": runs}
    options.out.write_text(json.dumps(report, indent=1))
    if options.figures:
        draw(report, options.figures)
    title = f"{graph}, to {human_share(target)} validation accuracy, median of {options.seeds} seeds"
    print_columns(title, COLUMNS, [cells for row in report["rows"] for cells in _rows(row)])


if __name__ == "__main__":
    main()
