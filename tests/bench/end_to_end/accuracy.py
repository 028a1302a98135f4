"""Test accuracy of the program on one and two ranks, against the same recipe in plain DGL (../dgl_reference.py).

    python tests/bench/end_to_end/accuracy.py cora citeseer            # 10 seeds each; 5 min on 2 cores
    python tests/bench/end_to_end/accuracy.py arxiv --seeds 1          # 100 epochs; DGL about 25 min, ours 3 to 6 each
    python tests/bench/end_to_end/accuracy.py arxiv --sides 1,2        # without DGL

Test accuracy in percent at the best validation epoch (evaluated every 5), mean ± standard deviation over seeds, and the
mean of the first five seeds. Prints a row per side: "1 rank", "2 ranks", "DGL".
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from program import CHECKOUT, DATA_ROOT, partition, print_machine, train

SMALL_CUT = ("--self-loops", "add", "--normalize-feats", "row")
SMALL = ("--model", "gcn", "--num-layers", "2", "--hidden-feats", "16", "--norm", "none", "--weight-decay", "5e-4")
ARXIV = ("--model", "sage", "--num-layers", "3", "--hidden-feats", "256", "--norm", "layer", "--epochs", "100")
RECIPES = {  # name -> (source, words of partition, words of train); both also understood by dgl_reference.py
    "cora": ("cora", SMALL_CUT, SMALL),
    "citeseer": ("citeseer", SMALL_CUT, SMALL),
    "arxiv": ("ogbn-arxiv", ("--direction", "both"), ARXIV),
}


def on_ranks(name: str, ranks: int, seeds: int, scratch: Path) -> list[float]:
    """Test accuracy of each seed through `distgnn partition` and `distgnn train --runs`."""
    source, cut, recipe = RECIPES[name]
    parts, run_dir = scratch / f"{name}-{ranks}", scratch / f"run-{name}-{ranks}"
    partition(source, ranks, parts, *cut)
    train(parts, run_dir, *recipe, "--runs", seeds, "--threads", 1)
    folders = [run_dir / f"seed-{seed}" for seed in range(seeds)] if seeds > 1 else [run_dir]
    return [json.loads((folder / "summary.json").read_text())["test_accuracy"] for folder in folders]


def in_dgl(name: str, seeds: int) -> list[float]:
    """Test accuracy of each seed in plain DGL, one process."""
    source, cut, recipe = RECIPES[name]
    script = str(CHECKOUT / "tests" / "bench" / "dgl_reference.py")
    words = [script, source, "--data-root", DATA_ROOT, *cut, *recipe, "--runs", str(seeds), "--threads", "1"]
    done = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [run["test"] for run in json.loads(done.stdout)["runs"]]


def main() -> None:
    """A table for each graph named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=RECIPES)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--sides", default="1,2,dgl", help="rank counts and dgl, with commas")
    options = parser.parse_args()
    print_machine()
    for name in options.names:
        source, cut, recipe = RECIPES[name]
        print(f"\n{name}: {source} {' '.join(cut)}; {' '.join(recipe)}; {options.seeds} seeds", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            for side in options.sides.split(","):
                ours = side != "dgl"
                found = on_ranks(name, int(side), options.seeds, Path(scratch)) if ours else in_dgl(name, options.seeds)
                _print_row(f"{side} rank{'s' * (side != '1')}" if ours else "DGL", found)


def _print_row(side: str, shares: list[float]) -> None:
    percent = [100 * share for share in shares]
    std = statistics.stdev(percent) if len(percent) > 1 else 0.0
    each = " ".join(f"{value:.1f}" for value in percent)
    first = statistics.fmean(percent[:5])
    print(f"{side:>8}  {statistics.fmean(percent):6.2f} ± {std:.2f}   first five {first:6.2f}   {each}", flush=True)


if __name__ == "__main__":
    main()
