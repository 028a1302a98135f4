"""The table of docs/benchmarks/time-to-accuracy: every graph, contestant, seed and number of ranks, in one command.

    python tests/bench/steps/time_to_accuracy.py --data DATA --work /tmp/race [--graphs cora,tolokers --ranks 1,2,4]
    python tests/bench/steps/time_to_accuracy.py --data DATA --work /tmp/race --contestants sampling --past-target 0

Partition folders are made where they are missing; for each graph and number of ranks race.py writes
WORK/GRAPH-CONTESTANTS-RANKS.json, and figures beside it. What is there already is left out:
a run that was cut short goes on with the next graph. With `--past-target 0` all run to the limit, which shows final
accuracies. `--prefix` goes before each of these commands. Threads are 2 over all ranks. Not run by pytest.
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

TARGETS = {"cora": 77.0, "amazon-photo": 94.0, "tolokers": 78.4, "amazon-computers": 90.3, "facebook-pages": 94.6}
TARGETS |= {"coauthor-cs": 94.0, "citeseer": 66.4, "ogbn-arxiv": 70.1}  # validation accuracy in percent
FEW_LABELS, FEW_SECONDS = ("cora", "citeseer"), 8.0  # nothing is gained there by longer runs
DATASETS = {"ogbn-arxiv": "ogb"}  # where it is in the folder of graphs
CORES = 2


def contestants(graph: str, kind: str) -> list[str]:
    """Options: all of `ours`, the `best` rate of Adam and the recipe, a rate `between`, or DGL's `sampling`."""
    norm = "standardize" if graph in ("tolokers", "ogbn-arxiv") else "row-l2,center"
    fast, slow = ("--optimizer adam --lr 0.01", "--optimizer adam --lr 0.001")
    better = fast if graph in (*FEW_LABELS, "ogbn-arxiv") else slow
    kinds = {
        "ours": [fast, slow, "--recipe fast", f"--optimizer kfac --feat-norm {norm}"],
        "best": [better, "--recipe fast"],
        "between": ["--optimizer adam --lr 0.003", "--optimizer adam --lr 0.003 --lr-schedule cosine --epochs 200"],
        "sampling": ["dgl-sampling --lr 0.001", "dgl-sampling --lr 0.003"],
    }
    return kinds[kind]


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of graphs")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--graphs", default=",".join(TARGETS))
    parser.add_argument("--ranks", default="1")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of training of those who do not get there")
    parser.add_argument("--past-target", type=float, default=1.5, help="0: all run to the limit")
    parser.add_argument("--contestants", choices=("ours", "best", "between", "sampling"), default="ours")
    parser.add_argument("--prefix", default="", help="words before each command, such as nice")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    python = [*shlex.split(options.prefix), sys.executable]
    for ranks in map(int, options.ranks.split(",")):
        for graph in options.graphs.split(","):
            name = f"{graph}-{options.contestants}-{ranks}"
            out, parts = options.work / f"{name}.json", options.work / f"parts-{ranks}" / graph
            if out.exists():
                continue
            if not parts.exists():
                cut = ["--parts", ranks, "--direction", "both", "--clusters", "--out", parts]
                cut += ["--data-root", options.data / DATASETS.get(graph, "")]
                call([*python, "-m", "distgnn.cli", "partition", graph, *cut])
            limit = min(options.limit, FEW_SECONDS) if graph in FEW_LABELS else options.limit
            words = ["--past-target", options.past_target, "--limit", limit, "--seeds", options.seeds]
            words += [word for text in contestants(graph, options.contestants) for word in ("--contestant", text)]
            words += ["--threads", max(1, CORES // ranks), "--out", out, "--figures", options.work / name]
            call([*python, Path(__file__).with_name("race.py"), parts, TARGETS[graph], *words])


def call(words: list) -> None:
    """Run it, saying what runs."""
    print(shlex.join(map(str, words)), flush=True)
    subprocess.run(list(map(str, words)), check=True)


if __name__ == "__main__":
    main()
