"""Healing under Open MPI, on two machines of two ranks each (network namespaces): a killed rank, a machine that goes.

    DISTGNN_MPIEXEC=/usr/bin/mpirun.openmpi python tests/bench/faults/open_mpi.py WORK [--timeout 15]

Needs root, iproute2, and an mpi4py that finds Open MPI's library (MPI4PY_MPIABI=openmpi, MPI4PY_LIBMPI=…). Prints what
was seen, and exits 1 where a run did not heal, lost an epoch, left a process, or changed a loss (1e-9 in float64).
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from job import NOTICED, Job, all_processes, end_all, end_on_signals, results, send
from machines import Machines, machines, wait_for

EPOCHS, EVERY = 200, 20


def rank_of(net: Machines, number: int) -> int:
    ranks = [b"OMPI_COMM_WORLD_RANK=" in Path(f"/proc/{pid}/environ").read_bytes() for pid in net.pids(number)]
    return next(pid for pid, is_rank in zip(net.pids(number), ranks, strict=True) if is_rank)


def killed(net: Machines) -> None:
    send(rank_of(net, 2), signal.SIGKILL)


def gone(net: Machines) -> None:
    net.away(2)
    net.signal(2, signal.SIGKILL)


def start(work: Path, net: Machines, args: argparse.Namespace, name: str) -> Job:
    folder = work / f"run-{name}"
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    (work / "hosts.txt").write_text("".join(f"{net.address(number)}:2\n" for number in net.numbers))
    train = ("train", work / "parts", "--run-dir", folder, "--epochs", EPOCHS, "--hidden-feats", 16, "--quiet")
    train += ("--dtype", "float64", "--checkpoint-every", EVERY, "--timeout", args.timeout, "--eval-every", 100)
    launch = ("launch", "--hosts", work / "hosts.txt", "--threads", 1, "--restarts", 5, "--min-ranks", 2)
    return Job([*launch, "--", *train], folder, before=net.before(), variables=net.variables("openmpi"))


def one(work: Path, net: Machines, args: argparse.Namespace, name: str, fault: Callable | None) -> list[str]:
    """One run; what is wrong."""
    job, began = start(work, net, args, name), time.monotonic()
    try:
        if fault is not None:
            wait_for(lambda: job.epochs() > EVERY + 5 or job.over())
            began = time.monotonic()
            fault(net)
        job.launcher.wait(args.patience)
    except subprocess.TimeoutExpired:
        pass
    finally:
        net.away(2, False)
        for at, line in job.said:
            print(f"  {at - began:6.1f} s  {line}", flush=True)
        send(job.launcher.pid, signal.SIGTERM)
        time.sleep(5)
        left = len(all_processes())
        end_all()
    noticed = job.told(0, NOTICED.search)
    print(
        f"{name}: exit {job.launcher.poll()}, {job.epochs()} epochs, restarts {len(noticed)}, {left} left", flush=True
    )
    wrong = [] if job.launcher.poll() == 0 else ["it did not end well"]
    wrong += [f"{left} processes are left"] if left else []
    wrong += ["nobody noticed"] if fault is not None and not noticed else []
    return [f"{name}: {text}" for text in wrong]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--timeout", type=float, default=15)
    parser.add_argument("--patience", type=float, default=240)
    args = parser.parse_args()
    work = args.work = args.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    end_on_signals()
    from distgnn.partition import partition_graph

    partition_graph("communities:nodes=1500,feats=16", 4, work / "parts", method="libra", overwrite=True)
    wrong = []
    with machines(work, 2) as net:
        for name, fault in (("whole", None), ("rank-killed", killed), ("machine-gone", gone)):
            wrong += one(work, net, args, name, fault)
    if (work / "run-whole" / "summary.json").exists():
        expected = dict(results(work / "run-whole")[0])
        for name in ("rank-killed", "machine-gone"):
            losses = results(work / f"run-{name}")[0]
            apart = max(abs(loss - expected[epoch]) for epoch, loss in losses)
            print(f"{name}: losses differ by {apart:.1e}")
            good = apart < 1e-9 and [epoch for epoch, _ in losses] == list(range(EPOCHS))
            wrong += [] if good else [f"{name}: other losses, or not each epoch once"]
    print("\n".join(f"FINDING {text}" for text in wrong) or "nothing wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
