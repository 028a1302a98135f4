"""The table of docs/benchmarks/time-to-accuracy: every graph, contestant, seed and number of ranks, in one command.

    python tests/bench/steps/time_to_accuracy.py --data DATA --work /tmp/race [--graphs cora,tolokers --ranks 1,2,4]
    python tests/bench/steps/time_to_accuracy.py --data DATA --work /tmp/race --sampling

Partition folders are made where they are missing; for each graph and number of ranks `distgnn bench
--time-to-accuracy` writes WORK/GRAPH-RANKS.json, and figures beside it. What is there already is left out: a run that
was cut short goes on with the next graph. `--prefix` goes before each of these commands. Threads are 2 over all ranks.
Not run by pytest.
"""

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

TARGETS = {"cora": 77.0, "amazon-photo": 94.0, "tolokers": 78.4, "amazon-computers": 90.3, "facebook-pages": 94.6}
TARGETS |= {"coauthor-cs": 94.0}  # validation accuracy in percent
OURS = ("--optimizer adam --lr 0.01", "--optimizer adam --lr 0.001", "--recipe fast")
KFAC = "--optimizer kfac --feat-norm {}"
SAMPLING = ("dgl-sampling --lr 0.001", "dgl-sampling --lr 0.003")
CORES = 2


def contestants(graph: str, sampling: bool) -> list[str]:
    """Options of each contestant."""
    norm = "standardize" if graph == "tolokers" else "row-l2,center"
    return list(SAMPLING) if sampling else [*OURS, KFAC.format(norm)]


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="folder of graphs")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--graphs", default=",".join(TARGETS))
    parser.add_argument("--ranks", default="1")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of training of those who do not get there")
    parser.add_argument("--sampling", action="store_true", help="the races of DGL's sampling, of one rank")
    parser.add_argument("--prefix", default="", help="words before each command, such as nice")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    program = [*shlex.split(options.prefix), sys.executable, "-m", "distgnn.cli"]
    for ranks in map(int, options.ranks.split(",")):
        for graph in options.graphs.split(","):
            name = f"{graph}-sampling" if options.sampling else f"{graph}-{ranks}"
            out, parts = options.work / f"{name}.json", options.work / f"parts-{ranks}" / graph
            if out.exists():
                continue
            if not parts.exists():
                cut = ["--parts", ranks, "--direction", "both", "--clusters", "--out", parts]
                call([*program, "partition", graph, "--data-root", options.data, *cut])
            words = ["--past-target", 1.5, "--limit", options.limit, "--seeds", options.seeds]
            words += [word for text in contestants(graph, options.sampling) for word in ("--contestant", text)]
            words += ["--threads", max(1, CORES // ranks), "--out", out, "--figures", options.work / name]
            call([*program, "bench", parts, "--time-to-accuracy", TARGETS[graph], *words])


def call(words: list) -> None:
    """Run it, saying what runs."""
    print(shlex.join(map(str, words)), flush=True)
    subprocess.run(list(map(str, words)), check=True)


if __name__ == "__main__":
    main()
