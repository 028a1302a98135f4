"""The node-aware exchange beside plain messages: bytes on the wire, seconds of an exchange, and of an epoch.

    python tests/bench/network/node_exchange.py parts-4 --hosts 2 --rate 1gbit --out node.json
    python tests/bench/network/node_exchange.py parts-4 --hosts 1 --out one-node.json

With --hosts 2 or more, ranks run on network namespaces (hosts.py), equally many on each, one thread each: through
memory on a host, over the link between hosts. With --hosts 1 all ranks run on this machine. Columns:

    exchange      median of one broadcast and one reduce of rows of --width float32, quartiles' distance, and the least
    interface     what all hosts' eth0 sent in those, over bytes of the rows that had to cross: headers make it 1.01
    epoch         the same of a training epoch (GraphSAGE); the least is what other load on the machine disturbs least
    between       bytes between hosts in an epoch, by our counter

Rows that had to cross: flat, the pairs' rows between groups (`rows_between_groups`); node, each row once per host.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

WAYS = ("flat", "node")
UNCOUNTED = 2


def main() -> None:
    """Start the ranks; on a rank: measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--algorithm", default="cd-0")
    parser.add_argument("--wire", default="float32")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--exchanges", type=int, default=30)
    parser.add_argument("--epochs", type=int, default=5, help="in one turn")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("node-exchange.json"))
    parser.add_argument("--on-rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.on_rank:
        measure(options)
        return
    words = [os.path.abspath(__file__), *sys.argv[1:], "--on-rank"]
    count = json.loads((Path(options.parts) / "partition.json").read_text())["num_parts"]
    if options.hosts == 1:
        launch = [sys.executable, "-m", "distgnn.cli", "run", "-n", str(count), "--threads", "1"]
        subprocess.run([*launch, *words], check=True)
    else:
        from hosts import hosts

        with hosts(options.hosts, options.rate, count // options.hosts) as run:
            run(*words)
    print_table(json.loads(options.out.read_text()))


def measure(options: argparse.Namespace) -> None:
    """Exchanges and epochs of both ways, in turn. Collective: yes."""
    from distgnn.graph.loader import load

    graphs = {}
    for way in WAYS:
        settings = {"exchange": way, "wire": options.wire}
        graphs[way] = load(options.parts, options.algorithm, say=None, **settings)
    rows = {way: exchanges(graph, options) for way, graph in graphs.items()}
    trainers = {way: trainer_of(graph, options) for way, graph in graphs.items()}
    records: dict[str, list[dict]] = {way: [] for way in WAYS}
    for number in range(options.rounds + 1):
        for way, trainer in trainers.items():
            for _ in range(options.epochs if number else UNCOUNTED):
                records[way].append(trainer.train_epoch(len(records[way])))
    for way, graph in graphs.items():
        graph.drain()
        timed = records[way][UNCOUNTED:]
        seconds = [one["seconds"] for one in timed]
        rows[way] |= {"epoch": spread(seconds), "epoch_least": min(seconds), "epochs": seconds}
        rows[way]["bytes_between_nodes"] = statistics.median(one["bytes_between_nodes"] for one in timed)
        rows[way]["sent_bytes"] = statistics.median(one["sent_bytes"] for one in timed)
        names = [name for name in timed[0] if name.endswith("_seconds")]
        rows[way]["phases"] = {name: statistics.median(one[name] for one in timed) for name in names}
    if graph.rank == 0:
        options.out.write_text(json.dumps({"parts": options.parts, "ranks": graph.num_ranks, "rows": rows}, indent=1))


def trainer_of(graph, options: argparse.Namespace):
    """A GraphSAGE in training."""
    import torch

    from distgnn.config import ModelConfig, TrainConfig
    from distgnn.nn import model_for
    from distgnn.train import Trainer

    torch.manual_seed(0)
    return Trainer(model_for(ModelConfig("sage", options.width, options.num_layers), graph), graph, TrainConfig())


def exchanges(graph, options: argparse.Namespace) -> dict:
    """Seconds and interface bytes of exchanges of one width."""
    rows = np.ones((graph.num_owned, options.width), np.float32)
    seconds, crossed = [], 0
    for number in range(UNCOUNTED + options.exchanges):
        graph.comm.Barrier()
        before, started = interface_bytes(graph), time.perf_counter()
        graph.exchange.start_broadcast(rows)
        graph.exchange.finish_broadcast()
        targets = graph.exchange.target_rows(rows)
        graph.exchange.start_reduce(targets)
        graph.exchange.finish_reduce(rows)
        graph.comm.Barrier()
        if number >= UNCOUNTED:
            seconds.append(time.perf_counter() - started)
            crossed += interface_bytes(graph) - before
    graph.exchange.drain()
    return {
        "note": graph.exchange_note,
        "exchange": spread(seconds),
        "exchange_least": min(seconds),
        "rows_between": graph.comm.allreduce(rows_between(graph)),
        "interface_bytes": graph.comm.allreduce(crossed) / options.exchanges,
        "row_bytes": 4 * options.width,
    }


def rows_between(graph) -> int:
    """Rows that this rank sends to other nodes in one broadcast and one reduce."""
    stage = getattr(graph.exchange, "stage", None)
    if stage is not None:
        return stage.plan.rows_between_nodes()
    far, plan = graph.transport.is_far, graph.plan
    return int(np.diff(plan.broadcast_indptr)[far].sum() + np.diff(plan.target_indptr)[far].sum())


def interface_bytes(graph) -> int:
    """What this rank's host has sent since it was made; one rank of a host answers, the others say 0."""
    file, far = Path("/sys/class/net/eth0/statistics/tx_bytes"), graph.transport.is_far
    first = graph.rank == int(np.flatnonzero(~far)[0])
    return int(file.read_text()) if far.any() and first else 0


def spread(seconds: list[float]) -> list[float]:
    """Median and quartiles' distance."""
    quarter, three_quarters = np.percentile(seconds, [25, 75])
    return [statistics.median(seconds), float(three_quarters - quarter)]


def print_table(report: dict) -> None:
    """A Markdown table."""
    print(f"\n{report['parts']}, {report['ranks']} ranks × 1 thread\n")
    titles = "exchange ms | ± iqr | least | rows between | interface | epoch s | ± iqr | least | between MB | sent MB"
    print(f"| way | {titles} | |\n|{12 * '---|'}")
    for way, row in report["rows"].items():
        needed = row["rows_between"] * row["row_bytes"]
        exchange, epoch = (*row["exchange"], row["exchange_least"]), (*row["epoch"], row["epoch_least"])
        cells = [way, *(f"{1000 * value:.2f}" for value in exchange), f"{row['rows_between']:,}"]
        cells += [f"{row['interface_bytes'] / needed:.4f}" if needed else "–"]
        cells += [*(f"{value:.4f}" for value in epoch), f"{row['bytes_between_nodes'] / 1e6:.2f}"]
        print("| " + " | ".join([*cells, f"{row['sent_bytes'] / 1e6:.2f}", row["note"] or ""]) + " |", flush=True)


if __name__ == "__main__":
    main()
