"""What the page says of runs: where they ran, how they differ, curves, time, waiting, bytes, memory."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable
from itertools import accumulate
from typing import Any

from distgnn.cli.display import human_bytes, human_seconds, human_share
from distgnn.report.axes import BYTES, SECONDS, SHARES, Axis
from distgnn.report.bars import REST, Phases, bars, columns, stacked
from distgnn.report.charts import Series, lines
from distgnn.report.html import facts, figure, folded, part, plain, section, side_by_side, table
from distgnn.report.read import Inputs, Parts, Run, number, text

EPOCH = Axis("epoch", whole=True, from_zero=True)
RANK = Axis("rank", whole=True)
SPLITS = (("valid", "Validation"), ("test", "Test"), ("train", "Training"))
MOST_BARS = 16  # ranks that are shown as bars; more of them are a line
SLOW = 5  # times the median: an epoch that compiled
PLACES = {"run_dir", "parts", "overwrite", "resume"}  # settings that say where, not how
SENTENCE = (
    "Numbers of epochs count from 0, as in metrics.jsonl. The time of an epoch is that of training, without "
    "evaluation; the first epoch of a process also compiles, and medians and means of time leave it out."
)


def runs_section(inputs: Inputs) -> str:
    """Everything about the runs, side by side."""
    runs = inputs.runs
    if not runs:
        return ""
    return section(
        "runs",
        "Runs",
        SENTENCE,
        "".join(_notice(run) for run in runs),
        table(["", *(run.name for run in runs)], _overview(runs, inputs.parts)),
        part("Over seeds", _over_seeds(inputs.seeds)),
        part("Settings that differ", _differences(runs)),
        part("Where it ran", _where(runs)),
        part("Learning", _learning(runs)),
        part("Time of an epoch", _time(runs)),
        part("Waiting for other ranks", _waiting(runs)),
        part("Bytes and memory", _bytes_and_memory(runs)),
        part("All settings", *(folded(run.name, _all_settings(run)) for run in runs)),
    )


def _notice(run: Run) -> str:
    """Damage, and why a run is unfinished as far as its log says it."""
    found = list(run.damage)
    if run.summary is None:
        done = f"{len(run.records)} epochs are recorded" if run.records else "no epoch is recorded"
        found.insert(0, f"unfinished: there is no summary, {done}, so that its numbers are those so far")
        last = [line for log in run.logs[:1] for line in log if line.strip()][-1:]
        found += [f"the last line of rank 0's log: {line}" for line in last]
    if not found:
        return ""
    items = "".join(f"<li>{plain(line)}</li>" for line in found)
    return f'<div class="notice"><strong>{plain(run.name)}</strong><ul>{items}</ul></div>'


def shown(value: float | None, how: Callable[[float], str]) -> str | None:
    """A number in its unit, or None."""
    return None if value is None else how(value)


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _decimals(value: float) -> str:
    return f"{value:.4f}"


def _overview(runs: list[Run], partitions: list[Parts]) -> list[list[str | None]]:
    names = {one.checksum: one.name for one in partitions}
    rows: dict[str, list[str | None]] = {
        "state": ["finished" if run.summary is not None else "unfinished" for run in runs],
        "graph": [text(run.config, "data", "graph", "name") for run in runs],
        "model": [_model(run) for run in runs],
        "algorithm": [_algorithm(run) for run in runs],
        "ranks × threads": [_ranks(run) for run in runs],
        "partition on this page": [names.get(text(run.config, "data", "checksum") or "") for run in runs],
        "epochs": [_count(number(run.summary, "epochs") or len(run.records)) for run in runs],
        "best epoch": [shown(number(run.summary, "best_epoch"), _count) for run in runs],
        "test metric": [_metric(run, "test") for run in runs],
        "validation metric": [_metric(run, "valid") for run in runs],
        "final loss": [shown(_final_loss(run), _decimals) for run in runs],
        "epoch, median": [shown(_epoch_seconds(run), human_seconds) for run in runs],
        "waiting, share of the time": [shown(_wait_share(run), human_share) for run in runs],
        "sent per epoch, all ranks": [shown(_sent_bytes(run), human_bytes) for run in runs],
        "peak memory, largest rank": [human_bytes(max(peaks)) if (peaks := _peaks(run)) else None for run in runs],
        "gradient off the exact step": [shown(number(run.summary, "gradient_error"), "{:.2e}".format) for run in runs],
    }
    return [[name, *cells] for name, cells in rows.items() if any(cell is not None for cell in cells)]


def _over_seeds(seeds: list[tuple[str, dict[str, Any]]]) -> str:
    """Mean ± standard deviation of runs that were trained with several seeds."""

    def cell(summary: dict[str, Any], key: str, how: Callable[[float], str]) -> str | None:
        mean, deviation = number(summary, key), number(summary, f"{key}_std")
        return None if mean is None or deviation is None else f"{how(mean)} ± {how(deviation)}"

    head = ["runs", "seeds", "test metric", "validation metric", "epoch, median", "final loss"]
    rows = [
        [
            name,
            ", ".join(map(str, summary["seeds"])) if isinstance(summary.get("seeds"), list) else None,
            cell(summary, "test_metric", human_share),
            cell(summary, "valid_metric", human_share),
            cell(summary, "epoch_seconds_median", human_seconds),
            cell(summary, "final_loss", _decimals),
        ]
        for name, summary in seeds
    ]
    return table(head, rows) + "<p>Mean ± standard deviation over seeds.</p>" if rows else ""


def _model(run: Run) -> str | None:
    name = text(run.config, "model", "name")
    if name is None:
        return None
    sizes = number(run.config, "model", "num_layers"), number(run.config, "model", "hidden_feats")
    return name if None in sizes else f"{name} {sizes[0]:.0f} × {sizes[1]:.0f}"


def _algorithm(run: Run) -> str | None:
    words = [text(run.config, "run", key) for key in ("algorithm", "update", "wire")]
    return ", ".join(word for word in words if word) or None


def _ranks(run: Run) -> str | None:
    ranks, threads = number(run.summary, "ranks"), number(run.summary, "threads")
    if ranks is None:
        return f"{len(run.logs)} ranks" if run.logs else None
    return f"{ranks:.0f}" if threads is None else f"{ranks:.0f} × {threads:.0f}"


def _metric(run: Run, split: str) -> str | None:
    key = f"{split}_metric"
    value = number(run.summary, key)
    if value is None:
        curve = run.curve(key)
        return f"{human_share(curve[-1][1])} (epoch {curve[-1][0]:.0f})" if curve else None
    return f"{human_share(value)} {run.metric}"


def _final_loss(run: Run) -> float | None:
    value = number(run.summary, "final_loss")
    return value if value is not None else number(run.records[-1], "loss") if run.records else None


def _epoch_seconds(run: Run) -> float | None:
    value, seconds = number(run.summary, "epoch_seconds_median"), run.later("seconds")
    return value if value is not None else statistics.median(seconds) if seconds else None


def _wait_share(run: Run) -> float | None:
    value = number(run.summary, "wait_share")
    seconds = sum(run.later("seconds"))
    return value if value is not None else sum(run.later("wait_seconds_mean")) / seconds if seconds > 0 else None


def _sent_bytes(run: Run) -> float | None:
    value, sent = number(run.summary, "sent_bytes_per_epoch"), run.later("sent_bytes")
    return value if value is not None else statistics.median(sent) if sent else None


def _peaks(run: Run) -> list[float]:
    """Peak memory by rank; nothing where a rank's is missing."""
    listed = (run.summary or {}).get("peak_rss_bytes")
    found = [number(listed, rank) for rank in range(len(listed))] if isinstance(listed, list) else []
    known = [value for value in found if value is not None]
    return known if len(known) == len(found) else []


def flat(settings: Any, name: str = "") -> dict[str, str]:
    """Nested settings as {"run.wire": "int8"}."""
    if not isinstance(settings, dict):
        return {name: str(settings)}
    found: dict[str, str] = {}
    for key, value in settings.items():
        found |= flat(value, f"{name}.{key}" if name else str(key))
    return found


def _differences(runs: list[Run]) -> str:
    """A row for each setting, and each version, that is not the same in all runs."""
    if len(runs) < 2:
        return ""
    settings = [flat(run.config) | flat((run.summary or {}).get("versions", {}), "version") for run in runs]
    unfinished = [run.summary is None for run in runs]
    rows: list[list[str | None]] = []
    for name in dict.fromkeys(name for one in settings for name in one):
        values = [one.get(name) for one in settings]
        is_version = name.startswith("version")
        known = {value for value, cut in zip(values, unfinished, strict=True) if not (is_version and cut)}
        if name.split(".")[-1] not in PLACES and len(known) > 1:
            rows.append([name, *values])
    if not rows:
        return "<p>All settings are the same.</p>"
    return table(["setting", *(run.name for run in runs)], rows, "differences words")


def _where(runs: list[Run]) -> str:
    """Hosts, cores and threads of each rank, and versions."""
    placed = [(run, _places(run)) for run in runs]
    rows = [[run.name, rank, place] for run, places in placed for rank, place in places]
    versions = [flat((run.summary or {}).get("versions", {})) for run in runs]
    names = dict.fromkeys(name for one in versions for name in one)
    ranks = table(["run", "ranks", "host, cores, threads"], rows, "words") if rows else ""
    libraries = [[name, *(one.get(name) for one in versions)] for name in names]
    return ranks + (table(["version", *(run.name for run in runs)], libraries, "words") if libraries else "")


def _places(run: Run) -> list[tuple[str, str]]:
    """(ranks, where they run) from the logs; ranks at the same place share a line."""
    ranks: dict[str, list[int]] = {}
    for rank, log in enumerate(run.logs):
        started = [line.split("started: ", 1)[1] for line in log if "started: " in line]
        if started:
            ranks.setdefault(re.sub(r"process \d+, ", "", started[-1]), []).append(rank)
    return [(", ".join(map(str, found)), place) for place, found in ranks.items()]


def _curves(runs: Iterable[Run], key: str) -> list[Series]:
    return [Series(run.name, run.curve(key)) for run in runs]


def _learning(runs: list[Run]) -> str:
    loss = figure(
        "Training loss",
        lines(_curves(runs, "loss"), EPOCH, Axis("loss", from_zero=True)),
        "Mean loss over all training vertices, before the step of that epoch; lower is better.",
    )
    metric = " / ".join(dict.fromkeys(run.metric for run in runs))
    scores = [
        figure(
            f"{title} {metric}",
            lines(_curves(runs, f"{split}_metric"), EPOCH, Axis(metric, SHARES)),
            f"Of the {title.lower()} vertices, measured exactly (with all exchanges) at evaluated epochs.",
        )
        for split, title in SPLITS
    ]
    seconds = figure(
        f"Validation {metric} against time",
        lines(
            [Series(run.name, _against_time(run)) for run in runs],
            Axis("seconds of training", from_zero=True),
            Axis(metric, SHARES),
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


def _middle_half(epochs: list[Phases]) -> list[Phases]:
    """Without the shortest and the longest quarter: some epochs compile, and their mean would be that of compiling."""
    ordered = sorted(epochs, key=lambda phases: sum(phases.values()))
    quarter = len(ordered) // 4
    return ordered[quarter : len(ordered) - quarter]


def _time(runs: list[Run]) -> str:
    by_run = {run.name: [(r["epoch"], found) for r in run.records if (found := phases_of(r))] for run in runs}
    means: list[tuple[str, Phases]] = []
    for name, epochs in by_run.items():
        middle = _middle_half([phases for _, phases in epochs[1:] or epochs])
        if middle:
            means.append((name, {key: statistics.fmean(one[key] for one in middle) for key in middle[0]}))
    names = list(dict.fromkeys(phase for _, phases in means for phase in phases))
    cells = [[run, *(shown(phases.get(name), human_seconds) for name in names)] for run, phases in means]
    overall = figure(
        "Where the time of an epoch goes",
        stacked(means, Axis("time per epoch", SECONDS), human_seconds)
        + (table(["run", *names], cells) if cells else ""),
        "Means over the middle half of the epochs by their time (some of the others compile): aggregation and waiting "
        "are means over ranks, the sum of gradients (all-reduce) is that of the slowest rank, and the rest is what is "
        "left of the slowest rank's epoch.",
    )
    each = [
        figure(
            f"Time by phase: {name}",
            columns(epochs, Axis("time", SECONDS)),
            "A column per epoch (many epochs: the mean of neighbours); one that is cut at the top, as the first often "
            "is because it compiles, is longer than shown.",
        )
        for name, epochs in by_run.items()
    ]
    return overall + side_by_side(*each)


def _waiting(runs: list[Run]) -> str:
    several = any(value > 0 for run in runs for _, value in run.curve("wait_seconds"))
    if not several:
        return "<p>No rank waited for another one.</p>" if any(run.records for run in runs) else ""
    series = [Series(run.name, run.curve("wait_seconds_mean")[1:], _extremes(run)[1:]) for run in runs]
    over_epochs = figure(
        "Time that a rank waits in an epoch",
        lines(series, EPOCH, Axis("time", SECONDS, from_zero=True)),
        "Time in which a rank has nothing to compute until rows of others arrive: mean over ranks, the band from the "
        "rank that waits least to the one that waits most (first epoch left out).",
    )
    shares = figure(
        "Share of an epoch spent waiting",
        lines([Series(run.name, _wait_shares(run)) for run in runs], EPOCH, Axis("share", SHARES, from_zero=True)),
        "The same over the time of that epoch: an exchange that computing hides completely (overlap) adds nothing, so "
        "that 0 % means full overlap or no exchange.",
    )
    rows = [[run.name, name, *map(human_seconds, times)] for run in runs for name, times in exchange_waits(run)]
    head = ["run", "exchange (order, direction, width of a row)", "least", "mean", "most"]
    return side_by_side(over_epochs, shares) + (
        folded("Waiting for each exchange of an epoch, mean over epochs", table(head, rows)) if rows else ""
    )


def _wait_shares(run: Run) -> list[tuple[float, float]]:
    found = ((r["epoch"], number(r, "wait_seconds_mean"), number(r, "seconds")) for r in run.records[1:])
    return [(epoch, wait / seconds) for epoch, wait, seconds in found if wait is not None and seconds]


def _extremes(run: Run) -> list[tuple[float, float, float]]:
    found = ((r["epoch"], number(r, "wait_seconds_min"), number(r, "wait_seconds")) for r in run.records)
    return [(epoch, low, high) for epoch, low, high in found if low is not None and high is not None]


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


def _bytes_and_memory(runs: list[Run]) -> str:
    sent = figure(
        "Bytes sent in an epoch",
        lines(_curves(runs, "sent_bytes"), EPOCH, Axis("sent, all ranks", BYTES, from_zero=True)),
        "Feature rows and gradients that all ranks together sent in training steps; rows per pair of ranks stand with "
        "the partition, if one is on this page.",
    )
    return side_by_side(sent, *_memory(runs))


def _memory(runs: list[Run]) -> list[str]:
    sentence = "The most memory that each rank's process held at any time of its life, as the system counts it."
    peaks = [(run, found) for run in runs if (found := _peaks(run))]
    axis = Axis("peak memory", BYTES, from_zero=True)
    if sum(len(found) for _, found in peaks) > MOST_BARS:
        series = [Series(run.name, list(enumerate(found))) for run, found in peaks]
        return [figure("Peak memory of each rank", lines(series, RANK, axis), sentence)]
    rows = [
        (f"{run.name}, rank {rank}" if len(peaks) > 1 else f"rank {rank}", value)
        for run, found in peaks
        for rank, value in enumerate(found)
    ]
    return [figure("Peak memory of each rank", bars(rows, axis, human_bytes), sentence)] if rows else []


def _all_settings(run: Run) -> str:
    return facts(flat(run.config).items())
