"""What a report is made of: run folders, partition folders and JSON of commands, read without torch and without MPI.

Nothing that is read is believed: what is missing or of another type is left out of the page, and damage is named.

    run/config.toml, metrics.jsonl, summary.json, logs/rank-0.log …       a run; without summary.json it is unfinished
    run/config.toml, summary.json, seed-0/, seed-1/ …                     one run per seed (`train --runs`)
    bench.json                                                            {"machine", "graph", "command", "rows"}
    parts/partition.json                                                  a partition, by its manifest alone
    replay.json, plan.json …                                              what any other command wrote
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distgnn.bench.figures import number, numbers, text
from distgnn.config import read_sections
from distgnn.errors import InputError
from distgnn.system.atomic import read_text
from distgnn.train.run.run_folder import read_metrics


@dataclass
class Source:
    """A bench.json, what another command wrote, or what `distgnn info --json` says of a partition folder."""

    path: str
    content: Any
    name: str = ""


@dataclass(kw_only=True)
class Run(Source):
    """One run folder, with its config.toml as `content`.

    Args: summary: None where the run did not finish; damage: what could not be read; logs: lines of each rank.
    """

    records: list[dict[str, Any]]
    summary: dict[str, Any] | None
    damage: list[str]
    logs: list[list[str]]

    @property
    def metric(self) -> str:
        """Name of the metric, as far as the run says it."""
        named = text(self.summary or {}, "metric") or text(self.content, "train", "metric")
        if (text(self.content, "train", "task") or "").endswith("regression"):
            return named or text(self.content, "train", "loss") or "mse"
        return named or "metric"

    @property
    def pair_bytes(self) -> list[list[int]]:
        """Bytes per epoch from each rank to each; nothing where they are not a square of numbers."""
        listed: Any = (self.summary or {}).get("pair_bytes_per_epoch")
        return listed if is_square(listed) else []

    def curve(self, key: str) -> list[tuple[float, float]]:
        """(epoch, value) of every record that has the value."""
        return [(r["epoch"], value) for r in self.records if (value := number(r, key)) is not None]


Inputs = dict[str, list[Any]]  # a Run or Sources of each of KINDS
KINDS = ("run", "benchmark", "partition", "output")


def read_inputs(paths: Iterable[str]) -> Inputs:
    """Read run folders, partition folders and JSON of commands, in any order.

    Raises: InputError, RunError, PartitionFormatError for what is none of them, or cannot be read.
    """
    found: Inputs = {kind: [] for kind in KINDS}
    seen = set()
    for path in paths:
        place = Path(path).resolve()
        if place in seen:
            raise InputError(f"{path} is given twice")
        seen.add(place)
        if not place.exists():
            raise InputError(f"{path}: no such file or folder (a run folder, a partition, or JSON of a command)")
        if place.is_file():
            _read_json(path, found)
        elif (place / "partition.json").is_file():
            from distgnn.partition import describe

            found["partition"].append(Source(path, describe(path)))
        elif (place / "config.toml").is_file():
            seeds = [one for one in Path(path).glob("seed-*") if re.fullmatch(r"seed-\d+", one.name)]
            seeds = sorted((one for one in seeds if (one / "config.toml").is_file()), key=lambda one: int(one.name[5:]))
            found["run"] += [_read_run(folder) for folder in seeds or [Path(path)]]
            summary = _read_summary(place, []) if seeds else None
            if summary is not None:
                found["output"].append(Source(path, {"over seeds": summary}))
        else:
            raise InputError(f"{path} is neither a run folder (config.toml) nor a partition folder (partition.json)")
    for same_kind in found.values():
        _give_names(same_kind)
    return found


def _give_names(inputs: list[Any]) -> None:
    """Name each input by the end of its path, as short as tells it from the others."""
    places = [Path(one.path).resolve().parts for one in inputs]
    for one, place in zip(inputs, places, strict=True):
        length = 1
        while length < len(place) and sum(other[-length:] == place[-length:] for other in places) > 1:
            length += 1
        if isinstance(one, Run) and re.fullmatch(r"seed-\d+", place[-1]):
            length = max(length, min(2, len(place)))
        one.name = "/".join(place[-length:])


def _read_run(folder: Path) -> Run:
    """A run, with the last 200 lines of each rank's log, by rank."""
    damage: list[str] = []
    logs: dict[int, list[str]] = {}
    for path in (folder / "logs").glob("rank-*.log"):
        if rank := re.fullmatch(r"rank-(\d+)\.log", path.name):
            with suppress(OSError):
                logs[int(rank[1])] = read_text(path, "replace").splitlines()[-200:]
    return Run(
        str(folder),
        read_sections(folder / "config.toml"),
        records=read_metrics(folder / "metrics.jsonl", damage),
        summary=_read_summary(folder, damage),
        damage=damage,
        logs=[logs[rank] for rank in sorted(logs)],
    )


def _read_summary(folder: Path, damage: list[str]) -> dict[str, Any] | None:
    path = folder / "summary.json"
    try:
        found = json.loads(read_text(path)) if path.exists() else None
        if found is None or isinstance(found, dict):
            return found
        error = "it is no JSON object"
    except (OSError, ValueError, RecursionError) as caught:
        error = str(caught)
    damage.append(f"summary.json cannot be read ({error}): the run is shown as unfinished")
    return None


def _read_json(path: str, found: Inputs) -> None:
    """A bench.json, or what any other command has written."""
    try:
        content = json.loads(read_text(path))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as JSON of a command: {error}") from error
    if not content or not (isinstance(content, dict) or is_table(content)):
        raise InputError(f"{path} is no JSON of a command: expected an object, or a list of objects")
    rows = content.get("rows") if isinstance(content, dict) else None
    named = is_table(rows) and all(
        text(row, "name") is not None and number(row, "epoch_seconds_median") is not None for row in rows or ()
    )
    found["benchmark" if named else "output"].append(Source(path, content))


def is_table(value: Any) -> bool:
    """A list of objects?"""
    return isinstance(value, list) and bool(value) and all(isinstance(one, dict) for one in value)


def is_square(value: Any) -> bool:
    """Numbers for each pair of ranks?"""
    rows = value if isinstance(value, list) and len(value) > 1 else [None]
    return all(isinstance(row, list) and len(row) == len(rows) and None not in numbers(row) for row in rows)
