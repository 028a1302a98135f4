"""`distgnn bench PARTS --time-to-accuracy TARGET`: seconds and passes over the graph until a validation accuracy.

Contestants run one after the other, seed by seed, each in processes of its own and until the limit, past the target,
or until a multiple of the seconds to it: so the table also has the best validation accuracy, and the test accuracy
there. Seconds are those of training; evaluation is apart. A run that does not reach the target counts as later than all
that do.
"""

import math
import statistics
import sys
import tempfile
from pathlib import Path

from distgnn.bench.steps.contestants import Contestant, End, run_one

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
