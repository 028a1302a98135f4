"""Figures of runs over one another: learning, time by phase, waiting, bytes, memory."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from itertools import accumulate
from typing import Any

from distgnn.bench.figures import number
from distgnn.config.task import LOWER_IS_BETTER
from distgnn.extras.report import charts
from distgnn.extras.report.charts import bars, lines, matrix
from distgnn.extras.report.html import figure, folded, shown, side_by_side, table
from distgnn.extras.report.read import Run
from distgnn.system.plots import BYTES, REST, SECONDS, SHARES, Axis, Phases, Series
from distgnn.system.units import human_bytes, human_seconds

EPOCH = Axis("epoch", whole=True, from_zero=True)
RANK = Axis("rank", whole=True)
SPLITS = (("valid", "Validation"), ("test", "Test"), ("train", "Training"))
MOST_BARS = 16  # ranks that are shown as bars; more of them are a line
SLOW = 5  # times the median: an epoch that compiled


def _curves(runs: Iterable[Run], key: str) -> list[Series]:
    return [Series(run.name, run.curve(key)) for run in runs]


def learning(runs: list[Run]) -> str:
    loss = figure(
        "Training loss",
        lines(_curves(runs, "loss"), EPOCH, Axis("loss", from_zero=True)),
        "Mean loss over the whole training split, before the step of that epoch; lower is better.",
    )
    metric = " / ".join(dict.fromkeys(run.metric for run in runs))
    errors = any(run.metric in LOWER_IS_BETTER for run in runs)
    axis = Axis(metric, from_zero=True) if errors else Axis(metric, SHARES)
    better = "; lower is better." if errors else "."
    scores = [
        figure(
            f"{title} {metric}",
            lines(_curves(runs, f"{split}_metric"), EPOCH, axis),
            f"Of the {title.lower()} split, measured exactly (with all exchanges) at evaluated epochs{better}",
        )
        for split, title in SPLITS
    ]
    seconds = figure(
        f"Validation {metric} against time",
        lines(
            [Series(run.name, _against_time(run)) for run in runs],
            Axis("seconds of training", from_zero=True),
            axis,
        ),
        f"The same over the seconds that training took since the first epoch, without evaluation; an epoch of more "
        f"than {SLOW} times the median, as compiling makes them, counts as the median.",
    )
    return side_by_side(loss, *scores, seconds)


def _against_time(run: Run) -> list[tuple[float, float]]:
    """(seconds of training after the first epoch, validation metric); an epoch that compiled counts as the median."""
    spent = [number(record, "seconds") for record in run.records]
    known = [seconds for seconds in spent[1:] if seconds is not None]
    if len(known) < max(len(spent) - 1, 1):
        return []
    usual = statistics.median(known)
    total = accumulate([0.0, *(usual if seconds > SLOW * usual else seconds for seconds in known)])
    scores = ((seconds, number(record, "valid_metric")) for seconds, record in zip(total, run.records, strict=True))
    return [(seconds, score) for seconds, score in scores if score is not None]


def phases_of(record: dict[str, Any]) -> Phases | None:
    """Seconds of one epoch by phase: means over ranks where they are recorded, and what is left of the epoch."""
    seconds, aggregate = number(record, "seconds"), number(record, "aggregate_seconds_mean")
    all_reduce, wait = number(record, "all_reduce_seconds"), number(record, "wait_seconds_mean")
    if seconds is None or aggregate is None or all_reduce is None or wait is None:
        return None
    rest = max(0.0, seconds - aggregate - all_reduce - wait)
    return {"aggregate": aggregate, REST: rest, "all-reduce": all_reduce, "wait": wait}


def time(runs: list[Run]) -> str:
    by_run = {run.name: [(r["epoch"], found) for r in run.records if (found := phases_of(r))] for run in runs}
    means: list[tuple[str, Phases]] = []
    for name, epochs in by_run.items():
        ordered = sorted((phases for _, phases in epochs[1:] or epochs), key=lambda phases: sum(phases.values()))
        quarter = len(ordered) // 4  # some epochs compile, and the mean of all would be that of compiling
        if middle := ordered[quarter : len(ordered) - quarter]:
            means.append((name, {key: statistics.fmean(one[key] for one in middle) for key in middle[0]}))
    names = list(dict.fromkeys(phase for _, phases in means for phase in phases))
    cells = [[run, *(shown(phases.get(name), human_seconds) for name in names)] for run, phases in means]
    overall = figure(
        "Where the time of an epoch goes",
        charts.stacked(means, Axis("time per epoch", SECONDS), human_seconds)
        + (table(["run", *names], cells) if cells else ""),
        "Means over the middle half of the epochs by their time (some of the others compile): aggregation and waiting "
        "are means over ranks, the sum of gradients (all-reduce) is that of the slowest rank, and the rest is what is "
        "left of the slowest rank's epoch.",
    )
    each = [
        figure(
            f"Time by phase: {name}",
            charts.columns(epochs, Axis("time", SECONDS)),
            "A column per epoch (many epochs: the mean of neighbours); one that is cut at the top, as the first often "
            "is because it compiles, is longer than shown.",
        )
        for name, epochs in by_run.items()
    ]
    return overall + side_by_side(*each)


def waiting(runs: list[Run]) -> str:
    several = any(value > 0 for run in runs for _, value in run.curve("wait_seconds"))
    if not several:
        return "<p>No rank waited for another one.</p>" if any(run.records for run in runs) else ""
    series, shares_of = [], []
    for run in runs:
        waits = [[number(r, f"wait_seconds{end}") for end in ("_min", "", "_mean")] for r in run.records]
        numbers = [(r["epoch"], *found) for r, found in zip(run.records, waits, strict=True)]
        band = [(epoch, low, high) for epoch, low, high, _ in numbers if low is not None and high is not None]
        series.append(Series(run.name, run.curve("wait_seconds_mean")[1:], band[1:]))
        spent = [
            (epoch, mean, number(r, "seconds")) for (epoch, _, _, mean), r in zip(numbers, run.records, strict=True)
        ]
        share = [(epoch, mean / seconds) for epoch, mean, seconds in spent[1:] if mean is not None and seconds]
        shares_of.append(Series(run.name, share))
    over_epochs = figure(
        "Time that a rank waits in an epoch",
        lines(series, EPOCH, Axis("time", SECONDS, from_zero=True)),
        "Time in which a rank has nothing to compute until rows of others arrive: mean over ranks, the band from the "
        "rank that waits least to the one that waits most (first epoch left out).",
    )
    shares = figure(
        "Share of an epoch spent waiting",
        lines(shares_of, EPOCH, Axis("share", SHARES, from_zero=True)),
        "The same over the time of that epoch: an exchange that computing hides completely (overlap) adds nothing, so "
        "that 0 % means full overlap or no exchange.",
    )
    rows = [[run.name, name, *map(human_seconds, times)] for run in runs for name, times in exchange_waits(run)]
    head = ["run", "exchange (order, direction, width of a row)", "least", "mean", "most"]
    return side_by_side(over_epochs, shares) + (
        folded("Waiting for each exchange of an epoch, mean over epochs", table(head, rows)) if rows else ""
    )


def exchange_waits(run: Run) -> list[tuple[str, list[float]]]:
    """(exchange, [least, mean, most] seconds over ranks, mean over epochs after the first)."""
    found: dict[str, list[list[float]]] = {}
    for record in run.records[1:] or run.records:
        waits = record.get("exchange_waits")
        for name in waits if isinstance(waits, dict) else {}:
            times = [number(waits, name, place) for place in range(3)]
            known = [seconds for seconds in times if seconds is not None]
            if len(known) == 3:
                found.setdefault(name, []).append(known)
    return [(name, [statistics.fmean(column) for column in zip(*rows, strict=True)]) for name, rows in found.items()]


def bytes_and_memory(runs: list[Run]) -> str:
    sent = figure(
        "Bytes sent in an epoch",
        lines(_curves(runs, "sent_bytes"), EPOCH, Axis("sent, all ranks", BYTES, from_zero=True)),
        "Feature rows and their gradients that all ranks together sent in training steps.",
    )
    pairs = [
        figure(
            f"Bytes per pair of ranks{f', {run.name}' if len(runs) > 1 else ''}",
            matrix(run.pair_bytes, "bytes"),
            "Bytes of feature rows that one rank sent to another in the training step of an epoch (median over epochs, "
            "the first left out).",
        )
        for run in runs
        if len(run.pair_bytes) > 1
    ]
    peaks = [(run, run.peak_bytes) for run in runs if run.peak_bytes]
    axis = Axis("peak memory", BYTES, from_zero=True)
    if sum(len(found) for _, found in peaks) > MOST_BARS:
        drawn = lines([Series(run.name, list(enumerate(found))) for run, found in peaks], RANK, axis)
    else:
        of_run = "{0}, rank {1}" if len(peaks) > 1 else "rank {1}"
        rows = [(of_run.format(run.name, rank), value) for run, found in peaks for rank, value in enumerate(found)]
        drawn = bars(rows, axis, human_bytes)
    sentence = "The most memory that each rank's process held at any time of its life, as the system counts it."
    return side_by_side(sent, *pairs, figure("Peak memory of each rank", drawn, sentence))
