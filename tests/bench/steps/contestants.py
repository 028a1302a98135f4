"""Contestants of a race to a target accuracy: each is a process that appends its epochs to a metrics.jsonl.

"--optimizer adam --lr 0.003"      `distgnn train` with these options, one rank per part
"dgl-sampling --lr 0.003"          DGL's neighbour sampling (sampling.py), one process; options: its parser's
"""

import json
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distgnn.config.option import new_name
from distgnn.errors import InputError, RunError
from distgnn.system.output import plain

SAMPLING = "dgl-sampling"
POLL_SECONDS, STOP_SECONDS = 0.1, 120.0


@dataclass(frozen=True)
class Contestant:
    """One line of the table: its text, and the words of it."""

    text: str

    @property
    def words(self) -> list[str]:
        """The options, without the name."""
        words = shlex.split(self.text)
        return words[1:] if self.samples else words

    @property
    def samples(self) -> bool:
        """Is it DGL's sampling?"""
        return self.text.split()[:1] == [SAMPLING]

    def check(self, parts: str, train: Any) -> None:
        """Raise InputError for options that there are not. `train`: the program's command of that name."""
        if self.samples:
            from sampling import parse_options

            parse_options(self.words)
            return
        try:
            train.make_context("train", [parts, *self.words])
        except Exception as error:  # typer's class for a wrong option depends on its version
            said = new_name(getattr(error, "option_name", None)) or getattr(error, "message", str(error))
            raise InputError(f"contestant {self.text!r}: {said}") from error

    def command(self, parts: str, folder: Path, seed: int, threads: int | None) -> list[str]:
        """What starts it; it writes folder/metrics.jsonl."""
        shared = ["--seed", str(seed), *([] if threads is None else ["--threads", str(threads)])]
        if self.samples:
            program = str(Path(__file__).with_name("sampling.py"))
            return [sys.executable, program, parts, "--out", str(folder), *shared, *self.words]
        given = [word.partition("=")[0] for word in self.words]
        own = [] if "--eval-every" in given else ["--eval-every", "1"]
        own += [] if "--patience" in given else ["--patience", "0"]  # the race says when it ends
        return [
            *(sys.executable, "-m", "distgnn.cli", "train", parts, *self.words, *own, *shared),
            *("--run-dir", str(folder), "--quiet"),
        ]


@dataclass(frozen=True)
class End:
    """When a run ends: after `limit` seconds of training, or `past` times those to the `target` (0: not sooner)."""

    limit: float
    target: float
    past: float = 0.0

    def seconds(self, records: list[dict]) -> float:
        """Seconds of training at which a run with these records ends."""
        spent = 0.0
        for record in records if self.past else ():
            spent += record["seconds"]
            if max(record.get("valid_metric") or 0, record.get("smoothed_valid_metric") or 0) >= self.target:
                return min(self.limit, self.past * spent)
        return self.limit


def run_one(contestant: Contestant, parts: str, folder: Path, seed: int, end: End, threads: int | None) -> dict:
    """One contestant with one seed, until `end`; returns {contestant, seed, curve, stopped}.

    Raises: RunError where it fails.
    """
    words, errors = contestant.command(parts, folder, seed, threads), tempfile.TemporaryFile()
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors)
    metrics, stopped = folder / "metrics.jsonl", "finished"
    try:
        while process.poll() is None:
            time.sleep(POLL_SECONDS)
            records = read_records(metrics) if stopped == "finished" else []
            if records and sum(record["seconds"] for record in records) > end.seconds(records):
                process.send_signal(signal.SIGTERM)
                stopped, waits_until = "limit", time.monotonic() + STOP_SECONDS
            if stopped == "limit" and time.monotonic() > waits_until:
                process.kill()
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
    with errors:  # a contestant that is stopped says so: nobody needs to read it
        errors.seek(0)
        said = errors.read().decode(errors="replace").strip().splitlines()
    if stopped == "finished" and process.returncode:
        last = f": {plain(said[-1])}" if said else ""
        raise RunError(f"contestant {contestant.text!r} failed with exit code {process.returncode}{last}")
    records = read_records(metrics)
    found = curve(records, end.seconds(records))
    return {"contestant": contestant.text, "seed": seed, "stopped": stopped, "curve": found}


def read_records(file: Path) -> list[dict]:
    """Whole lines of a metrics.jsonl that is being written."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def curve(records: list[dict], limit: float) -> list[dict]:
    """A point for each evaluation up to `limit` seconds of training: passes, seconds of training and of evaluation."""
    points, seconds, evaluation = [], 0.0, 0.0
    for record in records:
        seconds += record["seconds"]
        if seconds > limit:
            break
        if record.get("valid_metric") is None:
            continue
        evaluation += record["evaluation_seconds"]
        names = ("valid_metric", "test_metric", "smoothed_valid_metric", "smoothed_test_metric", "loss")
        point = {"passes": record["epoch"] + 1, "seconds": seconds, "evaluation_seconds": evaluation}
        points.append(point | {name: record[name] for name in names if name in record})
    return points
