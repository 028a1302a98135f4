"""What is measured on ranks: algorithms side by side, in turn; recordings for other networks; how fast each rank is.

Every algorithm gets a graph, a model and an optimiser of its own; then they train in turn, a few epochs each, so that
whatever else the machine does meets all of them. The first epochs of each (compilation, warm-up of a schedule, rows
that arrive for the first time) are not counted.
"""

import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.bench.contenders import Contender
from distgnn.config import Settings, num_threads
from distgnn.config.extras import attached
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.loader import load, use_threads
from distgnn.nn import model_for
from distgnn.train.checkpoint.identity import fingerprint
from distgnn.train.trainer import Trainer

UNCOUNTED_EPOCHS = 2
EPOCHS_IN_TURN = 3
SENT = ("sent_bytes", "max_rank_sent_bytes", "sent_messages")
WAITS = ("wait_seconds", "all_reduce_seconds")
SPENT = ("aggregate_seconds", "pack_seconds", "wait_seconds")


class Runner:
    """One contender at work: trains epochs when it is its turn, and keeps what they cost. Collective: everything."""

    def __init__(self, parts: str, contender: Contender, base: Settings, say: Callable[[str], None]):
        settings = contender.settings(base)
        schedule, delay = settings.schedule, settings.algorithm.delay
        self.contender, self._wire = contender, "/".join(dict.fromkeys(schedule.wires))
        options = settings.graph_options() | {"plain_tensors": True, "say": say}
        self.graph: DistGraph = load(parts, settings.run.algorithm, **options)
        torch.manual_seed(settings.train.seed)
        network = model_for(settings.model, self.graph, settings.train.task)
        self._trainer: Any = Trainer(network, self.graph, settings.train, say=say)
        caution = schedule.caution(settings.algorithm)
        if caution:
            say(caution)
        self._costs: list[dict[str, float]] = []
        self._epoch = 0
        self.uncounted: int = UNCOUNTED_EPOCHS + (schedule.warmup_epochs + delay if delay else 0)
        cycle = delay or 1
        self.turn: int = cycle * -(-EPOCHS_IN_TURN // cycle)

    def train(self, epochs: int) -> None:
        """Train, and keep each epoch's means over ranks, where it counts."""
        transport, comm = self.graph.transport, self.graph.comm
        for _ in range(epochs):
            before = transport.counters.copy()
            transport.suppressed = self.contender.suppressed and self._epoch >= UNCOUNTED_EPOCHS
            record = self._trainer.train_epoch(self._epoch)
            transport.suppressed = False
            ranks = comm.allgather(transport.counters.since(before))
            if self._epoch >= self.uncounted:
                waits = [sum(rank[name] for name in WAITS) for rank in ranks]
                means = {name: statistics.fmean(rank[name] for rank in ranks) for name in ranks[0]}
                sent = [rank["sent_bytes"] for rank in ranks]
                self._costs.append(
                    means
                    | {"seconds": record["seconds"], "wait_seconds": statistics.fmean(waits)}
                    | {"wait_seconds_min": min(waits), "wait_seconds_max": max(waits), "max_rank_sent_bytes": max(sent)}
                )
            self._epoch += 1

    def row(self) -> dict[str, Any]:
        """What an epoch of the contender takes: medians over epochs; of what is sent the mean, as bins are unequal."""
        seconds = [cost["seconds"] for cost in self._costs]
        median = {name: statistics.median(cost[name] for cost in self._costs) for name in self._costs[0]}
        sent = {name: statistics.fmean(cost[name] for cost in self._costs) for name in SENT}
        low, high = (float(one) for one in np.percentile(seconds, [25, 75]))
        ranks = self.graph.num_ranks
        return {
            "name": self.contender.name,
            "ranks": ranks,
            "threads": num_threads(),
            "update": self.graph.update,
            "wire": self._wire,
            "epochs_measured": len(seconds),
            "epoch_seconds_median": median["seconds"],
            "epoch_seconds_low": low,
            "epoch_seconds_high": high,
            "dense_seconds": max(0.0, median["seconds"] - sum(median[name] for name in SPENT)),
            **{name: median[name] for name in (*SPENT, "wait_seconds_min", "wait_seconds_max")},
            "sent_bytes_per_epoch": round(sent["sent_bytes"] * ranks),
            "sent_bytes_per_rank": round(sent["sent_bytes"]),
            "max_rank_sent_bytes": round(sent["max_rank_sent_bytes"]),
            "messages_per_rank": sent["sent_messages"],
            "exchange_bytes": max(self.graph.comm.allgather(self.graph.exchange_bytes())),
        }


def take_turns(parts: str, contenders: list[Contender], base: Settings, rounds: int) -> dict[str, Any]:
    """Rows of all contenders by name, lines that were said (each once), versions, and what identifies the graph.

    Collective: one rank per part.

    Args: rounds: turns that each contender gets, of `EPOCHS_IN_TURN` epochs or, of late rows, a whole number of cycles.
    """
    from distgnn.train.run.machine import versions

    lines: list[str] = []
    runners = [Runner(parts, contender, base, lines.append) for contender in contenders]
    for runner in runners:
        runner.train(runner.uncounted)
    for _ in range(rounds):
        for runner in runners:
            runner.train(runner.turn)
    rows = {runner.contender.name: runner.row() for runner in runners}
    for runner in runners:
        runner.graph.drain()
    graph = fingerprint(runners[0].graph)
    return {"rows": rows, "lines": list(dict.fromkeys(lines)), "versions": versions(), "graph": graph}


def predict_epochs(
    parts: str, settings: list[Settings], networks: list[Any], at_once: int
) -> list[list[dict[str, Any]]]:
    """On rank 0, of each settings, what an epoch would take over each network; ranks train here in turn.

    Collective: yes. Args: at_once: ranks that compute at a time.
    """
    record, predict = (next(attached(point)) for point in ("record", "predict"))
    recordings = record(parts, settings, at_once=at_once)
    return [[predict(one, network).as_dict() for network in networks] for one in recordings if one]


NUM_NODES, NUM_ARCS, WIDTH = 1 << 15, 1 << 19, 128  # N vertices, E arcs, D columns


def measure_speeds(comm: Any, seconds: float) -> list[dict[str, Any]]:
    """Rounds per second of every rank: one aggregation (N, E, D) and one dense product [N, D] x [D, D] each.

    Collective: yes; all ranks run at the same time, as in training, so that shared cores, caches and memory count.

    Returns: for each rank {rank, host, threads, rounds_per_second, capacity}; capacity is relative to the fastest.
    """
    use_threads(num_threads())
    random = np.random.default_rng(0)
    indptr = np.linspace(0, NUM_ARCS, NUM_NODES + 1).astype(np.int64)
    indices = random.integers(0, NUM_NODES, NUM_ARCS).astype(np.int32)
    feats = random.standard_normal((NUM_NODES, WIDTH)).astype(np.float32)
    weight, out = torch.from_numpy(feats[:WIDTH].copy()), np.empty_like(feats)

    def do_round() -> None:
        kernels.spmm(indptr, indices, feats, out=out)
        torch.from_numpy(out) @ weight

    do_round()  # compiles
    comm.Barrier()
    began, rounds = time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        do_round()
        rounds += 1
    speed = rounds / (time.perf_counter() - began)
    ranks = comm.allgather((platform.node(), num_threads(), speed))
    fastest = max(speed for *_, speed in ranks)
    return [
        {"rank": rank, "host": host, "threads": threads, "rounds_per_second": speed, "capacity": speed / fastest}
        for rank, (host, threads, speed) in enumerate(ranks)
    ]
