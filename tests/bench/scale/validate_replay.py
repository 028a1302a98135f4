"""Is the replay right? Epochs that it predicts over a network, beside the same epochs on that network emulated here.

    python tests/bench/scale/validate_replay.py WORK [--graphs GRAPH;GRAPH] [--ranks 2,4] [--rounds 3]
        [--networks 0.1gbit,1gbit,10gbit] [--algorithms cd-0,cd-5,cd-5/int8,0c]

Needs root, iproute2, MPICH, and nothing else running. In each round, in turn: every algorithm is recorded once, and
trained over each network (`distgnn/extras/replay/emulate.py`); then the recording is played over each. Medians over
rounds are compared: one measurement each would compare a machine of now with one of some minutes ago.

Printed, and written to WORK/validation.json: predicted and emulated epochs, their spread, the median and the worst
error, and whether bytes between every two ranks are equal. What stands in the file is not run again.
"""

import argparse
import json
import os
import re
import statistics
from itertools import product
from pathlib import Path

from distgnn.config import ModelConfig, RunConfig, Schedule, Settings, TrainConfig
from distgnn.datasets import load_graph
from distgnn.extras.replay import predict
from distgnn.extras.replay.emulate import emulated
from distgnn.extras.replay.network import parse_network
from distgnn.extras.replay.record import record
from distgnn.partition import partition_graph
from distgnn.system.calls.launch import call_on_ranks
from distgnn.system.processor import machine

GRAPHS = "ogb/ogbn_arxiv;communities:nodes=50000,avg_degree=20,feats=128,classes=40,seed=1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--networks", default="0.1gbit,1gbit,10gbit")
    parser.add_argument("--algorithms", default="cd-0,cd-5,cd-5/int8,0c")
    parser.add_argument("--hidden-feats", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=10, help="that are counted in a round")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    out, networks = options.work / "validation.json", options.networks.split(",")
    rows = json.loads(out.read_text())["rows"] if out.exists() else []
    counts = [int(word) for word in options.ranks.split(",")]
    for number, graph, ranks, algorithm in product(
        range(options.rounds), options.graphs.split(";"), counts, options.algorithms.split(",")
    ):
        key = {"round": number, "graph": graph, "ranks": ranks, "algorithm": algorithm}
        missing = [
            name for name in networks if not any((key | {"network": name}).items() <= row.items() for row in rows)
        ]
        if not missing:
            continue
        parts, settings = cut(options.work, graph, ranks), settings_of(algorithm, options.hidden_feats)
        at_once = min(ranks, os.cpu_count() or 1)
        recordings = call_on_ranks(
            lambda *given: record(*given), (parts, settings, None, 5, at_once), ranks, threads=1
        )[0]
        for name in missing:
            predicted = predict.epoch(recordings, parse_network(name))
            with emulated(parse_network(name), ranks) as nodes:
                found = call_on_ranks(trained, (parts, settings, options.epochs), None, threads=1, hosts=nodes.hosts)
            real = found[0] | {"pair_bytes": [one["sent_to"] for one in found]}
            row = key | {"network": name, "predicted": predicted.seconds, "low": predicted.low, "high": predicted.high}
            row |= {"emulated": real["seconds"], "quartiles": real["quartiles"], "pair_bytes": real["pair_bytes"]}
            row |= {"bytes_equal": predicted.pair_bytes == real["pair_bytes"]}
            rows.append(row | {"predicted_phases": predicted.phases, "emulated_phases": real["phases"]})
            print(line(rows[-1]), flush=True)
            out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    table(rows)


def cut(work: Path, graph: str, ranks: int) -> str:
    parts = work / f"parts-{re.sub('[^a-z0-9]+', '-', graph.lower())}-{ranks}"
    if not (parts / "partition.json").exists():
        partition_graph(load_graph(graph), ranks, parts)
    return str(parts)


def settings_of(algorithm: str, hidden_feats: int) -> Settings:
    name, *wire = algorithm.split("/")
    schedule = Schedule(wire=wire[0]) if wire else Schedule()
    return Settings(TrainConfig(), ModelConfig("sage", hidden_feats, 3), RunConfig(algorithm=name), schedule).checked()


def trained(parts: str, settings: Settings, epochs: int) -> dict:
    """Seconds of an epoch on these ranks. Collective."""
    import numpy as np
    import torch

    import distgnn as dg
    from distgnn.nn import model_for
    from distgnn.train import Trainer

    graph = dg.load(parts, settings.run.algorithm, plain_tensors=True, say=None, **settings.graph_options())
    torch.manual_seed(0)
    trainer = Trainer(model_for(settings.model, graph, "node"), graph, settings.train)
    delay = settings.algorithm.delay or 0
    warm, records, sent = 3 + 3 * delay, [], []
    for epoch in range(warm + epochs):
        before = graph.transport.counters.copy()
        record = trainer.train_epoch(epoch)
        if epoch >= warm:
            records.append(record | graph.transport.counters.since(before))
            sent.append(graph.transport.sent_to.tolist())
    graph.drain()
    seconds = [one["seconds"] for one in records]
    names = ("aggregate_seconds", "pack_seconds", "wait_seconds", "all_reduce_seconds")
    phases = {name: statistics.median(one[name] for one in records) for name in names}
    found = {
        "seconds": statistics.median(seconds),
        "quartiles": np.percentile(seconds, [25, 75]).tolist(),
        "phases": phases,
    }
    return found | {"sent_to": [int(statistics.median(counts)) for counts in zip(*sent, strict=True)]}


def line(row: dict) -> str:
    error = row["predicted"] / row["emulated"] - 1
    cells = [row["graph"].split(":")[0], str(row["ranks"]), row["network"], row["algorithm"], f"{row['predicted']:.3f}"]
    return (
        "| " + " | ".join([*cells, f"{row['emulated']:.3f}", f"{100 * error:+.1f} %", str(row["bytes_equal"])]) + " |"
    )


def table(rows: list[dict]) -> None:
    """Medians over rounds, the median and the worst error."""
    cases: dict[tuple, list[dict]] = {}
    for row in rows:
        cases.setdefault(tuple(row[name] for name in ("graph", "ranks", "network", "algorithm")), []).append(row)
    print(
        "\n| graph | ranks | network | algorithm | predicted, s | emulated, s | error | bytes equal |\n|" + 8 * "---|"
    )
    errors = []
    for same in cases.values():
        medians = {name: statistics.median(one[name] for one in same) for name in ("predicted", "emulated")}
        print(line(same[0] | medians | {"bytes_equal": all(one["bytes_equal"] for one in same)}))
        errors.append(abs(medians["predicted"] / medians["emulated"] - 1))
    print(
        f"\n{len(errors)} cases: median error {100 * statistics.median(errors):.1f} %, worst {100 * max(errors):.1f} %"
    )


if __name__ == "__main__":
    main()
