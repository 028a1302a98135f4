"""Epochs of ranks that share parts (`--columns`) beside one rank a part, between hosts: seconds and bytes on the wire.

    python tests/bench/network/column_ranks.py WORK --hosts 2 --rate 1gbit --out columns.json
    python tests/bench/network/column_ranks.py WORK --hosts 4 --rate 200mbit --columns 1,2,4

Ranks run on network namespaces (hosts.py), one of one thread on each. The graph is cut into WORK/parts-P, P = hosts
over columns; all ways train the same GraphSAGE in one job, in turns of --epochs. Columns of the table:

    rows        halo rows per vertex and aggregation; with columns, of their width, and what the all-to-alls move beside
    epoch       median of an epoch, quartiles' distance, the least; of flat: the median over that of one column
    sent        bytes that all ranks send in an epoch, by our counter
    interface   what all hosts' eth0 sent in an epoch, over sent: headers and acknowledgements make it 1.01 to 1.02
    loss        relative difference to one column's, of the last epoch
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
from node_exchange import interface_bytes, spread, trainer_of

GRAPH = "rmat:scale=14,edge_factor=246,feats=64,classes=40,seed=1"
UNCOUNTED = 2


def main() -> None:
    """Cut, and start the ranks; on a rank: measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--graph", default=GRAPH)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--rate", default="1gbit")
    parser.add_argument("--columns", default="1,2")
    parser.add_argument("--algorithm", default="cd-0")
    parser.add_argument("--wire", default="float32")
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--num-layers", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=3, help="in one turn")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("column-ranks.json"))
    parser.add_argument("--on-rank", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.on_rank:
        measure(options)
        return
    from hosts import hosts

    options.work.mkdir(parents=True, exist_ok=True)
    for columns in ways(options):
        folder = folder_of(options, columns)
        if not folder.exists():
            command = [sys.executable, "-m", "distgnn.cli", "partition", options.graph, "--quiet", "--parts"]
            subprocess.run([*command, str(options.hosts // columns), "--out", str(folder)], check=True)
    with hosts(options.hosts, options.rate) as run:
        run(os.path.abspath(__file__), *sys.argv[1:], "--on-rank")
    print_table(json.loads(options.out.read_text()))


def ways(options: argparse.Namespace) -> list[int]:
    return [int(word) for word in options.columns.split(",")]


def folder_of(options: argparse.Namespace, columns: int) -> Path:
    return options.work / f"parts-{options.hosts // columns}"


def measure(options: argparse.Namespace) -> None:
    """Epochs of all ways, in turn. Collective: yes."""
    from distgnn.graph.loader import load

    trainers = {}
    for columns in ways(options):
        settings = {"columns": columns, "wire": options.wire, "exchange": "flat"}
        graph = load(folder_of(options, columns), options.algorithm, say=None, **settings)
        trainers[columns] = trainer_of(graph, options)
    records: dict[int, list[dict]] = {columns: [] for columns in trainers}
    crossed = dict.fromkeys(trainers, 0)
    for number in range(options.rounds + 1):
        for columns, trainer in trainers.items():
            graph = trainer.graph
            graph.drain()
            graph.comm.Barrier()
            before = interface_bytes(graph)
            for _ in range(options.epochs if number else UNCOUNTED):
                records[columns].append(trainer.train_epoch(len(records[columns])))
            graph.drain()
            graph.comm.Barrier()
            crossed[columns] += (interface_bytes(graph) - before) * (number > 0)
    rows = {}
    for columns, trainer in trainers.items():
        graph, timed = trainer.graph, records[columns][UNCOUNTED:]
        seconds = [one["seconds"] for one in timed]
        halos = graph.comm.allreduce(len(graph.plan.broadcast_rows) + graph.plan.num_target_halos)
        rows[columns] = {
            "rows": halos / columns / graph.num_global_nodes,
            "all_to_all_rows": 2 * (columns - 1) / columns,
            "epoch": spread(seconds), "epochs": seconds,
            "sent_bytes": statistics.median(one["sent_bytes"] for one in timed) ,
            "interface_bytes": graph.comm.allreduce(crossed[columns]) / len(timed),
            "wait_seconds": statistics.median(one["wait_seconds"] for one in timed),
            "loss": timed[-1]["loss"],
        }  # fmt: skip
    if graph.rank == 0:
        named = {name: str(value) for name, value in vars(options).items()}
        options.out.write_text(json.dumps({"options": named, "rows": rows}, indent=1))


def print_table(report: dict) -> None:
    """A Markdown table."""
    options, rows = report["options"], report["rows"]
    print(f"\n{options['graph']}, {options['hosts']} hosts × 1 thread, {options['rate']}, {options['algorithm']}\n")
    titles = "columns | rows | all-to-all | epoch s | ± iqr | least | of flat | sent MB | interface | loss"
    print(f"| {titles} |\n|{10 * '---|'}")
    first = next(iter(rows.values()))
    for columns, row in rows.items():
        cells = [columns, f"{row['rows']:.2f}", f"{row['all_to_all_rows']:.2f}"]
        cells += [f"{value:.3f}" for value in (*row["epoch"], min(row["epochs"]), row["epoch"][0] / first["epoch"][0])]
        cells += [f"{row['sent_bytes'] / 1e6:.1f}", f"{row['interface_bytes'] / row['sent_bytes']:.4f}"]
        cells.append(f"{np.abs(row['loss'] / first['loss'] - 1):.1e}")
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
