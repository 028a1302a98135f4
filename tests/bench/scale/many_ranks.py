"""What start-up, memory, messages and agreements cost per rank, as functions of the number of ranks P.

    python tests/bench/scale/many_ranks.py --ranks 4,8,16,32,64 --out many-ranks.json

Ranks share this machine's cores, so seconds of P ranks on c cores hold P / c times the work of one: the column
`x cores / P` is what the start-up of a rank would need with a core of its own. A small generated graph, one thread
per rank.

    start         from the launch until Python runs on the last rank; imports: MPI_Init, torch, numba, ours; load: the
                  part, exchanges and agreements; model: the model and the trainer; first, epoch: of training
    checkpoint    of all ranks, one write
    end           from the last epoch until the launcher has ended
    kernels       compiled + loaded by a rank, and the seconds that it took (mean)
    private       memory that only this rank maps; shared: its share of what several map (both: mean over ranks)
    messages      sent by a rank in one epoch: mean and largest
    agreements    collective calls of a rank, while loading and in one epoch, by name
    state         bytes of Python and numpy that a rank holds for the other ranks (exchange plan and counters)
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

STARTED = "DISTGNN_BENCH_STARTED"
COLLECTIVE = ("allreduce", "Allreduce", "Iallreduce", "allgather", "Allgather", "bcast", "Bcast", "Barrier", "gather")
COLLECTIVE += ("Alltoall", "alltoall", "Dup", "Split", "Split_type")
MEANS = ("private", "shared", "messages", "compiled", "loaded", "kernel_seconds")
EPOCHS = 4


def main() -> None:
    """Cut the graph and start ranks, for each count; on a rank: measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", default="4,8,16,32")
    parser.add_argument("--graph", default="communities:nodes=20000")
    parser.add_argument("--work", type=Path, default=Path("many-ranks"))
    parser.add_argument("--exchange", default="auto", choices=("auto", "flat", "node"))
    parser.add_argument("--algorithm", default="cd-0")
    parser.add_argument("--out", type=Path, default=Path("many-ranks.json"))
    parser.add_argument("--on-rank", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.on_rank:
        measure(options)
        return
    rows = json.loads(options.out.read_text()) if options.out.exists() else {}
    for count in options.ranks.split(","):
        parts = options.work / f"parts-{count}"
        if not parts.exists():
            words = ["partition", options.graph, "--parts", count, "--out", str(parts), "--quiet"]
            subprocess.run([sys.executable, "-m", "distgnn.cli", *words], check=True)
        rows[count] = run(options, int(count), parts)
        options.out.write_text(json.dumps(rows, indent=1))
    print_table(rows)


def run(options: argparse.Namespace, count: int, parts: Path) -> dict:
    """One start of `count` ranks."""
    words = ["--exchange", options.exchange, "--algorithm", options.algorithm, "--out", options.work / "row.json"]
    launch = [sys.executable, "-m", "distgnn.cli", "run", "-n", str(count), "--threads", "1", os.path.abspath(__file__)]
    shutil.rmtree(options.work / "run", ignore_errors=True)
    started = time.time()
    environment = os.environ | {STARTED: str(started)}
    subprocess.run([*launch, *map(str, words), "--on-rank", str(parts)], check=True, env=environment)
    row = json.loads((options.work / "row.json").read_text())
    ended = time.time()
    return row | {"wall": ended - started, "end": ended - row["ended"]}


def measure(options: argparse.Namespace) -> None:
    """Start-up, memory and counts of this run. Collective: yes."""
    marks = {"start": time.time()}
    from mpi4py import MPI

    counts: Counter = Counter()
    counted = type("Counted", (MPI.Intracomm,), {name: _counting(name, counts) for name in (*COLLECTIVE, "Isend")})

    import torch

    from distgnn import kernels
    from distgnn.config import ModelConfig, TrainConfig
    from distgnn.graph.loader import load
    from distgnn.nn import model_for
    from distgnn.train import Trainer
    from distgnn.train.checkpoint.state import save_checkpoint

    marks["imports"] = time.time()
    world = counted(MPI.COMM_WORLD)
    graph = load(options.on_rank, options.algorithm, comm=world, say=None, exchange=options.exchange)
    marks["load"], loading = time.time(), Counter(counts)
    torch.manual_seed(0)
    config = TrainConfig(run_dir=str(options.out.parent / "run"))
    trainer = Trainer(model_for(ModelConfig("sage", 32, 2), graph), graph, config)
    trainer.outputs.start({})
    marks["model"] = time.time()
    seconds = []
    for epoch in range(EPOCHS):
        before, began = Counter(counts), time.time()
        trainer.train_epoch(epoch)
        seconds.append(time.time() - began)
    of_epoch = counts - before
    graph.drain()
    before, began = Counter(counts), time.time()
    save_checkpoint(options.out.parent / "run", trainer, EPOCHS)
    saving = {"checkpoint": time.time() - began, "saving": sum((counts - before).values())}
    messages = of_epoch.pop("Isend", 0)
    made = kernels.compilation()
    kernel = {"compiled": made.compiled, "loaded": made.loaded, "kernel_seconds": made.seconds}
    own = kernel | {"marks": marks, "first": seconds[0], "epoch": statistics.median(seconds[1:]), "messages": messages}
    own |= saving
    everyone = MPI.COMM_WORLD.gather(own | memory() | {"state": state_bytes(graph)})
    if everyone is not None:
        options.out.write_text(json.dumps(summary(everyone, loading, of_epoch), indent=1))


def _counting(name: str, counts: Counter):
    method = None

    def call(self, *arguments, **named):
        from mpi4py import MPI

        nonlocal method
        method = method or getattr(MPI.Intracomm, name)
        counts[name] += 1
        return method(self, *arguments, **named)

    return call


def memory() -> dict[str, int]:
    """Bytes that only this process maps, and its share of what several do."""
    lines = Path("/proc/self/smaps_rollup").read_text().splitlines()[1:]
    found = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
    private = found["Private_Clean"] + found["Private_Dirty"]
    return {"private": private, "shared": found["Pss"] - private}


def state_bytes(graph) -> int:
    """Arrays with an entry per rank, or per pair of ranks."""
    plan = graph.plan
    arrays = (plan.broadcast_indptr, plan.source_indptr, plan.reduce_indptr, plan.target_indptr)
    return sum(one.nbytes for one in (*arrays, graph.transport.sent_to, graph.transport.is_far))


def summary(everyone: list[dict], loading: Counter, of_epoch: Counter) -> dict:
    """One row from those of all ranks; a stage ends when its last rank ends it."""
    before, stages = float(os.environ[STARTED]), {}
    for stage in ("start", "imports", "load", "model"):
        end = max(one["marks"][stage] for one in everyone)
        stages[stage], before = end - before, end
    mean = {name: statistics.fmean(one[name] for one in everyone) for name in MEANS}
    largest = {name: max(one[name] for one in everyone) for name in ("first", "epoch", "state", "checkpoint", "saving")}
    rest = {
        "max_messages": max(one["messages"] for one in everyone),
        "cores": len(os.sched_getaffinity(0)),
        "ended": time.time(),
    }
    loading.pop("Isend", None)
    rest |= {"ended": time.time()}
    return stages | mean | largest | rest | {"agreements": {"load": dict(loading), "epoch": dict(of_epoch)}}


def print_table(rows: dict[str, dict]) -> None:
    """Markdown."""
    titles = "start | imports | load | model | first | epoch | checkpoint | end | wall | x cores / P | private MB"
    titles += " | shared MB | kernels"
    print(f"| P | {titles} |\n|{14 * '---|'}")
    for count, row in rows.items():
        started = sum(row[name] for name in ("start", "imports", "load", "model"))
        cells = [row[name] for name in ("start", "imports", "load", "model", "first", "epoch")]
        cells += [row[name] for name in ("checkpoint", "end", "wall")]
        cells.append(started * row["cores"] / int(count))
        rest = [f"{row[name] / 1e6:.0f}" for name in ("private", "shared")]
        rest.append(f"{row['compiled']:.1f} + {row['loaded']:.1f}, {row['kernel_seconds']:.2f} s")
        print("| " + " | ".join([count, *(f"{cell:.2f}" for cell in cells), *rest]) + " |")
    print("\n| P | messages | largest | agreements: load | epoch | state |\n|---|---|---|---|---|---|")
    for count, row in rows.items():
        calls = [", ".join(f"{n} {name}" for name, n in row["agreements"][when].items()) for when in ("load", "epoch")]
        print(f"| {count} | {row['messages']:.1f} | {row['max_messages']} | {calls[0]} | {calls[1]} | {row['state']} |")


if __name__ == "__main__":
    main()
