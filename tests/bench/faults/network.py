"""Faults of a network and of machines, in a job on three of them that is told to heal: who notices, when, what is lost.

    python tests/bench/faults/network.py WORK [--faults "link down 5 s,one-way loss"] [--timeout 15]

`distgnn launch --restarts 20 --min-ranks 2` trains on three machines, one rank each (hosts.py: root,
iproute2, MPICH). For each fault the job is started anew; the fault is put in after some epochs. Prints a table, and
exits 1 where something did not heal, was not named, left a process, or changed a loss (1e-9 in float64).

    detected    from the fault to the launcher's word that the ranks ended
    named       from the fault to the line that names the rank or the machine
    healed      from the fault to the first epoch that had not been done before it
    lost        epochs that were done twice
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from hosts import Hosts
from job import NOTICED, Job, all_processes, end_all, end_on_signals, results, send

EVERY = 20
NAMED = re.compile(r"rank \d+ on host \S+ does not answer|rank \d+ does not answer|rank \d+ is in \S+")
FAR = 2  # epochs of a slow link that count as healed
NOTHING = "nobody needs to notice"


def _down_for_5_seconds(net: Hosts) -> None:
    net.link(3, up=False)
    time.sleep(5)
    net.link(3, up=True)


def _down(net: Hosts) -> None:
    net.away(3)
    net.link(3, up=False)


def _mute(net: Hosts) -> None:
    net.away(3)
    net.mute(3)


def _frozen(net: Hosts) -> None:
    net.away(3)
    net.signal(3, signal.SIGSTOP)


def _dead(net: Hosts) -> None:
    net.away(3)
    net.signal(3, signal.SIGKILL)


def _rank_killed(net: Hosts) -> None:
    send(rank_of(net, 3), signal.SIGKILL)


# name: (how to put it in, ranks that go on)
FAULTS: dict[str, tuple[Callable[[Hosts], None], int]] = {
    "link down 5 s": (_down_for_5_seconds, 3),
    "slow link (1 Mbit/s)": (lambda net: net.slow(3, "1mbit"), 3),
    "rank killed": (_rank_killed, 3),
    "machine gone": (_dead, 2),
    "link down for good": (_down, 2),
    "one-way loss": (_mute, 2),
    "machine frozen": (_frozen, 2),
}
UNNOTICED = ("link down 5 s", "slow link (1 Mbit/s)")


def rank_of(net: Hosts, number: int) -> int:
    return next(pid for pid in net.pids(number) if b"DISTGNN_NOTE_FD=" in Path(f"/proc/{pid}/environ").read_bytes())


def start(work: Path, net: Hosts, args: argparse.Namespace, name: str) -> Job:
    folder = work / f"run-{name.split('(')[0].strip().replace(' ', '-')}"
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    (work / "hosts.txt").write_text("".join(f"{net.address(number)}\n" for number in net.numbers))
    train = ("train", work / "parts", "--run-dir", folder, "--epochs", 100000, "--hidden-feats", 16, "--quiet")
    train += ("--dtype", "float64", "--checkpoint-every", EVERY, "--timeout", args.timeout, "--eval-every", 1000)
    launch = ("launch", "--hosts", work / "hosts.txt", "--threads", 1, "--restarts", 20, "--min-ranks", 2)
    return Job([*launch, "--", *train], folder, before=net.before(), variables=net.variables())


def one_fault(work: Path, net: Hosts, args: argparse.Namespace, name: str) -> dict:
    put_in, ranks = FAULTS[name]
    job = start(work, net, args, name)
    row = {"fault": name, "detected": None, "named": None, "word": "", "healed": None, "lost": 0, "findings": []}
    try:
        while job.epochs() <= EVERY + 5 and not job.over():
            time.sleep(0.05)
        words, file, before = len(job.said), job.file(), job.epochs()
        began, most = time.monotonic(), before
        put_in(net)
        settled = job.epochs()
        while not job.over() and time.monotonic() < began + args.patience:
            epochs, again = job.epochs(), job.file() != file
            most = most if again else max(most, epochs)
            noticed, named = job.told(words, NOTICED.search), job.told(words, NAMED.search)
            if noticed and row["detected"] is None:
                row |= {"detected": noticed[0][0] - began, "lost": most - int(noticed[0][1][1] or 0)}
            if named:
                row |= {"named": named[0][0] - began, "word": named[0][1][0]}
            if (again and epochs > most) or (name in UNNOTICED and epochs > settled + FAR):
                row["healed"] = time.monotonic() - began
                break
            time.sleep(0.02)
        row["findings"] = wrong(job, row, ranks)
    finally:
        net.link(3, up=True)
        net.slow(3, None)
        net.away(3, False)
        net.signal(3, signal.SIGCONT)
        send(job.launcher.pid, signal.SIGTERM)
        try:
            job.launcher.wait(90)
        except subprocess.TimeoutExpired:
            row["findings"].append("SIGTERM did not end it within 90 s")
            send(job.launcher.pid, signal.SIGKILL)
        wait = time.monotonic() + 15
        while all_processes() and time.monotonic() < wait:
            time.sleep(0.1)
        if left := len(all_processes()):
            row["findings"].append(f"{left} processes are left")
            end_all()
    row["said"] = [line for _, line in job.said]
    return row | {"run": str(job.folder)}


def wrong(job: Job, row: dict, ranks: int) -> list[str]:
    """What should not be so."""
    found = [] if row["healed"] is not None else [f"not healed: {[line for _, line in job.said[-4:]]}"]
    if row["fault"] in UNNOTICED:
        return found + ([f"noticed: {row['word']}"] if row["detected"] is not None else [])
    if row["fault"] != "rank killed" and not row["word"]:
        found.append("nobody was named")
    config = (job.folder / "config.toml").read_text()
    if (f"parts-{ranks}" in config) != (ranks < 3):
        found.append(f"does not go on with {ranks} ranks")
    return found


def apart(work: Path, rows: list[dict]) -> None:
    """Compare all losses with those of a run that nothing disturbed."""
    most = max(len(results(Path(row["run"]))[0]) for row in rows)
    whole = work / "whole"
    train = ("train", work / "parts", "--run-dir", whole, "--overwrite", "--epochs", most, "--hidden-feats", 16)
    words = [*train, "--quiet", "--dtype", "float64", "--eval-every", 1000, "--threads", 1]
    subprocess.run([sys.executable, "-m", "distgnn.cli", *map(str, words)], check=True)
    expected = dict(results(whole)[0])
    for row in rows:
        losses = results(Path(row["run"]))[0]
        row["apart"] = max(abs(loss - expected[epoch]) for epoch, loss in losses)
        if row["apart"] > 1e-9 or [epoch for epoch, _ in losses] != list(range(len(losses))):
            row["findings"].append(f"losses differ by {row['apart']:.1e}")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--faults", default=",".join(FAULTS))
    parser.add_argument("--timeout", type=float, default=15)
    parser.add_argument("--patience", type=float, default=300)
    args = parser.parse_args()
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    end_on_signals()
    from distgnn.partition import partition_graph

    partition_graph("communities:nodes=1500,feats=16", 3, args.work / "parts", method="libra", overwrite=True)
    rows = []
    net = Hosts(args.work, 3)
    try:
        net.make()
        for name in args.faults.split(","):
            rows.append(one_fault(args.work, net, args, name))
            print(json.dumps(rows[-1]), flush=True)
    finally:
        net.remove()
    apart(args.work, rows)
    (args.work / "network.json").write_text(json.dumps(rows, indent=1))
    print(f"--timeout {args.timeout:g}")
    print(f"{'fault':22} {'detected after':>15} {'named after':>12} {'healed after':>13} {'lost':>5}  word")
    for row in rows:
        times = [f"{row[name]:.1f} s" if row[name] is not None else "–" for name in ("detected", "named", "healed")]
        print(f"{row['fault']:22} {times[0]:>15} {times[1]:>12} {times[2]:>13} {row['lost']:>5}  {row['word']}")
        for text in row["findings"]:
            print(f"  FINDING {text}")
    return 1 if any(row["findings"] for row in rows) else 0


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.exit(main())
