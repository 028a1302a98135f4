"""The table of docs/benchmarks/time-to-accuracy: every graph, contestant, seed and number of ranks, in one command.

    python tests/bench/steps/time_to_accuracy.py --data DATA --work /tmp/race [--graphs cora,tolokers --ranks 1,2,4]

Partition folders are made where they are missing; for each graph and number of ranks `distgnn bench --time-to-accuracy`
writes WORK/GRAPH-RANKS.json, and figures beside it. What is there already is left out, so that a run which was cut short
goes on with the next graph. DGL's sampling is one process, in the races of one rank. `--prefix` goes before each of
these commands. Threads are 2 over all ranks. Not run by pytest.
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

TARGETS = {  # validation accuracy in percent, seconds of training for those who do not get there
    "cora": (77.0, 30),
    "amazon-photo": (94.0, 60),
    "tolokers": (78.4, 60),
    "amazon-computers": (90.3, 90),
    "facebook-pages": (94.6, 60),
    "coauthor-cs": (94.0, 60),
}
OURS = ("--optimizer adam --lr 0.01", "--optimizer adam --lr 0.001", "--recipe fast")
KFAC = "--optimizer kfac --feat-norm {}"
SAMPLING = "dgl-sampling --lr 0.003"
CORES = 2


def contestants(graph: str, ranks: int) -> list[str]:
    """Options of each contestant."""
    norm = "standardize" if graph == "tolokers" else "row-l2,center"
    return [*OURS, KFAC.format(norm), *([SAMPLING] if ranks == 1 else [])]


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of graphs")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--graphs", default=",".join(TARGETS))
    parser.add_argument("--ranks", default="1")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--prefix", default="", help="words before each command, such as nice")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    program = [*shlex.split(options.prefix), sys.executable, "-m", "distgnn.cli"]
    for ranks in map(int, options.ranks.split(",")):
        for graph in options.graphs.split(","):
            out, parts = options.work / f"{graph}-{ranks}.json", options.work / f"parts-{ranks}" / graph
            if out.exists():
                continue
            if not parts.exists():
                cut = ["--parts", ranks, "--direction", "both", "--clusters", "--out", parts]
                call([*program, "partition", graph, "--data-root", options.data, *cut])
            (target, limit), words = TARGETS[graph], ["--past-target", 1.5, "--seeds", options.seeds]
            words += [word for text in contestants(graph, ranks) for word in ("--contestant", text)]
            words += ["--threads", max(1, CORES // ranks), "--out", out, "--figures", options.work / f"{graph}-{ranks}"]
            call([*program, "bench", parts, "--time-to-accuracy", target, "--limit", limit, *words])


def call(words: list) -> None:
    """Run it, saying what runs."""
    print(shlex.join(map(str, words)), flush=True)
    subprocess.run(list(map(str, words)), check=True)


if __name__ == "__main__":
    main()
