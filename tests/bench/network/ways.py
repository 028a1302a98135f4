"""Ways to exchange between hosts, in turn: plain messages, by nodes, and ranks that share parts (`--columns`).

    python tests/bench/network/ways.py WORK --ways flat,node --hosts 2 --per-host 2 --rate 1gbit --exchanges 10
    python tests/bench/network/ways.py WORK --ways flat,node --hosts 1 --per-host 4
    python tests/bench/network/ways.py WORK --ways 1,2,4 --hosts 16 --rate 100mbit

A way is "flat", "node", or a number of ranks a part. Ranks run on network namespaces (hosts.py), one thread each:
through memory on a host, over the link between hosts. With --hosts 1 all ranks run on this machine. The graph is cut
into WORK/parts-P, P = ranks over ranks a part; all ways train the same GraphSAGE in one job, in turns of --epochs.
The table:

    rows          halo rows per vertex and aggregation; of several ranks a part, what the all-to-alls move beside
    exchange      with --exchanges: median of one broadcast and one reduce of rows of --width, quartiles' distance, the
                  least
    rows between  that had to cross between hosts in those: flat, the pairs' rows; node, each row once per host
    interface     what all hosts' eth0 sent in those, over bytes of these rows; else in an epoch, over bytes sent
    epoch         median, quartiles' distance, the least (other load disturbs it least); of first: the median over
                  that of the first way
    sent          bytes of all ranks in an epoch, by our counter; between hosts
    loss          relative difference to the first way's, of the last epoch
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

GRAPH = "rmat:scale=14,edge_factor=246,feats=64,classes=40,seed=1"
UNCOUNTED = 2


def main() -> None:
    """Cut, and start the ranks; on a rank: measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--graph", default=GRAPH)
    parser.add_argument("--ways", default="flat,node")
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--per-host", type=int, default=1, help="ranks")
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--algorithm", default="cd-0")
    parser.add_argument("--wire", default="float32")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--exchanges", type=int, default=0, help="of one rank a part")
    parser.add_argument("--epochs", type=int, default=3, help="in one turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("ways.json"))
    parser.add_argument("--on-rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.on_rank:
        measure(options)
        return
    distgnn, ranks = [sys.executable, "-m", "distgnn.cli"], options.hosts * options.per_host
    options.work.mkdir(parents=True, exist_ok=True)
    for way in options.ways.split(","):
        folder = folder_of(options, way)
        if not folder.exists():
            words = ["partition", options.graph, "--quiet", "--parts", ranks // columns_of(way), "--out", folder]
            subprocess.run([*distgnn, *map(str, words)], check=True)
    words = [os.path.abspath(__file__), *sys.argv[1:], "--on-rank"]
    if options.hosts == 1:
        subprocess.run([*distgnn, "run", "-n", str(ranks), "--threads", "1", *words], check=True)
    else:
        from hosts import hosts

        with hosts(options.hosts, options.rate, options.per_host) as run:
            run(*words)
    print_table(json.loads(options.out.read_text()))


def columns_of(way: str) -> int:
    """Ranks a part."""
    return int(way) if way.isdigit() else 1


def folder_of(options: argparse.Namespace, way: str) -> Path:
    return options.work / f"parts-{options.hosts * options.per_host // columns_of(way)}"


def measure(options: argparse.Namespace) -> None:
    """Exchanges, and epochs of all ways in turn. Collective: yes."""
    from distgnn.graph.loader import load

    trainers, rows = {}, {}
    for way in options.ways.split(","):
        settings = {"columns": columns_of(way), "wire": options.wire, "exchange": "node" if way == "node" else "flat"}
        graph = load(folder_of(options, way), options.algorithm, say=None, **settings)
        rows[way] = exchanges(graph, options) if options.exchanges and columns_of(way) == 1 else {}
        trainers[way] = trainer_of(graph, options)
    records: dict[str, list[dict]] = {way: [] for way in trainers}
    crossed = dict.fromkeys(trainers, 0)
    for number in range(options.rounds + 1):
        for way, trainer in trainers.items():
            graph = trainer.graph
            graph.drain()
            graph.comm.Barrier()
            before = interface_bytes(graph)
            for _ in range(options.epochs if number else UNCOUNTED):
                records[way].append(trainer.train_epoch(len(records[way])))
            graph.drain()
            graph.comm.Barrier()
            crossed[way] += (interface_bytes(graph) - before) * (number > 0)
    for way, trainer in trainers.items():
        rows[way] |= epochs_row(trainer.graph, columns_of(way), records[way][UNCOUNTED:], crossed[way])
    if graph.rank == 0:
        named = {name: str(value) for name, value in vars(options).items()}
        options.out.write_text(json.dumps({"options": named, "ranks": graph.num_ranks, "rows": rows}, indent=1))


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
        "exchange": spread(seconds),
        "exchange_least": min(seconds),
        "rows_between": graph.comm.allreduce(rows_between(graph)),
        "exchanged_interface_bytes": graph.comm.allreduce(crossed) / options.exchanges,
        "row_bytes": 4 * options.width,
    }


def epochs_row(graph, columns: int, timed: list[dict], crossed: int) -> dict:
    """What epochs of one way took. Collective: yes."""
    seconds = [one["seconds"] for one in timed]
    halos = graph.comm.allreduce(len(graph.plan.broadcast_rows) + graph.plan.num_target_halos)
    counted = ["sent_bytes", "bytes_between_nodes", *(name for name in timed[0] if name.endswith("_seconds"))]
    return {name: statistics.median(one[name] for one in timed) for name in counted} | {
        "note": graph.exchange_note,
        "rows": halos / columns / graph.num_global_nodes,
        "all_to_all_rows": 2 * (columns - 1) / columns,
        "epoch": spread(seconds),
        "epochs": seconds,
        "interface_bytes": graph.comm.allreduce(crossed) / len(timed),
        "loss": timed[-1]["loss"],
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
    options, rows = report["options"], report["rows"]
    print(f"\n{options['graph']}, {report['ranks']} ranks × 1 thread, {options['hosts']} hosts, {options['rate']}\n")
    titles = (
        "way | rows | all-to-all | exchange ms | ± iqr | least | rows between | interface | epoch s | ± iqr | least"
    )
    print(f"| {titles} | of first | sent MB | between MB | loss | |\n|{16 * '---|'}")
    first = next(iter(rows.values()))
    for way, row in rows.items():
        cells = [way, f"{row['rows']:.2f}", f"{row['all_to_all_rows']:.2f}"]
        crossed, needed = row["interface_bytes"], row["sent_bytes"]
        if "exchange" in row:
            crossed, needed = row["exchanged_interface_bytes"], row["rows_between"] * row["row_bytes"]
            cells += [f"{1000 * value:.2f}" for value in (*row["exchange"], row["exchange_least"])]
            cells.append(f"{row['rows_between']:,}")
        else:
            cells += 4 * ["–"]
        cells.append(f"{crossed / needed:.4f}" if needed else "–")
        epoch = (*row["epoch"], min(row["epochs"]), row["epoch"][0] / first["epoch"][0])
        cells += [*(f"{value:.3f}" for value in epoch), f"{row['sent_bytes'] / 1e6:.2f}"]
        cells += [f"{row['bytes_between_nodes'] / 1e6:.2f}", f"{abs(row['loss'] / first['loss'] - 1):.1e}"]
        print("| " + " | ".join([*cells, row["note"] or ""]) + " |", flush=True)


if __name__ == "__main__":
    main()
