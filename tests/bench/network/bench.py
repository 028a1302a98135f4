"""`distgnn bench` over links of a given rate, with the bytes that really crossed the interfaces.

    python tests/bench/network/bench.py parts --rates 10gbit,1gbit,100mbit --out network.json \\
        --algorithms cd-0,cd-0/bfloat16,cd-5/int8,cd-5/int8/suppressed,0c,paper

One host per part (hosts.py), one thread each. Algorithms train in turn. Columns: median epoch and its quartiles'
distance, phases (means over ranks), our byte counter per epoch, and `interface`: what all hosts' eth0 sent per epoch,
less what the same program sends with its messages suppressed (gradient sums, agreements), divided by our counter.
"""

import argparse
import json
import os
import statistics
from pathlib import Path

BASELINE = "cd-0/suppressed"  # sums of gradients, agreements and records: what crosses besides messages
DEFAULT = f"cd-0,cd-0/bfloat16,cd-5/int8,cd-5/int8/suppressed,{BASELINE},0c,paper"


def main() -> None:
    """Make hosts for every rate and run this file on them; on a rank: train."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--rates", default="10gbit,1gbit,100mbit")
    parser.add_argument("--algorithms", default=DEFAULT)
    parser.add_argument("--hidden-feats", type=int, default=256)
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("network.json"))
    parser.add_argument("--on-rank", default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.on_rank:
        train(options)
        return
    from hosts import hosts

    count = json.loads((Path(options.parts) / "partition.json").read_text())["num_parts"]
    report = json.loads(options.out.read_text()) if options.out.exists() else {}
    for rate in options.rates.split(","):
        one = options.out.with_suffix(".rank")
        words = ["--algorithms", options.algorithms, "--hidden-feats", options.hidden_feats, "--rounds", options.rounds]
        words += ["--num-layers", options.num_layers, "--out", one, "--on-rank", rate]
        with hosts(count, rate) as run:
            run(os.path.abspath(__file__), options.parts, *words)
        report[rate] = json.loads(one.read_text())
        one.unlink()
        options.out.write_text(json.dumps(report, indent=1))
        print_table(rate, report[rate])


def train(options: argparse.Namespace) -> None:
    """Every algorithm in turn, on the ranks given. Collective: yes."""
    from mpi4py import MPI

    from distgnn.bench.contenders import Contender
    from distgnn.bench.training import EPOCHS_IN_TURN, UNCOUNTED_EPOCHS, Runner
    from distgnn.config import ModelConfig, TrainConfig

    sizes = ModelConfig("sage", options.hidden_feats, options.num_layers)
    contenders = [Contender.parse(name) for name in options.algorithms.split(",")]
    runners = [Runner(options.parts, one, sizes, TrainConfig()) for one in contenders]
    crossed = [0] * len(runners)
    for runner in runners:
        runner.train(UNCOUNTED_EPOCHS)
    for _ in range(options.rounds):
        for number, runner in enumerate(runners):
            before = interface_bytes()
            runner.train(EPOCHS_IN_TURN)
            MPI.COMM_WORLD.Barrier()
            crossed[number] += MPI.COMM_WORLD.allreduce(interface_bytes() - before)
    rows = [runner.row() for runner in runners]
    for runner, row, total in zip(runners, rows, crossed, strict=True):
        row["interface_bytes_per_epoch"] = total / (options.rounds * EPOCHS_IN_TURN)
        counted = runner.costs[UNCOUNTED_EPOCHS:]
        row["mean_sent_bytes"] = statistics.fmean(cost["sent_bytes"] for cost in counted)
        runner.graph.drain()
    if MPI.COMM_WORLD.rank == 0:
        options.out.write_text(json.dumps(rows, indent=1))


def interface_bytes() -> int:
    """What this host has sent since it was made."""
    return int(Path("/sys/class/net/eth0/statistics/tx_bytes").read_text())


def print_table(rate: str, rows: list[dict]) -> None:
    """A Markdown table of one rate."""
    seconds = {row["name"]: row["epoch_seconds_median"] for row in rows}
    besides = next((row["interface_bytes_per_epoch"] for row in rows if row["name"] == BASELINE), None)
    print(f"\n{rate}, {rows[0]['ranks']} hosts × 1 thread\n")
    print("| algorithm | epoch | ± iqr | dense | aggregate | pack | all-reduce | wait | MB | interface | × paper |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        sent, phases = row["mean_sent_bytes"], ("dense", "aggregate", "pack", "all_reduce", "wait")
        share = (row["interface_bytes_per_epoch"] - besides) / sent if besides is not None and sent else None
        cells = [row["name"], f"{row['epoch_seconds_median']:.3f}", f"{row['epoch_seconds_iqr']:.3f}"]
        cells += [f"{row[f'{name}_seconds']:.3f}" for name in phases]
        cells += [f"{sent / 1e6:.2f}", "–" if share is None else f"{share:.4f}"]
        cells.append(f"{seconds['paper'] / row['epoch_seconds_median']:.2f}" if "paper" in seconds else "–")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
