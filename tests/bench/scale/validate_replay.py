"""Is the replay right? Epochs that it predicts over a network, beside the same epochs on that network emulated here.

    python tests/bench/scale/validate_replay.py WORK [--graphs GRAPH;GRAPH] [--ranks 2,4] [--rounds 3]
        [--networks 0.1gbit,1gbit,10gbit] [--algorithms cd-0,cd-5,cd-5/int8,0c]

Needs root, iproute2, MPICH, and nothing else running. In each round, in turn: every algorithm is recorded here, and
again on each network (`distgnn/extras/replay/emulate.py`). Two predictions stand beside the epochs that took place
there: of what was recorded here, and of what was recorded in these epochs. The second has their computation, so its
error is the network model's alone; the first also has what the machine did meanwhile. Medians over rounds.

Printed, and written to WORK/validation.json. What stands in the file is not run again.
"""

import argparse
import json
import os
import re
import statistics
from itertools import product
from pathlib import Path

from distgnn.bench.contenders import Contender
from distgnn.config import ModelConfig, Settings
from distgnn.datasets import load_graph
from distgnn.extras.replay import predict
from distgnn.extras.replay.emulate import emulated
from distgnn.extras.replay.network import parse_network
from distgnn.extras.replay.record import record
from distgnn.partition import partition_graph
from distgnn.system.calls.launch import call_on_ranks
from distgnn.system.processor import machine

COMPARED = {"predicted": "recorded here", "played": "recorded on the emulated network: the model alone"}
GRAPHS = "ogb/ogbn_arxiv;communities:nodes=50000,avg_degree=20,feats=128,classes=40,seed=1"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path)
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument("--ranks", default="2")
    parser.add_argument("--networks", default="0.1gbit,1gbit,10gbit")
    parser.add_argument("--algorithms", default="cd-0,cd-5,cd-5/int8,0c")
    parser.add_argument("--hidden-feats", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=5, help="of each epoch in a round")
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
        given = (parts, settings, None, options.repeats, at_once)
        here = call_on_ranks(lambda *words: record(*words), given, ranks, threads=1)[0]
        for name in missing:
            network = parse_network(name)
            with emulated(network, ranks) as nodes:
                given = (parts, settings, options.repeats)
                there = call_on_ranks(recorded_there, given, None, threads=1, hosts=nodes.hosts)[0]
            predicted, again, seconds = predict.epoch(here, network), predict.epoch(there, network), seconds_of(there)
            row = key | {"network": name, "predicted": predicted.seconds, "low": predicted.low, "high": predicted.high}
            row |= {"emulated": statistics.median(seconds), "all": seconds, "played": again.seconds}
            row |= {"bytes_equal": predicted.pair_bytes == again.pair_bytes, "sent_bytes": again.sent_bytes}
            rows.append(row | {"predicted_phases": predicted.phases, "played_phases": again.phases})
            print(line(rows[-1]), flush=True)
            out.write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1))
    table(rows)


def cut(work: Path, graph: str, ranks: int) -> str:
    parts = work / f"parts-{re.sub('[^a-z0-9]+', '-', graph.lower())}-{ranks}"
    if not (parts / "partition.json").exists():
        partition_graph(load_graph(graph), ranks, parts)
    return str(parts)


def settings_of(algorithm: str, hidden_feats: int) -> Settings:
    return Contender.parse(algorithm).settings(Settings(model=ModelConfig("sage", hidden_feats, 3)))


def recorded_there(parts: str, settings: Settings, repeats: int) -> list:
    """What ranks on an emulated network do; they wait there as in any run. Collective."""
    from distgnn.extras.replay import record

    record.PAUSE_SECONDS = 0.0
    return record.record(parts, settings, None, repeats)


def seconds_of(recordings: list) -> list[float]:
    """Of each cycle of epochs but the first, the mean epoch of the slowest rank."""
    cycle = recordings[0].cycle
    slowest = [max(seconds) for seconds in zip(*(one.seconds for one in recordings), strict=True)]
    return [statistics.fmean(slowest[at : at + cycle]) for at in range(cycle, len(slowest), cycle)]


def line(row: dict) -> str:
    cells = [row["graph"].split(":")[0], str(row["ranks"]), row["network"], row["algorithm"], f"{row['predicted']:.3f}"]
    cells += [f"{row['emulated']:.3f}", *(f"{100 * (row[name] / row['emulated'] - 1):+.1f} %" for name in COMPARED)]
    return "| " + " | ".join([*cells, str(row["bytes_equal"])]) + " |"


def table(rows: list[dict]) -> None:
    """Medians over rounds, the median and the worst error."""
    cases: dict[tuple, list[dict]] = {}
    for row in rows:
        cases.setdefault(tuple(row[name] for name in ("graph", "ranks", "network", "algorithm")), []).append(row)
    titles = (
        "graph | ranks | network | algorithm | predicted, s | emulated, s | error | error of the model | bytes equal"
    )
    print(f"\n| {titles} |\n|" + 9 * "---|")
    errors: dict[str, list[float]] = {name: [] for name in COMPARED}
    for same in cases.values():
        medians = {name: statistics.median(one[name] for one in same) for name in (*COMPARED, "emulated")}
        print(line(same[0] | medians | {"bytes_equal": all(one["bytes_equal"] for one in same)}))
        for name, found in errors.items():
            found.append(abs(medians[name] / medians["emulated"] - 1))
    for name, what in COMPARED.items():
        median, worst = (100 * of(errors[name]) for of in (statistics.median, max))
        print(f"\n{what}: median error {median:.1f} %, worst {worst:.1f} %, of {len(cases)} cases")


if __name__ == "__main__":
    main()
