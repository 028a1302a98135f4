"""What the page says of a race (`bench --time-to-accuracy`): a table of contestants, and their curves."""

from __future__ import annotations

from typing import Any

from distgnn.report.axes import SHARES, Axis
from distgnn.report.charts import Series, lines
from distgnn.report.html import figure, part, shown, side_by_side, table
from distgnn.report.read import Bench, number, text
from distgnn.system.units import human_seconds, human_share

SENTENCE = (
    "Contestants run one after the other, each past the target until a limit of seconds. Seconds are those of "
    "training, evaluation apart; numbers are medians over seeds, where a seed that does not reach the target is the "
    "latest."
)
HEAD = ["", "seeds there", "passes", "training", "evaluation", "best valid", "test there"]


def race(bench: Bench) -> str:
    """The table, and validation accuracy against passes and seconds."""
    rows = [_cells(row, "", str(row["contestant"])) for row in bench.rows]
    for place, row in reversed(list(enumerate(bench.rows))):
        if number(row, "smoothed_best_valid") is not None:
            rows.insert(place + 1, _cells(row, "smoothed_", f"{row['contestant']}, corrected and smoothed"))
    target = number(bench.content, "target")
    title = "To the target" if target is None else f"To {human_share(target)} validation accuracy"
    return part(title, table(HEAD, rows), _curves(bench.content.get("runs"), target or 0.0))


def _cells(row: dict[str, Any], prefix: str, name: str) -> list[str | None]:
    there = (number(row, "reached"), number(row, "seeds"))
    seeds = None if prefix or None in there else f"{there[0]:.0f} of {there[1]:.0f}"
    return [
        name,
        seeds,
        shown(number(row, f"{prefix}passes_to_target"), lambda count: f"{count:.0f}"),
        shown(number(row, f"{prefix}seconds_to_target"), human_seconds),
        shown(number(row, f"{prefix}evaluation_seconds_to_target"), human_seconds),
        shown(number(row, f"{prefix}best_valid"), human_share),
        shown(number(row, f"{prefix}test_at_best"), human_share),
    ]


def _curves(runs: Any, target: float) -> str:
    runs = [run for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []
    scores = Axis("validation accuracy", SHARES)
    drawn = []
    for key, axis in (
        ("passes", Axis("passes over the graph", whole=True, from_zero=True)),
        ("seconds", Axis("seconds of training", from_zero=True)),
    ):
        series = [Series(_name(run), _points(run, key)) for run in runs]
        words = "A line further to the left is sooner at the same accuracy; the target is a thin line."
        drawn.append(figure(f"Accuracy against {key}", lines(series, axis, scores, limit=target), words))
    return side_by_side(*drawn)


def _name(run: dict[str, Any]) -> str:
    seed = number(run, "seed")
    return f"{text(run, 'contestant') or 'unknown'}, seed {seed:.0f}" if seed is not None else "unknown"


def _points(run: dict[str, Any], key: str) -> list[tuple[float, float]]:
    curve = run.get("curve")
    found = [(number(point, key), number(point, "valid_metric")) for point in curve] if isinstance(curve, list) else []
    return [(a, b) for a, b in found if a is not None and b is not None]
