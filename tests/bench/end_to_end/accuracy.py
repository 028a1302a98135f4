"""Test accuracy of the program on one and two ranks, against the same recipe in plain DGL (dgl_reference.py).

    python tests/bench/end_to_end/accuracy.py cora citeseer            # 10 seeds each; 5 min on 2 cores
    python tests/bench/end_to_end/accuracy.py arxiv --seeds 1          # 100 epochs; DGL about 25 min, ours 3 to 6 each
    python tests/bench/end_to_end/accuracy.py arxiv --sides 1,2        # without DGL

Test accuracy in percent at the best validation epoch (evaluated every 5), mean ± standard deviation over seeds, and the
mean of the first five seeds. Prints a row per side: "1 rank", "2 ranks", "DGL".
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from program import DATA_ROOT, partition, print_machine, print_seeds, train_seeds

SMALL_CUT = ("--self-loops", "add", "--normalize-feats", "row")
SMALL = ("--model", "gcn", "--num-layers", "2", "--hidden-feats", "16", "--norm", "none", "--weight-decay", "5e-4")
ARXIV = ("--model", "sage", "--num-layers", "3", "--hidden-feats", "256", "--norm", "layer", "--epochs", "100")
RECIPES = {  # name -> (source, words of partition, words of train); both also understood by dgl_reference.py
    "cora": ("cora", SMALL_CUT, SMALL),
    "citeseer": ("citeseer", SMALL_CUT, SMALL),
    "arxiv": ("ogbn-arxiv", ("--direction", "both"), ARXIV),
}


def in_dgl(name: str, seeds: int) -> list[float]:
    """Test accuracy of each seed in plain DGL, one process."""
    source, cut, recipe = RECIPES[name]
    script = str(Path(__file__).with_name("dgl_reference.py"))
    words = [script, source, "--data-root", DATA_ROOT, *cut, *recipe, "--runs", str(seeds), "--threads", "1"]
    done = subprocess.run([sys.executable, *words], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return [run["test"] for run in json.loads(done.stdout)]


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
                if side == "dgl":
                    print_seeds("DGL", "", in_dgl(name, options.seeds))
                    continue
                parts = Path(scratch, f"parts-{side}")
                partition(source, int(side), parts, *cut)
                runs = train_seeds(parts, Path(scratch, f"run-{side}"), range(options.seeds), *recipe)
                print_seeds(f"{side} rank{'s' * (side != '1')}", "", [run["test_accuracy"] for run in runs])


if __name__ == "__main__":
    main()
