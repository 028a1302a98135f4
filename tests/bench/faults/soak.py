"""Random faults in training runs that are told to heal: what was noticed when, and what it cost.

    python tests/bench/faults/soak.py WORK [--minutes 30] [--seed 0] [--ranks 2] [--algorithm cd-0] [--mpiexec]

`distgnn train --restarts` runs again and again; at random times a fault is put into it (KINDS). After each run its
losses and its last weights are compared, bit for bit, with those of a run that nothing disturbed. `--mpiexec` starts
ranks by the MPI library's own mpiexec, so that there are proxies to kill. Faults are appended to WORK/soak.jsonl; the
table has

    detected    from the fault to the launcher's word of it (a rank that was only paused is to be noticed by nobody)
    healed      from the fault to the first epoch that had not been done before it
    lost        epochs that were done twice
"""

import argparse
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

MARK = "DISTGNN_SOAK"
TIMEOUT = 5.0  # of the watchdog
KINDS = ("rank killed", "starter killed", "proxy killed", "rank paused", "rank stopped", "launcher killed")
WEIGHTS = (6, 3, 3, 4, 1, 1)
NOTICED = re.compile(r"the ranks ended with exit code .* from (?:checkpoint/epoch-(\d+)|the beginning)")


class Run:
    """One training run, its launcher's words with their times, and its epochs."""

    def __init__(self, work: Path, run: Path, args: argparse.Namespace, restarts: int, resume: bool = False):
        self.folder = run
        words = ["train", work / "parts", "--run-dir", run, "--algorithm", args.algorithm, "--epochs", args.epochs]
        words += ["--hidden-feats", 32, "--checkpoint-every", 20, "--timeout", TIMEOUT, "--threads", 1, "--quiet"]
        words += ["--restarts", restarts, *(["--resume"] if resume else [])]
        environment = os.environ | {MARK: str(os.getpid())}
        if args.mpiexec:
            from distgnn.system.launch import find_mpiexec

            environment["DISTGNN_MPIEXEC"] = find_mpiexec()
        command = [sys.executable, "-m", "distgnn.cli", *map(str, words)]
        self.launcher = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
        self.said: list[tuple[float, str]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.launcher.stderr:
            self.said.append((time.monotonic(), line.rstrip()))

    def epochs(self) -> int:
        try:
            return (self.folder / "metrics.jsonl").read_bytes().count(b"\n")
        except OSError:
            return 0

    def file(self) -> int:
        """What changes when metrics.jsonl is replaced."""
        try:
            return (self.folder / "metrics.jsonl").stat().st_ino
        except OSError:
            return 0

    def over(self) -> bool:
        return self.launcher.poll() is not None


def processes() -> dict[str, list[int]]:
    """Processes of the job by what they are."""
    mark, found = f"{MARK}={os.getpid()}".encode(), {"rank": [], "starter": [], "proxy": [], "other": []}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "environ").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            command = (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if mark not in words or state in "ZX":
            continue
        is_rank = any(word.startswith((b"PMI_RANK=", b"OMPI_COMM_WORLD_RANK=")) for word in words)
        starter = not is_rank and (b"local_mpiexec" in command or b"/mpiexec" in command or b"/mpirun" in command)
        kind = "proxy" if b"hydra_pmi_proxy" in command else "rank" if is_rank else "starter" if starter else "other"
        found[kind].append(int(folder.name))
    return found


def send(pid: int, number: int) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def fault(kind: str, run: Run, rng: random.Random) -> bool:
    """Put a fault into the run; False where there was nothing to hit."""
    if kind == "launcher killed":
        return send(run.launcher.pid, signal.SIGKILL)
    targets = processes()[kind.split()[0]]
    if not targets:
        return False
    pid = rng.choice(targets)
    if kind == "rank paused":
        done = send(pid, signal.SIGSTOP)
        time.sleep(rng.uniform(0.2, 1.3 * TIMEOUT))
        return send(pid, signal.SIGCONT) and done
    return send(pid, signal.SIGSTOP if kind == "rank stopped" else signal.SIGKILL)


def one_fault(run: Run, kind: str, rng: random.Random) -> dict | None:
    """Put it in, wait until the run has gone beyond where it was, and tell what happened."""
    before, words, began = run.epochs(), len(run.said), time.monotonic()
    if not fault(kind, run, rng):
        return None
    row = {"fault": kind, "epoch": before, "detected": None, "healed": None, "lost": 0}
    if kind == "launcher killed":
        while any(processes().values()) and time.monotonic() < began + 30:
            time.sleep(0.02)
        row |= {"detected": time.monotonic() - began, "left": sum(map(len, processes().values()))}
        return row
    file, most = run.file(), before
    while not run.over() and time.monotonic() < began + 300:
        noticed = [(at, found) for at, line in run.said[words:] if (found := NOTICED.search(line))]
        epochs, again = run.epochs(), run.file() != file  # a resumed run replaces its metrics.jsonl
        if not again:
            most = max(most, epochs)
        if noticed and row["detected"] is None:
            at, found = noticed[0]
            row |= {"detected": at - began, "lost": most - int(found[1] or 0)}
        if (again and noticed and epochs > most) or (kind == "rank paused" and not noticed and epochs > before + 1):
            row["healed"] = time.monotonic() - began
            break
        time.sleep(0.02)
    return row


def results(run: Path) -> tuple[list, bytes]:
    """Losses of all epochs, and the last weights."""
    from distgnn.train.checkpoint.files import find_checkpoints

    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [(record["epoch"], record["loss"]) for record in records]
    return losses, (find_checkpoints(run)[0] / "model.safetensors").read_bytes()


def one_run(work: Path, number: int, args: argparse.Namespace, rng: random.Random, until: float) -> list[dict]:
    run, rows = Run(work, work / f"run-{number}", args, restarts=1000), []
    while not run.over():
        pause = time.monotonic() + rng.expovariate(1 / args.every)
        while time.monotonic() < pause and not run.over():
            time.sleep(0.05)
        if run.over() or time.monotonic() > until:
            break
        row = one_fault(run, rng.choices(KINDS, WEIGHTS)[0], rng)
        if row is None:
            continue
        rows.append(row)
        if row["fault"] == "launcher killed":
            run = Run(work, run.folder, args, restarts=1000, resume=True)
    if run.launcher.wait(1200) != 0:
        rows.append({"finding": f"exit {run.launcher.returncode}: {[line for _, line in run.said[-5:]]}"})
    elif results(run.folder) != results(work / "whole"):
        rows.append({"finding": f"{run.folder} is not bit-identical to the undisturbed run"})
    left = processes()
    if any(left.values()):
        rows.append({"finding": f"processes left behind: {left}"})
    return [row | {"run": number} for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--algorithm", default="cd-0")
    parser.add_argument("--epochs", type=int, default=600)
    parser.add_argument("--every", type=float, default=6.0, help="seconds between faults, on average")
    parser.add_argument("--mpiexec", action="store_true")
    args = parser.parse_args()
    from distgnn.partition import partition_graph

    args.work.mkdir(parents=True, exist_ok=True)
    if not (args.work / "parts").exists():
        partition_graph("communities:nodes=3000,feats=16", args.ranks, args.work / "parts", method="libra")
    if not (args.work / "whole" / "summary.json").exists():
        whole = Run(args.work, args.work / "whole", args, restarts=1)
        assert whole.launcher.wait() == 0, whole.said
    log = args.work / "soak.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    until, number = time.monotonic() + 60 * args.minutes, max((row["run"] for row in rows), default=0)
    while time.monotonic() < until:
        number += 1
        found = one_run(args.work, number, args, random.Random(f"{args.seed}-{number}"), until)
        rows += found
        with open(log, "a", encoding="utf-8") as stream:
            stream.writelines(json.dumps(row) + "\n" for row in found)
    report(rows, number)


def report(rows: list[dict], num_runs: int) -> None:
    findings = [row for row in rows if "finding" in row]
    print(f"{num_runs} runs, {len(rows) - len(findings)} faults, {len(findings)} findings")
    print(f"{'fault':16} {'count':>5} {'detected after':>22} {'healed after':>22} {'epochs lost':>14}")
    for kind in KINDS:
        here = [row for row in rows if row.get("fault") == kind]
        columns = [_spread([row[name] for row in here if row[name] is not None]) for name in ("detected", "healed")]
        lost = [row["lost"] for row in here]
        lost_text = f"{statistics.median(lost):.0f}, {max(lost)}" if lost else "–"
        print(f"{kind:16} {len(here):5d} {columns[0]:>22} {columns[1]:>22} {lost_text:>14}")
    for row in findings:
        print(json.dumps(row))


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s, {max(seconds):.2f} s" if seconds else "–"


if __name__ == "__main__":
    main()
