"""Does it pay to split feature columns as well as vertices? Groups of t ranks share a part, on a dense graph, replayed.

    python tests/bench/scale/columns.py WORK [--ranks 16,32,64,128] [--networks 10gbit,25gbit,100gbit] [--per-node 1,4]
        [--graph rmat:scale=14,edge_factor=246,feats=64,classes=40,seed=1] [--speeds 1,16]

Legend: P ranks, t ranks of a group, Q = P / t parts, O owned rows of a part, D width.

    flat        P parts, plain messages between all pairs
    node        P parts, rows cross the network once per node and owner (`--exchange node`)
    columns t   Q parts; the ranks of a group hold O / t whole rows each for products, and O rows of D / t columns for
                aggregation and exchange: an all-to-all in the group before and after each aggregation; where a node has
                several groups, rows cross once per node too

What is measured: two parts of the fewest ranks' cuts alone (`distgnn replay`'s measurement), trained with rows of
D / t columns.
What is computed from them: seconds of every rank, in proportion to its arcs (aggregation), rows that travel (packing)
and rows of its own (products: those of P parts, whole rows); messages of every rank, from the plans of all parts. Then
all ranks are played through the network. A cut of P = N x R parts has N nodes of R ranks. In favour of columns: rows of
the last layer's 40 / t columns are taken to cost 1 / t as much, and `node` has messages inside nodes where it has none.

`--speeds 16`: all computation 16 times as fast as one thread here, about a socket. WORK/columns.json.
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
from column_epochs import AGGREGATIONS, HIDDEN, by_node, read_cut, recordings
from faster import faster

GRAPH = "rmat:scale=14,edge_factor=246,feats=64,classes=40,seed=1"
LAYERS = 3
SAMPLE = 2  # parts of a cut that are measured


def main() -> None:
    """Cut, measure, play; a line for each case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--graph", default=GRAPH)
    parser.add_argument("--ranks", default="16,32,64,128")
    parser.add_argument("--columns", default="2,4")
    parser.add_argument("--networks", default="10gbit,25gbit,100gbit")
    parser.add_argument("--per-node", default="1,4")
    parser.add_argument("--speeds", default="1,16")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    numbers = {name: [int(word) for word in getattr(options, name).split(",")] for name in ("ranks", "columns")}
    per_node, speeds = ([int(word) for word in text.split(",")] for text in (options.per_node, options.speeds))
    rows: list[dict] = []
    print("| P | network | ranks a node | speed | way | rows | MB between nodes | epoch ms | of flat | of node |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    for ranks in numbers["ranks"]:
        for each in per_node:
            ways = epochs_of(options, ranks, each, numbers)
            for speed in speeds:
                for network in options.networks.split(","):
                    case = {"ranks": ranks, "network": network, "per_node": each, "speed": speed}
                    rows += play(case, ways)
                    options.work.joinpath("columns.json").write_text(json.dumps({"command": sys.argv, "rows": rows}))


def epochs_of(options: argparse.Namespace, ranks: int, per_node: int, numbers: dict) -> dict[str, tuple]:
    """Of each way: recordings of all ranks, and the rows that travel."""
    shape = str(ranks) if per_node == 1 else f"{ranks // per_node}x{per_node}"
    folder = cut(options, shape)
    fewest = min(numbers["ranks"])
    whole, plan = measured(cut(options, str(fewest)), 1), read_cut(folder)
    ways = {"flat": recordings(whole, plan, plan, 1, whole)}
    if per_node > 1:
        ways["node"] = recordings(whole, plan, by_node(folder, plan, per_node), 1, whole)
    for t in numbers["columns"]:
        parts = ranks // t
        inside = per_node // t
        part = cut(options, f"{parts // inside}x{inside}" if inside > 1 else str(parts))
        plan = read_cut(part)
        messages = by_node(part, plan, inside) if inside > 1 else plan
        ways[f"columns {t}"] = recordings(measured(cut(options, str(fewest // t)), t), plan, messages, t, whole)
    return ways


def cut(options: argparse.Namespace, shape: str) -> Path:
    """The folder of a cut, made if it is not there."""
    folder = options.work / f"parts-{shape}"
    if not folder.exists():
        command = [sys.executable, "-m", "distgnn.cli", "partition", options.graph, "--parts", shape]
        subprocess.run([*command, "--out", str(folder), "--quiet"], check=True)
    return folder


def measured(folder: Path, t: int) -> dict:
    """Seconds per arc, travelling row and owned row of rows of D / t columns, and an epoch's events as an example."""
    kept = folder / f"measured-{t}.json"
    if kept.exists():
        return json.loads(kept.read_text())
    from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
    from distgnn.replay.measure import Measuring, measure_parts

    plan = read_cut(folder)
    ranks = [int(rank) for rank in np.linspace(0, len(plan.arcs) - 1, SAMPLE)]
    model = ModelConfig("sage", HIDDEN // t, LAYERS)
    settings = Settings(TrainConfig(), model, RunConfig(), Schedule()).checked()
    found = measure_parts(str(folder), settings, Measuring(repeats=7, evaluate=False), ranks=ranks)
    for one in found:
        one.epochs[0] = narrowed(one.epochs[0], t)
    loads = {"aggregate": plan.arcs, "pack": plan.travelling(), "dense": plan.owned}
    prices = {
        name: statistics.fmean(spent(one, name) / load[one.rank] for one in found) for name, load in loads.items()
    }
    result = {"prices": prices, "events": found[0].epochs[0], "rank": found[0].rank}
    kept.write_text(json.dumps(result))
    return result


def narrowed(events: list, t: int) -> list:
    """The aggregations of rows of classes, which were measured whole, as if they were 1 / t."""
    found, call = [], 0
    for event in events:
        call = event[1] if event[0] in ("send", "receive") else call
        of_classes = event[:2] == ("compute", "aggregate") and 0 < call // 2 < AGGREGATIONS - 1
        found.append((*event[:2], event[2] / t) if of_classes else event)
    return found


def spent(recording, name: str) -> float:
    """Seconds of one kind of computation."""
    return sum(event[2] for event in recording.epochs[0] if event[:2] == ("compute", name))


def play(case: dict, ways: dict[str, tuple]) -> list[dict]:
    """All ways over one network; prints a line for each."""
    from distgnn.replay.network import parse_network
    from distgnn.replay.player import Player

    network = parse_network(f"{case['network']},ranks_per_node={case['per_node']}")
    rows: list[dict] = []
    for way, (ranks, messages) in ways.items():
        seconds = Player(faster(ranks, case["speed"]), network).play()[0].seconds
        between = sum(
            event[3]
            for one in ranks
            for event in one.epochs[0]
            if event[0] == "send" and network.node_of(event[2]) != network.node_of(one.rank)
        )
        moved = int(messages.sources.sum() + messages.targets.sum())
        found = {"way": way, "exchange_rows": moved, "bytes_between_nodes": between, "epoch_seconds": seconds}
        rows.append(case | found)
        base = {row["way"]: row["epoch_seconds"] for row in rows}
        cells = [case["ranks"], case["network"], case["per_node"], case["speed"], way, f"{moved:,}"]
        cells += [f"{between / 1e6:.1f}", f"{1000 * seconds:.2f}", f"{seconds / base['flat']:.3f}"]
        cells.append(f"{seconds / base['node']:.3f}" if "node" in base else "–")
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    return rows


if __name__ == "__main__":
    main()
