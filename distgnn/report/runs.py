"""What the page says of runs: their results side by side, where they ran, how they differ. Figures: run_figures."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

from distgnn.report.html import facts, folded, part, plain, section, shown, table
from distgnn.report.read import Inputs, Parts, Run, number, text
from distgnn.report.run_figures import bytes_and_memory, learning, time, waiting
from distgnn.system.units import human_bytes, human_metric, human_seconds, human_share

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
        part("Learning", learning(runs)),
        part("Time of an epoch", time(runs)),
        part("Waiting for other ranks", waiting(runs)),
        part("Bytes and memory", bytes_and_memory(runs)),
        part("Memory at the peak", _at_the_peak(runs)),
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
        "peak memory, largest rank": [human_bytes(max(run.peak_bytes)) if run.peak_bytes else None for run in runs],
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
            cell(summary, "test_metric", partial(human_metric, text(summary, "metric") or "")),
            cell(summary, "valid_metric", partial(human_metric, text(summary, "metric") or "")),
            cell(summary, "epoch_seconds_median", human_seconds),
            cell(summary, "final_loss", _decimals),
        ]
        for name, summary in seeds
    ]
    return table(head, rows) + "<p>Mean ± standard deviation over seeds.</p>" if rows else ""


def _at_the_peak(runs: list[Run]) -> str:
    """What `--memory-report` found: of each block the most that a rank has."""
    found = {run.name: blocks for run in runs if (blocks := run.memory_blocks)}
    names = dict.fromkeys(name for blocks in found.values() for name in blocks)

    def cell(values: list[float]) -> str | None:
        most = max(values, default=0)
        where = f" on rank {values.index(most)}" if len(values) > 1 else ""
        return f"{human_bytes(most)}{where}" if most else None

    rows = [[name, *(cell(blocks.get(name, [])) for blocks in found.values())] for name in names]
    return table(["block, most of a rank", *found], [row for row in rows if any(row[1:])]) if found else ""


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
        return f"{human_metric(run.metric, curve[-1][1])} (epoch {curve[-1][0]:.0f})" if curve else None
    return f"{human_metric(run.metric, value)} {run.metric}"


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


def _all_settings(run: Run) -> str:
    return facts(flat(run.config).items())
