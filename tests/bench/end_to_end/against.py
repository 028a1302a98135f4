"""Epoch and cut times of this checkout over those of another one, in turns.

    git worktree add --detach ../before COMMIT
    python tests/bench/end_to_end/against.py ../before [--turns 5] [--epochs 30] [--out against.json]

Cuts and trains the cases of `same_bits.py` with either checkout, one after the other in the same turn, the order
changed from turn to turn; two threads for cuts, two ranks of one thread (or one of two) for epochs. The first turn
compiles and does not count. A cut's time is that of its phase "cut"; an epoch's is the median of the run without
its first five. Prints the median over turns of this / other, and its range.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from program import CHECKOUT, DATA_ROOT, distgnn
from same_bits import CUTS, TRAINED


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    checkouts = {"this": CHECKOUT, "other": options.other.resolve()}
    seconds: dict[str, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        for turn in range(options.turns + 1):
            names = sorted(checkouts, reverse=turn % 2 == 1)
            for case, measure in cases(options.epochs):
                for name in names:
                    taken = measure(checkouts[name], Path(scratch) / name)
                    if turn:
                        seconds.setdefault(case, {}).setdefault(name, []).append(taken)
            print(f"turn {turn} of {options.turns} done", file=sys.stderr, flush=True)
    for case, times in seconds.items():
        ratios = [mine / theirs for mine, theirs in zip(times["this"], times["other"], strict=True)]
        this, other = (statistics.median(times[name]) for name in ("this", "other"))
        spread = f"pairs {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
        print(f"{case:24} this {this:8.3f} s  other {other:8.3f} s  ratio {this / other:.3f}  {spread}")
    if options.out:
        options.out.write_text(json.dumps(seconds, indent=1) + "\n")


def cases(epochs: int):
    for name, (source, words) in CUTS.items():
        yield f"cut {name}", lambda checkout, scratch, n=name, s=source, w=words: cut(checkout, scratch / n, s, w)
    for name, (part, words) in TRAINED.items():
        yield f"epoch {name}", lambda checkout, scratch, p=part, w=words: epoch(checkout, scratch, p, w, epochs)


def cut(checkout: Path, folder: Path, source, words: str) -> float:
    options = ["--out", folder, "--overwrite", "--data-root", DATA_ROOT, "--quiet", *words.split()]
    distgnn("partition", source, *options, checkout=checkout)
    return json.loads((folder / "partition.json").read_text())["phase_seconds"]["cut"]


def epoch(checkout: Path, scratch: Path, part: str, words: str, epochs: int) -> float:
    options = ["--epochs", epochs, "--eval-every", epochs, "--seed", 0, "--overwrite", "--quiet"]
    distgnn("train", scratch / part, *options, "--run-dir", scratch / "run", *words.split(), checkout=checkout)
    lines = (scratch / "run" / "metrics.jsonl").read_text().splitlines()
    return statistics.median(json.loads(line)["seconds"] for line in lines[5:])


if __name__ == "__main__":
    main()
