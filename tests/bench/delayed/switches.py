"""What timing and tracing cost, and what overlap buys: each switched on and off in turn, epoch by epoch, in one run.

    mpiexec -n 2 python tests/bench/delayed/switches.py parts [--algorithm cd-0] [--epochs 12]
    python tests/bench/network/on_hosts.py --hosts 4 --rate 1gbit tests/bench/delayed/switches.py parts

Median seconds of an epoch (the slowest rank), of waiting and of the all-reduce (mean over ranks), with the switch on
and off. Switches: trace (a timeline is kept), timing (blocks are timed at all; off is a program without counters of
seconds), gradients (sums start behind the backward pass), products (those that need no message are made while messages
travel), progress (MPI is called between pieces of the local aggregation). Every pair of epochs has the switch on once
and off once.
"""

import argparse
import statistics
from contextlib import nullcontext
from itertools import product

from mpi4py import MPI

from distgnn.bench.contenders import Contender
from distgnn.bench.training import Runner
from distgnn.comm import DelayedExchange, Exchange
from distgnn.config import ModelConfig, TrainConfig
from distgnn.graph.training_exchanges import TrainingExchanges
from distgnn.train.run.trace import Trace


def main() -> None:
    """A Markdown row per switch."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts")
    parser.add_argument("--algorithm", default="cd-0")
    parser.add_argument("--hidden-feats", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=12, help="pairs of epochs per switch")
    parser.add_argument("--switches", default=",".join(SWITCHES))
    options = parser.parse_args()
    contender = Contender.parse(options.algorithm)
    runner = Runner(options.parts, contender, ModelConfig("sage", options.hidden_feats, 3), TrainConfig())
    runner.train(2)
    if MPI.COMM_WORLD.rank == 0:
        print("| switch | epoch on | epoch off | on / off | wait on | wait off | all-reduce on | all-reduce off |")
        print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in options.switches.split(","):
        switch, costs = SWITCHES[name], {True: [], False: []}
        for pair, second in product(range(options.epochs), (False, True)):
            on = (pair % 2 == 0) != second
            with_it = switch(runner, on)
            runner.train(1)
            with_it()
            costs[on].append(runner.costs[-1])
        report(name, costs)
    runner.graph.drain()


def trace(runner: Runner, on: bool):
    """Keep a timeline, or none."""
    counters = runner.graph.transport.counters
    runner.trainer.trace = Trace(counters, 0) if on else None
    counters.trace = runner.trainer.trace.add if on else None
    return lambda: (setattr(counters, "trace", None), setattr(runner.trainer, "trace", None))


def timing(runner: Runner, on: bool):
    """Time blocks, or do not."""
    counters = runner.graph.transport.counters
    if not on:
        counters.timing = lambda _name: nullcontext()
    return lambda: vars(counters).pop("timing", None)


def gradients(runner: Runner, on: bool):
    """Start sums of gradients behind the backward pass, or after it."""
    runner.trainer.gradients.overlap = on
    return lambda: setattr(runner.trainer.gradients, "overlap", True)


def products(_runner: Runner, on: bool):
    """Make products while messages travel, or after them."""
    before = TrainingExchanges.waits_for_rows
    if not on:
        TrainingExchanges.waits_for_rows = False
    return lambda: setattr(TrainingExchanges, "waits_for_rows", before)


def progress(_runner: Runner, on: bool):
    """Call MPI between pieces, or not."""
    before = Exchange.progress, DelayedExchange.progress
    if not on:
        Exchange.progress = DelayedExchange.progress = lambda _exchange: None

    def put_back() -> None:
        Exchange.progress, DelayedExchange.progress = before

    return put_back


SWITCHES = {"trace": trace, "timing": timing, "gradients": gradients, "products": products, "progress": progress}


def report(name: str, costs: dict[bool, list[dict]]) -> None:
    """Print a row."""

    def median(on: bool, key: str) -> float:
        return statistics.median(cost[key] for cost in costs[on])

    if MPI.COMM_WORLD.rank != 0:
        return
    ratio = statistics.median(
        one["seconds"] / other["seconds"] for one, other in zip(costs[True], costs[False], strict=True)
    )
    cells = [f"{median(on, 'seconds'):.4f}" for on in (True, False)] + [f"{ratio:.4f}"]
    cells += [f"{median(on, key):.4f}" for key in ("wait_seconds", "all_reduce_seconds") for on in (True, False)]
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
