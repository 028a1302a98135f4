"""What the page says of runs: results side by side, where they ran, how they differ; figures over one another."""

from __future__ import annotations

import re
import statistics
from itertools import accumulate
from typing import Any

from distgnn.bench.figures import number, numbers, text
from distgnn.config.task import LOWER_IS_BETTER
from distgnn.extras.report.page import Item, Section, facts, figures, flat, human, lines, matrix, stacked
from distgnn.extras.report.read import Run
from distgnn.system.plots import BYTES, REST, SECONDS, SHARES, Axis, Phases, Series
from distgnn.system.units import human_seconds

PLACES = {"run_dir", "parts", "overwrite", "resume"}  # settings that say where, not how
SIZES = ("num_layers", "hidden_feats")
ELSEWHERE = {"versions", "epochs", "run_dir"}  # of a summary: shown below
PHASES = ("aggregate", REST, "all-reduce", "wait")
SLOW = 5  # times the median: an epoch that compiled
EPOCH = Axis("epoch", whole=True, from_zero=True)
ABOUT = (
    "Numbers of epochs count from 0, as in metrics.jsonl. The time of an epoch is that of training, without "
    "evaluation; the first epoch of a process also compiles, and medians and means of time leave it out."
)


def runs_section(runs: list[Run]) -> Section:
    folded = [facts(run.name, all_settings(run).items(), folded=True) for run in runs]
    items = [*map(_notice, runs), _overview(runs), _differences(runs), _where(runs)]
    return Section("Runs", ABOUT, [*items, _learning(runs), *_time(runs), _bytes(runs), *folded])


def all_settings(run: Run) -> dict[str, str]:
    """With the versions of libraries, once the run is finished."""
    return flat(run.content) | flat({"version": (run.summary or {}).get("versions", {})})


def _notice(run: Run) -> Item:
    """Damage, and why a run is unfinished as far as its log says it."""
    found = list(run.damage)
    if run.summary is None:
        done = f"{len(run.records)} epochs are recorded" if run.records else "no epoch is recorded"
        found.insert(0, f"unfinished: there is no summary, {done}, so that its numbers are those so far")
        last = [line for log in run.logs[:1] for line in log if line.strip()][-1:]
        found += [f"the last line of rank 0's log: {line}" for line in last]
    return Item(run.name if found else "", [[line] for line in found], kind="notice words")


def _overview(runs: list[Run]) -> Item:
    """A row for each number of the summaries, with what was trained."""
    found = []
    for run in runs:
        algorithm = ", ".join(filter(None, (text(run.content, "run", key) for key in ("algorithm", "update", "wire"))))
        model = [text(run.content, "model", "name"), *(run.content.get("model", {}).get(key) for key in SIZES)]
        first: dict[str, Any] = {"state": "finished" if run.summary is not None else "unfinished"}
        first |= {"graph": text(run.content, "data", "graph", "name")}
        first |= {"model": " ".join(str(one) for one in model if one is not None), "algorithm": algorithm}
        first |= {"epochs": str(len(run.records))}
        numbers_ = {key: value for key, value in (run.summary or {}).items() if key not in ELSEWHERE}
        found.append(first | flat(numbers_, human))
    keys = list(dict.fromkeys(key for one in found for key in one if any(other.get(key) for other in found)))
    rows = [[key.replace("_", " "), *(one.get(key) for one in found)] for key in keys]
    return Item("", rows, ["", *(run.name for run in runs)])


def _differences(runs: list[Run]) -> Item:
    """A row for each setting, and each version, that is not the same in all runs."""
    settings = [all_settings(run) for run in runs]
    rows: list[list[str | None]] = []
    for name in dict.fromkeys(name for one in settings for name in one):
        values = [one.get(name) for one in settings]
        is_version = name.startswith("version")
        known = {value for value, run in zip(values, runs, strict=True) if not is_version or run.summary is not None}
        if name.split(".")[-1] not in PLACES and len(known) > 1:
            rows.append([name, *values])
    if rows:
        return Item("Settings that differ", rows, ["setting", *(run.name for run in runs)], kind="differences words")
    return Item("", sentence="All settings are the same." if len(runs) > 1 else "")


def _where(runs: list[Run]) -> Item:
    """Hosts, cores and threads of each rank."""
    rows = []
    for run in runs:
        placed: dict[str, list[int]] = {}  # ranks at the same place share a line
        for rank, log in enumerate(run.logs):
            started = [line.split("started: ", 1)[1] for line in log if "started: " in line]
            if started:
                placed.setdefault(re.sub(r"process \d+, ", "", started[-1]), []).append(rank)
        rows += [[run.name, ", ".join(map(str, ranks)), place] for place, ranks in placed.items()]
    return Item("Where it ran", rows, ["run", "ranks", "host, cores, threads"], kind="words")


def _curves(runs: list[Run], key: str) -> list[Series]:
    return [Series(run.name, run.curve(key)) for run in runs]


def _learning(runs: list[Run]) -> Item:
    metric = " / ".join(dict.fromkeys(run.metric for run in runs))
    errors = any(run.metric in LOWER_IS_BETTER for run in runs)
    axis = Axis(metric, from_zero=True) if errors else Axis(metric, SHARES)
    better = "; lower is better." if errors else "."
    loss = lines(_curves(runs, "loss"), EPOCH, Axis("loss", from_zero=True))
    drawn = [("Training loss", loss, "Over the whole training split, before the step of that epoch; lower is better.")]
    for split, title in (("valid", "Validation"), ("test", "Test"), ("train", "Training")):
        sentence = f"Of the {title.lower()} split, measured exactly at evaluated epochs{better}"
        drawn.append((f"{title} {metric}", lines(_curves(runs, f"{split}_metric"), EPOCH, axis), sentence))
    over_time = [Series(run.name, _against_time(run)) for run in runs]
    sentence = f"Since the first epoch, without evaluation; more than {SLOW} times the median counts as the median."
    seconds = Axis("seconds of training", from_zero=True)
    return figures("Learning", *drawn, (f"Validation {metric} against time", lines(over_time, seconds, axis), sentence))


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
    keys = ("seconds", "aggregate_seconds_mean", "all_reduce_seconds", "wait_seconds_mean")
    seconds, *others = (number(record, key) for key in keys)
    if seconds is None or None in others:
        return None
    aggregate, all_reduce, wait = (one or 0.0 for one in others)
    rest = max(0.0, seconds - aggregate - all_reduce - wait)
    return dict(zip(PHASES, (aggregate, rest, all_reduce, wait), strict=True))


def _time(runs: list[Run]) -> list[Item]:
    """Phases of an epoch, and waiting of ranks."""
    means: list[tuple[str, Phases]] = []
    for run in runs:
        found = [phases for record in run.records if (phases := phases_of(record))]
        if counted := found[1:] or found:  # the first one compiles
            means.append((run.name, {key: statistics.median(one[key] for one in counted) for key in PHASES}))
    cells = [[name, *map(human_seconds, phases.values())] for name, phases in means]
    sentence = "Medians over epochs of means over ranks; all-reduce, and what is left, of the slowest rank."
    drawn = stacked(means, Axis("time per epoch", SECONDS), human_seconds)
    waits = [Series(run.name, run.curve("wait_seconds_mean")[1:]) for run in runs]
    several = any(value > 0 for run in runs for _, value in run.curve("wait_seconds"))
    waiting = lines(waits, EPOCH, Axis("time", SECONDS, from_zero=True)) if several else ""
    idle = "Mean over ranks in which a rank has nothing to compute until rows arrive."
    return [
        figures("Time of an epoch", ("Where the time of an epoch goes", drawn, sentence)),
        Item("", cells, ["run", *PHASES]),
        figures("Waiting for other ranks", ("Time that a rank waits in an epoch", waiting, idle)),
    ]


def _bytes(runs: list[Run]) -> Item:
    """Bytes of epochs and of pairs of ranks, and the peak of each rank."""
    sent = lines(_curves(runs, "sent_bytes"), EPOCH, Axis("sent, all ranks", BYTES, from_zero=True))
    pairs = [
        (f"Bytes per pair of ranks, {run.name}", matrix(run.pair_bytes, "bytes"), "In a training step (median).")
        for run in runs
        if run.pair_bytes
    ]
    of_ranks = [(run.name, numbers((run.summary or {}).get("peak_rss_bytes"))) for run in runs]
    peaks = [Series(name, [(rank, one) for rank, one in enumerate(found) if one]) for name, found in of_ranks]
    drawn = lines(peaks, Axis("rank", whole=True), Axis("peak memory", BYTES, from_zero=True))
    about_peak = "The most memory that each rank's process held, as the system counts it."
    first = "Bytes sent in an epoch", sent, "Rows and gradients of all ranks, in training steps."
    return figures("Bytes and memory", first, *pairs, ("Peak memory of each rank", drawn, about_peak))
