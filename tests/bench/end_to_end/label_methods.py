"""What the training labels buy beyond the loss: label reuse, and Correct and Smooth after training.

    python tests/bench/end_to_end/label_methods.py cora --seeds 5       # 3 min on 2 cores
    python tests/bench/end_to_end/label_methods.py arxiv --seeds 1      # 60 epochs of width 64

Test accuracy in percent at the best validation epoch, mean ± standard deviation over seeds, of the same recipe without
and with `--label-reuse 0.5`, each before and after `distgnn correct-smooth` with its defaults. One rank.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from program import distgnn, partition, print_machine, train

SMALL = ("--hidden-feats", "64", "--num-layers", "2", "--epochs", "100", "--eval-every", "2")
RECIPES = {  # name -> (source, words of partition, words of train)
    "cora": ("cora", ("--self-loops", "add", "--normalize-feats", "row"), (*SMALL, "--model", "gcn", "--norm", "none")),
    "facebook": ("facebook-pages", (), SMALL),
    "computers": ("amazon-computers", (), SMALL),
    "arxiv": ("ogbn-arxiv", ("--direction", "both"), ("--hidden-feats", "64", "--epochs", "60")),
}
SIDES = {"as it is": (), "label reuse": ("--label-reuse", "0.5")}


def accuracies(parts: Path, run: Path, words) -> tuple[float, float]:
    """Test accuracy of one training, before and after Correct and Smooth."""
    train(parts, run, *words)
    found = json.loads(distgnn("correct-smooth", run, parts, "--json").stdout)
    return found["before"]["test"], found["after"]["test"]


def show(values: list[float]) -> str:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return f"{100 * statistics.fmean(values):.2f} ± {100 * spread:.2f}"


def main() -> None:
    """Two rows for each graph named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=RECIPES)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print_machine()
    for name in options.names:
        source, cut, recipe = RECIPES[name]
        print(f"\n{name}: {source} {' '.join(cut)}; {' '.join(recipe)}; {options.seeds} seeds", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            parts = Path(scratch) / "parts"
            partition(source, 1, parts, *cut)
            for side, words in SIDES.items():
                runs = [
                    accuracies(parts, Path(scratch) / "run", (*recipe, *words, "--seed", seed))
                    for seed in range(options.seeds)
                ]
                before, after = zip(*runs, strict=True)
                print(f"{side:12} {show(before)}   corrected and smoothed {show(after)}", flush=True)


if __name__ == "__main__":
    main()
