"""A script as in the README beside `distgnn train`: the same model, data and machine, no environment variable set.

    python tests/bench/door/first_script.py [cora facebook-pages ogbn-arxiv] [--ranks 1,2] [--rounds 3]

For each graph and rank count, in turn: `distgnn train`; the README script started by `mpiexec`; the same
started by `distgnn run`; an own loop with `dg.DistributedOptimizer`. Prints the median of the epochs' seconds (the
first five left out) over all rounds, and each as a share of the speed of `distgnn train` (1.00: as fast).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command

CHECKOUT = Path(__file__).resolve().parents[3]
DATA_ROOT = os.environ.get("DISTGNN_DATA") or str(CHECKOUT.parent / "shared" / "data")
SOURCES = {"cora": f"{DATA_ROOT}/cora", "facebook-pages": f"{DATA_ROOT}/facebook-pages", "ogbn-arxiv": "ogbn-arxiv"}
FIRST = 5
TRAINER = """
import sys
import distgnn as dg
graph = dg.load(sys.argv[1])
model = dg.nn.GraphSAGE(graph.num_feats, 256, graph.num_classes, num_layers=3)
result = dg.Trainer(model, graph, dg.TrainConfig(epochs=int(sys.argv[2]), lr=0.01, eval_every=1000)).fit()
if graph.rank == 0:
    print("seconds", *[record["seconds"] for record in result.records])
"""
OWN_LOOP = """
import sys, time
import distgnn as dg
import torch
from torch.nn import functional as F
graph = dg.load(sys.argv[1])
model = dg.nn.GraphSAGE(graph.num_feats, 256, graph.num_classes, num_layers=3)
optimizer = dg.DistributedOptimizer(torch.optim.Adam(model.parameters(), lr=0.01), graph)
rows = graph.train_mask & (graph.labels >= 0)
seconds = []
for graph.step in range(int(sys.argv[2])):
    start = time.perf_counter()
    optimizer.zero_grad()
    losses = F.cross_entropy(model(graph, graph.feats)[rows], graph.labels[rows], reduction="none")
    graph.global_mean(losses).backward()
    optimizer.step()
    seconds.append(time.perf_counter() - start)
if graph.rank == 0:
    print("seconds", *seconds)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", default=list(SOURCES))
    parser.add_argument("--ranks", default="1,2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=25)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for name in options.graphs:
            for ranks in map(int, options.ranks.split(",")):
                compare(Path(folder), name, ranks, options.rounds, options.epochs)


def compare(scratch: Path, name: str, ranks: int, rounds: int, epochs: int) -> None:
    parts = scratch / f"{name}-{ranks}"
    cut = ["partition", SOURCES[name], "--parts", ranks, "--out", parts, "--data-root", DATA_ROOT, "--quiet"]
    run([sys.executable, "-m", "distgnn.cli", *cut])
    for file, text in (("trainer.py", TRAINER), ("own_loop.py", OWN_LOOP)):
        (scratch / file).write_text(text)
    mpiexec = find_mpiexec()
    on_ranks = [*mpiexec_command(mpiexec, mpi_flavor(mpiexec), ranks), sys.executable]
    started = [sys.executable, "-m", "distgnn.cli", "run", "-n", ranks]
    ways = {
        "distgnn train": lambda: trained(parts, scratch / "run", epochs),
        "README script, mpiexec": lambda: printed([*on_ranks, scratch / "trainer.py", parts, epochs]),
        "README script, distgnn run": lambda: printed([*started, scratch / "trainer.py", parts, epochs]),
        "own loop, mpiexec": lambda: printed([*on_ranks, scratch / "own_loop.py", parts, epochs]),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, once in ways.items():
            seconds[way] += once()[FIRST:]
    medians = {way: statistics.median(values) for way, values in seconds.items()}
    for way, median in medians.items():
        share = medians["distgnn train"] / median
        print(f"{name}, {ranks} ranks, {way}: {1000 * median:.1f} ms an epoch, {share:.2f}", flush=True)


def trained(parts: Path, run_dir: Path, epochs: int, *options: str) -> list[float]:
    words = ["--epochs", epochs, "--eval-every", 1000, "--run-dir", run_dir, "--overwrite", "--quiet", *options]
    run([sys.executable, "-m", "distgnn.cli", "train", parts, *words])
    return [json.loads(line)["seconds"] for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def printed(command: list) -> list[float]:
    [line] = [line for line in run(command).splitlines() if line.startswith("seconds")]
    return [float(word) for word in line.split()[1:]]


def run(command: list) -> str:
    unset = ("OMP_NUM_THREADS", "DISTGNN_NUM_THREADS", "MKL_NUM_THREADS", "GOMP_SPINCOUNT", "THP_MEM_ALLOC_ENABLE")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nexit code {done.returncode}\n{done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    main()
