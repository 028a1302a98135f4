"""What a schedule costs in memory: every algorithm in a job of its own, largest rank.

    python tests/bench/delayed/memory.py parts [--algorithms cd-0,cd-0/int8,cd-5/int8,cd-5,0c,paper] [--epochs 7]

Columns, MB of the rank with the most: resident when graph and model are made and nothing was trained; peak after
training and two evaluations; both as shares of cd-0's (the second without what was resident before training); messages
and held rows as counted. Times do not matter: other work on the machine does no harm.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DEFAULT = "cd-0,cd-0/int8,cd-5/int8,cd-5,0c,paper"


def main() -> None:
    """One job per algorithm and a Markdown row for each; on a rank: train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--algorithms", default=DEFAULT, help="the first is what the others are compared with")
    parser.add_argument("--hidden-feats", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=7)
    parser.add_argument("--on-rank", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.on_rank:
        train(options)
        return
    print("| algorithm | at the start | peak | of the first | above the start, of the first | counted |")
    print("|---|---|---|---|---|---|")
    first = None
    names = options.algorithms.split(",")
    job(options, names[0])  # compiles kernels, which takes some 80 MB
    for name in names:
        start, peak, counted = job(options, name)
        first = first or (peak, peak - start)
        shares = f"{peak / first[0]:.2f} | {(peak - start) / first[1]:.2f}"
        print(f"| {name} | {start / 1e6:.0f} | {peak / 1e6:.0f} | {shares} | {counted / 1e6:.0f} |", flush=True)


def job(options: argparse.Namespace, name: str) -> tuple[int, int, int]:
    """Resident bytes at the start, the peak, and counted bytes of the rank with the highest peak."""
    from distgnn.system.launch import THREAD_VARIABLES, find_mpiexec

    ranks = json.loads((Path(options.parts) / "partition.json").read_text())["num_parts"]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "memory.json"
        words = [options.parts, "--algorithms", name, "--epochs", options.epochs, "--on-rank", out]
        words += ["--hidden-feats", options.hidden_feats]
        command = [find_mpiexec(), "-n", ranks, "env", *(f"{name}=1" for name in THREAD_VARIABLES)]
        subprocess.run([*map(str, command), sys.executable, __file__, *map(str, words)], check=True)
        return max(map(tuple, json.loads(out.read_text())), key=lambda rank: rank[1])


def train(options: argparse.Namespace) -> None:
    """Train with one algorithm and write what every rank took. Collective: yes."""
    from distgnn.bench.contenders import Contender
    from distgnn.bench.training import Runner
    from distgnn.config import ModelConfig, TrainConfig
    from distgnn.system.sizes import peak_rss_bytes

    runner = Runner(
        options.parts, Contender.parse(options.algorithms), ModelConfig("sage", options.hidden_feats, 3), TrainConfig()
    )
    start, counted = resident_bytes(), 0
    for epoch in range(options.epochs):
        runner.train(1)
        counted = max(counted, runner.graph.exchange_bytes())
        if epoch in (options.epochs // 2, options.epochs - 2):
            runner.evaluate()
    runner.graph.drain()
    ranks = runner.graph.comm.allgather((start, peak_rss_bytes(), counted))
    if runner.graph.rank == 0:
        options.on_rank.write_text(json.dumps(ranks))


def resident_bytes() -> int:
    """Resident memory of this process now (Linux)."""
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text())[1])


if __name__ == "__main__":
    main()
