"""Two ranks of one thread against one rank of two threads on the same cores: what does cutting the graph cost?

    python tests/bench/delayed/sockets.py PARTS-1 PARTS-2 [--rounds 3] [--epochs 8] [--hidden-feats 256]

Both train the same model with `cd-0`, in turn, a job each; the first two epochs of a job are not counted. Seconds are
medians over all counted epochs, phases means over ranks (the all-reduce: the slowest rank). Needs two idle cores.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

UNCOUNTED_EPOCHS = 2
PHASES = ("aggregate_seconds", "wait_seconds", "all_reduce_seconds")


def main() -> None:
    """Alternate the two and print a Markdown row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("one")
    parser.add_argument("two")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--hidden-feats", type=int, default=256)
    options = parser.parse_args()
    found: dict[str, list[dict]] = {"1 x 2": [], "2 x 1": []}
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(options.rounds):
            for name, parts, threads in (("1 x 2", options.one, 2), ("2 x 1", options.two, 1)):
                found[name] += train(Path(folder) / "run", parts, threads, options)
    print("| ranks x threads | epoch | ± iqr | aggregate | wait | all-reduce | dense and packing | MB sent |")
    print("|---|---|---|---|---|---|---|---|")
    for name, records in found.items():
        seconds = sorted(record["seconds"] for record in records)
        median = {phase: statistics.median(mean_of(record, phase) for record in records) for phase in PHASES}
        rest = statistics.median(r["seconds"] - sum(mean_of(r, phase) for phase in PHASES) for r in records)
        spread = seconds[3 * len(seconds) // 4] - seconds[len(seconds) // 4]
        cells = [name, f"{statistics.median(seconds):.4f}", f"{spread:.4f}"]
        cells += [f"{median[phase]:.4f}" for phase in PHASES] + [f"{rest:.4f}"]
        print("| " + " | ".join([*cells, f"{records[0]['sent_bytes'] / 1e6:.1f}"]) + " |")
    one, two = (statistics.median(record["seconds"] for record in found[name]) for name in found)
    print(f"\nspeed of 2 x 1 against 1 x 2: {one / two:.3f}", flush=True)


def mean_of(record: dict, phase: str) -> float:
    """A phase's seconds, mean over ranks."""
    return record.get(f"{phase}_mean", record.get(phase, 0.0))


def train(run: Path, parts: str, threads: int, options: argparse.Namespace) -> list[dict]:
    """The counted epochs of one job."""
    command = [sys.executable, "-m", "distgnn.cli", "train", parts, "--threads", threads, "--epochs", options.epochs]
    command += ["--eval-every", options.epochs, "--hidden-feats", options.hidden_feats, "--run-dir", run]
    subprocess.run([*map(str, command), "--overwrite", "--quiet"], check=True)
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()][UNCOUNTED_EPOCHS:]


if __name__ == "__main__":
    main()
