"""`distgnn bench`: what does avoiding communication buy? Algorithms side by side on the ranks of one partition.

Every algorithm gets a graph, a model and an optimiser of its own; then they train in turn, a few epochs each, so that
whatever else the machine does meets all of them. The first epochs of each (compilation, warm-up of a schedule) are not
counted. `paper` is the form of the DistGNN paper: cd-0, update on copies, every layer exchanged in every epoch.
"""

import os
import statistics
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.bench.contenders import EXACT, PAPER, Contender
from distgnn.config import Algorithm, ModelConfig, TrainConfig, num_threads
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.loader import load, say_on_stderr
from distgnn.nn import model_for
from distgnn.system.sizes import peak_rss_bytes
from distgnn.train.trainer import Trainer

UNCOUNTED_EPOCHS = 2
EPOCHS_IN_TURN = 3


class Runner:
    """One contender at work: trains epochs when it is its turn, and keeps what they cost. Collective: everything."""

    def __init__(
        self, parts: str, contender: Contender, model: ModelConfig, config: TrainConfig, say: Callable[[str], None]
    ):
        self.contender = contender
        options = {"seed": config.seed, "sparse_feats": model.takes_sparse_feats} | asdict(contender.schedule)
        if contender.papers_form:
            options |= {"cache_first": False, "transform_first": False}
        options |= {"update": contender.update, "plain_tensors": True, "say": say}
        self.graph: DistGraph = load(parts, contender.algorithm, **options)
        torch.manual_seed(config.seed)
        network = model_for(model, self.graph)
        self.trainer: Trainer = Trainer(network, self.graph, config)
        self.costs: list[dict[str, Any]] = []
        self.curve: list[dict[str, Any]] = []
        self._epoch = 0

    def train(self, epochs: int) -> None:
        for _ in range(epochs):
            before = self.graph.transport.counters.copy()
            self.graph.transport.suppressed = self.contender.suppressed and self._epoch >= UNCOUNTED_EPOCHS
            record = self.trainer.train_epoch(self._epoch)
            self.graph.transport.suppressed = False
            mine = self.graph.transport.counters.since(before)
            ranks = self.graph.comm.allgather(mine)
            means = {name: statistics.fmean(rank[name] for rank in ranks) for name in mine}
            waits = [rank["wait_seconds"] for rank in ranks]
            extremes = {"wait_seconds_min": min(waits), "wait_seconds_max": max(waits)}
            extremes["max_rank_sent_bytes"] = max(rank["sent_bytes"] for rank in ranks)
            self.costs.append(record | means | extremes | {"sent_bytes": record["sent_bytes"]})
            self._epoch += 1

    def evaluate(self) -> None:
        """Add the exact metrics of now to the curve; without its messages a run is not worth one."""
        if self.contender.suppressed:
            return
        metrics = self.trainer.evaluate()
        seconds = sum(cost["seconds"] for cost in self.costs)
        self.curve.append({"epoch": self._epoch, "seconds": seconds, "loss": self.costs[-1]["loss"]} | metrics)

    def row(self) -> dict[str, Any]:
        """The contender's row, without speed-ups."""
        from mpi4py import MPI

        counted = self.costs[UNCOUNTED_EPOCHS:]
        seconds = [cost["seconds"] for cost in counted]
        quarter, three_quarters = np.percentile(seconds, [25, 75])
        numbers = [name for name, value in counted[0].items() if isinstance(value, int | float)]
        median = {name: statistics.median(cost[name] for cost in counted) for name in numbers}
        spent = ("aggregate_seconds", "pack_seconds", "wait_seconds", "all_reduce_seconds")
        comm, threads = self.graph.comm, num_threads()
        # Cores that the ranks compute on, over all hosts
        here = comm.Split_type(MPI.COMM_TYPE_SHARED)
        cores = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
        my_cores = min(threads, len(set().union(*here.allgather(set(cores)))) / here.size)
        here.Free()
        return {
            "name": self.contender.name,
            "algorithm": self.contender.algorithm,
            "update": self.contender.update,
            "wire": self.contender.wire,
            "ranks": self.graph.num_ranks,
            "threads": threads,
            "cores": comm.allreduce(my_cores),
            "epoch_seconds_median": median["seconds"],
            "epoch_seconds_iqr": float(three_quarters - quarter),
            "dense_seconds": max(0.0, median["seconds"] - sum(median[name] for name in spent)),
            **{name: median[name] for name in (*spent, "wait_seconds_min", "wait_seconds_max")},
            "exchange_waits": {
                name: [statistics.median(cost["exchange_waits"][name][i] for cost in counted) for i in range(3)]
                for name in counted[0]["exchange_waits"]
                if all(name in cost["exchange_waits"] for cost in counted)
            },
            "sent_bytes_per_epoch": int(median["sent_bytes"]),
            "max_rank_sent_bytes": int(median["max_rank_sent_bytes"]),
            "exchange_bytes": max(comm.allgather(self.graph.exchange_bytes())),
            "peak_rss_bytes": max(comm.allgather(peak_rss_bytes())),
            "final_metric": self.curve[-1]["test_metric"] if self.curve else None,
        }


def run(
    parts: str, contenders: list[Contender], model: ModelConfig, config: TrainConfig, rounds: int, accuracy: bool
) -> list[dict[str, Any]]:
    """Rows of bench.json for one partition folder. Collective: yes, with one rank per part.

    Args:
        config: seed and optimiser; its `epochs` are trained by each contender when `accuracy` is on.
        rounds: turns of `EPOCHS_IN_TURN` epochs that each contender gets.
        accuracy: train all epochs, evaluating after the first ones, each turn, and then every `eval_every`; report the
            curve. The kernels of all contenders are compiled before.
    """
    said: set[str] = set()

    def say(line: str) -> None:
        """Each line once: contenders have one machine."""
        if line not in said:
            said.add(line)
            say_on_stderr(line)

    if accuracy:
        # Seconds are read against accuracy from the first epoch on: no contender shall pay for kernels of all.
        for contender in contenders:
            _warm_up(Runner(parts, contender, model, config, say))
    runners = [Runner(parts, contender, model, config, say) for contender in contenders]
    for runner in runners:
        for _ in range(UNCOUNTED_EPOCHS):
            runner.train(1)
            if accuracy:
                runner.evaluate()
    for _ in range(rounds):
        for runner in runners:
            runner.train(EPOCHS_IN_TURN)
            if accuracy:
                runner.evaluate()
    if accuracy:
        for runner in runners:
            while runner._epoch < config.epochs:
                runner.train(min(config.eval_every, config.epochs - runner._epoch))
                runner.evaluate()
    rows = [runner.row() for runner in runners]
    for runner, row in zip(runners, rows, strict=True):
        row["curve"] = runner.curve
        runner.graph.drain()
    return with_speedups(rows)


def _warm_up(runner: Runner) -> None:
    """Train and evaluate until no rank needs new kernels; what was trained is thrown away. Collective: yes."""
    needed, contender = -1, runner.contender
    # An exchange R epochs late has its first arrivals, and their kernels, after R epochs.
    fewest = UNCOUNTED_EPOCHS + (Algorithm.parse(contender.algorithm).delay or 0) + contender.schedule.warmup_epochs
    while runner._epoch < fewest or needed:
        before = kernels.compilation()
        runner.train(1)
        runner.evaluate()
        now = kernels.compilation()
        needed = runner.graph.comm.allreduce(now.compiled + now.loaded - before.compiled - before.loaded)
    runner.graph.drain()


def with_speedups(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows with the ratios to the exact run and to the paper's form."""
    seconds = {row["name"]: row["epoch_seconds_median"] for row in rows}
    for row in rows:
        row["speedup_vs_exact"] = seconds[EXACT] / row["epoch_seconds_median"]
        row["speedup_vs_paper"] = seconds[PAPER] / row["epoch_seconds_median"]
    return rows
