"""An epoch of ours beside one of DGL's and PyTorch Geometric's, and beside the bound.

    distgnn partition GRAPH --parts 1 --out parts
    python tests/bench/epoch/against_dgl.py parts --model gat --norm none --contestants dgl,distgnn,bound

Every contestant is a process of its own (`contestant.py`) with the same graph, weights and number of threads. They take
turns, so that whatever else the machine does meets all of them; one epoch of each is not counted. Not run by pytest.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
from contestant import CHECKED_LOSS, CONTESTANTS

from distgnn.cli.display import print_columns
from distgnn.config import ModelConfig, num_threads
from distgnn.errors import RunError
from distgnn.partition import read_manifest
from distgnn.system.processor import machine
from distgnn.system.units import human_bytes, human_seconds

CONTESTANT = Path(__file__).with_name("contestant.py")
COLUMNS = ["contestant", "epoch", "± iqr", "× dgl", "of the bound", "memory", "of dgl's"]
UNCOUNTED_EPOCHS = 1
SAME_LOSS = 1e-4  # relative: float32 sums in another order
SAME_LOSS_BFLOAT16 = 3e-2


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
        command = [sys.executable, str(CONTESTANT), json.dumps(order)]
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


def _cells(row: dict) -> list[str]:
    def ratio(name: str) -> str:
        return "" if row[name] is None else f"{row[name]:.2f}"

    return [
        row["name"],
        human_seconds(row["epoch_seconds_median"]),
        human_seconds(row["epoch_seconds_iqr"]),
        ratio("speedup_vs_dgl"),
        ratio("times_bound"),
        human_bytes(row["peak_rss_bytes"]),
        ratio("memory_vs_dgl"),
    ]


def main() -> None:
    """Compare the contestants that are named; writes a JSON file of the form of bench.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", help="folder made with --parts 1")
    parser.add_argument("--contestants", default="dgl,distgnn,distgnn/bfloat16,bound", help=", ".join(CONTESTANTS))
    parser.add_argument("--model", default="sage", choices=("sage", "gcn", "gat", "gin"))
    parser.add_argument("--norm", default="layer", choices=("layer", "none"))
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--hidden-feats", type=int, default=256)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=4, help="counted epochs of each")
    parser.add_argument("--threads", type=int, default=num_threads())
    parser.add_argument("--out", type=Path, default=Path("bench.json"))
    options = parser.parse_args()
    names = options.contestants.split(",")
    if unknown := [name for name in names if name not in CONTESTANTS]:
        parser.error(f"unknown contestant {unknown[0]}: choose from {', '.join(CONTESTANTS)}")
    graph = read_manifest(options.parts)["name"]
    model = ModelConfig(options.model, options.hidden_feats, options.num_layers, norm=options.norm)
    rows = run(options.parts, names, model, options.seed, options.rounds, options.threads)
    report = {"machine": machine(), "graph": graph, "command": sys.argv, "rows": rows}
    options.out.write_text(json.dumps(report, indent=1))
    print_columns(f"{graph}, {model.name} {model.num_layers} × {model.hidden_feats}", COLUMNS, list(map(_cells, rows)))


if __name__ == "__main__":
    main()
