"""The page, and what it says of runs: results side by side, where they ran, how they differ. Figures: run_figures."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import distgnn
from distgnn.bench.figures import number, text
from distgnn.config.task import human_metric
from distgnn.extras.report.benches import bench_section
from distgnn.extras.report.html import facts, folded, part, plain, section, shown, table
from distgnn.extras.report.partitions import partition_section
from distgnn.extras.report.read import Inputs, Run
from distgnn.extras.report.run_figures import bytes_and_memory, learning, time, waiting
from distgnn.extras.report.style import style_sheet
from distgnn.system.units import human_bytes, human_seconds, human_share

PLACES = {"run_dir", "parts", "overwrite", "resume"}  # settings that say where, not how
SENTENCE = (
    "Numbers of epochs count from 0, as in metrics.jsonl. The time of an epoch is that of training, without "
    "evaluation; the first epoch of a process also compiles, and medians and means of time leave it out."
)


def runs_section(inputs: Inputs) -> str:
    runs = inputs.runs
    if not runs:
        return ""
    names = {one.checksum: one.name for one in inputs.parts}
    found = [_overview(run, names) for run in runs]
    lines = [[name, *(one[name] for one in found)] for name in found[0] if any(one[name] is not None for one in found)]
    return section(
        "runs",
        "Runs",
        SENTENCE,
        "".join(_notice(run) for run in runs),
        table(["", *(run.name for run in runs)], lines),
        part("Over seeds", _over_seeds(inputs.seeds)),
        part("Settings that differ", _differences(runs)),
        part("Where it ran", _where(runs)),
        part("Learning", learning(runs)),
        part("Time of an epoch", time(runs)),
        part("Waiting for other ranks", waiting(runs)),
        part("Bytes and memory", bytes_and_memory(runs)),
        part("Memory at the peak", _at_the_peak(runs)),
        part("All settings", *(folded(run.name, facts(flat(run.config).items())) for run in runs)),
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


def _or(value: float | None, otherwise: Callable[[], float | None]) -> float | None:
    """What the summary says; without one, what the records so far give."""
    return otherwise() if value is None else value


def _overview(run: Run, names: dict[str, str]) -> dict[str, str | None]:
    """The lines of a run. Args: names: of the partitions on the page, by their checksums."""

    def said(key: str) -> float | None:
        return number(run.summary, key)

    def words(*keys: str) -> str | None:
        return ", ".join(word for key in keys if (word := text(run.config, "run", key))) or None

    def middle(key: str) -> float | None:
        return statistics.median(found) if (found := run.later(key)) else None

    def waited() -> float | None:
        seconds = sum(run.later("seconds"))
        return sum(run.later("wait_seconds_mean")) / seconds if seconds > 0 else None

    model = text(run.config, "model", "name")
    sizes = number(run.config, "model", "num_layers"), number(run.config, "model", "hidden_feats")
    if model is not None and None not in sizes:
        model = f"{model} {sizes[0]:.0f} × {sizes[1]:.0f}"
    ranks = shown(said("ranks"), "{:.0f}".format)
    if ranks is None:
        ranks = f"{len(run.logs)} ranks" if run.logs else None
    elif (threads := said("threads")) is not None:
        ranks = f"{ranks} × {threads:.0f}"
    loss = _or(said("final_loss"), lambda: number(run.records[-1], "loss") if run.records else None)
    return {
        "state": "finished" if run.summary is not None else "unfinished",
        "graph": text(run.config, "data", "graph", "name"),
        "model": model,
        "algorithm": words("algorithm", "update", "wire"),
        "ranks × threads": ranks,
        "partition on this page": names.get(text(run.config, "data", "checksum") or ""),
        "epochs": f"{said('epochs') or len(run.records):,.0f}",
        "best epoch": shown(said("best_epoch"), "{:,.0f}".format),
        "test metric": _metric(run, "test"),
        "validation metric": _metric(run, "valid"),
        "final loss": shown(loss, "{:.4f}".format),
        "epoch, median": shown(_or(said("epoch_seconds_median"), lambda: middle("seconds")), human_seconds),
        "waiting, share of the time": shown(_or(said("wait_share"), waited), human_share),
        "sent per epoch, all ranks": shown(
            _or(said("sent_bytes_per_epoch"), lambda: middle("sent_bytes")), human_bytes
        ),
        "peak memory, largest rank": human_bytes(max(run.peak_bytes)) if run.peak_bytes else None,
        "gradient off the exact step": shown(said("gradient_error"), "{:.2e}".format),
    }


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
            cell(summary, "final_loss", "{:.4f}".format),
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


def _metric(run: Run, split: str) -> str | None:
    key = f"{split}_metric"
    value = number(run.summary, key)
    if value is None:
        curve = run.curve(key)
        return f"{human_metric(run.metric, curve[-1][1])} (epoch {curve[-1][0]:.0f})" if curve else None
    return f"{human_metric(run.metric, value)} {run.metric}"


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
    rows = []
    for run in runs:
        placed: dict[str, list[int]] = {}  # ranks at the same place share a line
        for rank, log in enumerate(run.logs):
            started = [line.split("started: ", 1)[1] for line in log if "started: " in line]
            if started:
                placed.setdefault(re.sub(r"process \d+, ", "", started[-1]), []).append(rank)
        rows += [[run.name, ", ".join(map(str, ranks)), place] for place, ranks in placed.items()]
    versions = [flat((run.summary or {}).get("versions", {})) for run in runs]
    names = dict.fromkeys(name for one in versions for name in one)
    ranks = table(["run", "ranks", "host, cores, threads"], rows, "words") if rows else ""
    libraries = [[name, *(one.get(name) for one in versions)] for name in names]
    return ranks + (table(["version", *(run.name for run in runs)], libraries, "words") if libraries else "")


def make_page(inputs: Inputs) -> str:
    runs = runs_section(inputs)
    benches = [bench_section(bench, place) for place, bench in enumerate(inputs.benches)]
    partitions = [partition_section(parts, place) for place, parts in enumerate(inputs.parts)]
    found: list[Any] = [*inputs.runs, *inputs.benches, *inputs.parts]
    title = f"DistGNN report: {', '.join(one.name for one in found)}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><link rel="icon" href="data:,">'
        f"<title>{plain(title)}</title><style>{style_sheet()}</style></head><body>"
        f"<h1>DistGNN report</h1>{_contents(inputs)}"
        f"<main>{runs}{''.join(benches)}{''.join(partitions)}</main>"
        f"<footer>Written by distgnn {plain(distgnn.__version__)} from the files named above; every number is theirs. "
        "Full-batch training: each epoch is one step over the whole graph, whose parts lie on the ranks (processes). "
        "</footer></body></html>\n"
    )


def _contents(inputs: Inputs) -> str:
    """A sentence on what is here, and a link to each section."""
    counts = ((len(inputs.runs), "run"), (len(inputs.benches), "benchmark"), (len(inputs.parts), "partition"))
    named = [f"{count} {name}{'s' * (count != 1)}" for count, name in counts if count]
    links = [("runs", "Runs")] if inputs.runs else []
    links += [(f"bench-{place}", f"Benchmark {bench.name}") for place, bench in enumerate(inputs.benches)]
    links += [(f"parts-{place}", f"Partition {parts.name}") for place, parts in enumerate(inputs.parts)]
    shown = "".join(f'<a href="#{anchor}">{plain(name)}</a>' for anchor, name in links)
    return f"<p>{', '.join(named)}.</p><nav>{shown}</nav>"
