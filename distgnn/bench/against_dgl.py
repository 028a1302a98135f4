"""`distgnn bench --against-dgl`: an epoch of ours beside one of DGL's and PyTorch Geometric's, and beside the bound.

Every contestant is a process of its own (`contestant.py`) with the same graph, weights and number of threads. They take
turns, so that whatever else the machine does meets all of them; one epoch of each is not counted.
"""

import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict

import numpy as np

from distgnn.bench.contestant import CHECKED_LOSS, CONTESTANTS
from distgnn.config import ModelConfig, check_choice
from distgnn.errors import RunError

UNCOUNTED_EPOCHS = 1
SAME_LOSS = 1e-4  # relative: float32 sums in another order
SAME_LOSS_BFLOAT16 = 3e-2


def parse_contestants(text: str) -> list[str]:
    """From "dgl,distgnn,bound".

    Raises:
        InputError: for a name that is no contestant.
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        check_choice("contestant", name, tuple(CONTESTANTS))
    return list(dict.fromkeys(names))


class Process:
    """A contestant at work."""

    def __init__(self, name: str, parts: str, model: ModelConfig, seed: int, threads: int):
        order = {"name": name, "parts": parts, "model": asdict(model), "seed": seed}
        environment = os.environ | {"OMP_NUM_THREADS": str(threads), "DISTGNN_NUM_THREADS": str(threads)}
        if name.startswith(("dgl", "pyg")):  # stock: what the command line sets for our ranks is not theirs
            for variable in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
                environment.pop(variable, None)
        else:
            environment.setdefault("GOMP_SPINCOUNT", "1000")
        command = [sys.executable, "-m", "distgnn.bench.contestant", json.dumps(order)]
        self.name = name
        self.seconds: list[float] = []
        self.losses: list[float] = []
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("Popen made no pipes")
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self.start_loss = self._answer()[CHECKED_LOSS]

    def train(self, epochs: int) -> None:
        """Train some epochs while everyone else sleeps."""
        self._say(f"train {epochs}")
        answer = self._answer()
        self.seconds += answer["seconds"]
        self.losses += answer["losses"]

    def finish(self) -> dict:
        """What it says at its end: peak memory, and what the bound knows."""
        self._say("quit")
        answer = self._answer()
        self._stdin.close()
        self._process.wait()
        return answer

    def stop(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _say(self, line: str) -> None:
        self._stdin.write(line + "\n")
        self._stdin.flush()

    def _answer(self) -> dict:
        line = self._stdout.readline()
        if not line:
            raise RunError(f"contestant {self.name} stopped: see what it wrote above")
        return json.loads(line)


def run(parts: str, names: list[str], model: ModelConfig, seed: int, rounds: int, threads: int) -> list[dict]:
    """Rows, one per contestant, with ratios to DGL and to the bound.

    Args:
        parts: partition folder with one part.
        names: of `CONTESTANTS`.
        rounds: counted epochs of each, in turn.

    Raises:
        RunError: where contestants do not compute the same loss, or one of them fails.
    """
    processes: list[Process] = []
    try:
        for name in names:
            processes.append(Process(name, parts, model, seed, threads))
        check_same_loss(processes)
        for turn in range(UNCOUNTED_EPOCHS + rounds):
            for process in processes:
                process.train(1)
            print(f"turn {turn}: " + _last_times(processes), file=sys.stderr, flush=True)
        return with_ratios([_row(process, process.finish(), model) for process in processes])
    finally:
        for process in processes:
            process.stop()


def check_same_loss(processes: list[Process]) -> None:
    """Without dropout, one model with one set of weights has one loss, whoever computes it."""
    losses = {process.name: process.start_loss for process in processes if process.start_loss is not None}
    if not losses:
        return
    first = next(iter(losses.values()))
    for name, loss in losses.items():
        tolerance = SAME_LOSS_BFLOAT16 if "bfloat16" in name else SAME_LOSS
        if not abs(loss - first) <= tolerance * abs(first):
            raise RunError(f"contestants do not train the same model: losses without dropout are {losses}")


def _last_times(processes: list[Process]) -> str:
    return ", ".join(f"{process.name} {process.seconds[-1]:.2f} s" for process in processes)


def _row(process: Process, said: dict, model: ModelConfig) -> dict:
    counted = process.seconds[UNCOUNTED_EPOCHS:] or process.seconds
    quarter, three_quarters = np.percentile(counted, [25, 75])
    return {
        "name": process.name,
        "model": model.name,
        "epoch_seconds_median": statistics.median(counted) + said.pop("aggregation_seconds", 0.0),
        "epoch_seconds_iqr": float(three_quarters - quarter),
        "epochs": len(counted),
        CHECKED_LOSS: process.start_loss,
        "losses": process.losses,
        **said,
    }


def with_ratios(rows: list[dict]) -> list[dict]:
    """Rows with speed and memory against stock DGL and seconds against the bound of their dtype (None: not there)."""
    by_name = {row["name"]: row for row in rows}
    stock = by_name.get("dgl")
    for row in rows:
        limit = by_name.get("bound/bfloat16" if "bfloat16" in row["name"] else "bound")
        seconds = row["epoch_seconds_median"]
        row["speedup_vs_dgl"] = stock["epoch_seconds_median"] / seconds if stock else None
        row["memory_vs_dgl"] = row["peak_rss_bytes"] / stock["peak_rss_bytes"] if stock else None
        row["times_bound"] = seconds / limit["epoch_seconds_median"] if limit else None
    return rows
