"""Random faults in training runs that are told to heal: what was noticed when, and what it cost.

    python tests/bench/faults/soak.py WORK [--minutes 60] [--seed 0] [--algorithms cd-0,cd-2,0c]

`distgnn train --restarts --min-ranks 1` runs again and again on two ranks, one algorithm after the other. At random
times a fault is put into it (KINDS). After each run its losses and last weights are compared with those of a run that
nothing disturbed: bit for bit; where the number of ranks changed on the way, to rounding under cd-0 (float64), and
under cd-r, where another cut has other late rows and its noise another size, by the mean loss of the last 200 epochs:
not half as high again. No process, no shared memory and no unknown file may be left; memory may not grow.

Exit code 1 where anything of this is not so. As root it works in a /dev/shm of its own. Rows are appended to
WORK/soak.jsonl. The table, after each run:

    detected    from the fault to the launcher's word of it. A rank that was paused for up to 1.3 times --timeout is
                noticed where it did not come back in time; a killed launcher by the end of its last process
    healed      from the fault to the first epoch that had not been done before it
    lost        epochs that were done twice
"""

import argparse
import json
import random
import shutil
import signal
import statistics
import sys
import time
from pathlib import Path

from job import (
    NOTICED,
    REGROUPED,
    Job,
    end_all,
    end_on_signals,
    processes,
    resident_bytes,
    results,
    send,
    what_is_left,
    with_own_shared_memory,
)

EVERY = 10  # epochs between checkpoints
HEAL_SECONDS = 600.0
ROUNDING = 1e-6  # of a loss in float64: sums in another order, over some thousand steps of Adam
LAST, LATE_ROWS = 200, 0.5  # epochs under cd-r whose mean loss is compared (single ones scatter by a third)

# What is done, and how often beside the others.
KINDS = {
    "rank killed": 6,
    "rank killed twice": 3,  # the second time before a checkpoint was gained: one rank goes on
    "starter killed": 3,
    "proxy killed": 3,
    "rank paused": 3,
    "rank stopped": 1,
    "launcher killed": 1,
    "launcher killed at its start": 1,
}
GROWTH = 1.2  # of memory, last quarter of the faults over the first


class Rows(list):
    """Rows of one run, written as they come."""

    def __init__(self, file: Path, tags: dict):
        super().__init__()
        self.file, self.tags = file, tags

    def append(self, row: dict) -> None:
        super().append(row | self.tags)
        with open(self.file, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(self[-1]) + "\n")


class Soak:
    """The runs of one call."""

    def __init__(self, args: argparse.Namespace):
        self.args, self.work = args, args.work
        self.rng = random.Random(args.seed)
        self.until = time.monotonic() + 60 * args.minutes
        self.algorithm = ""

    def job(self, folder: Path, resume: bool = False, restarts: int = 1000) -> Job:
        words = ["train", self.work / "parts", "--run-dir", folder]
        words += ["--copy-updates" if self.algorithm == "0c" else "--algorithm", self.algorithm]
        words += ["--epochs", self.args.epochs, "--eval-every", 50, "--dtype", "float64", "--hidden-feats", 16]
        words += ["--quiet", "--threads", 1]
        words += ["--checkpoint-every", EVERY, "--timeout", self.args.timeout, "--restarts", restarts]
        words += ["--min-ranks", 1] if self.algorithm != "0c" else []  # there the cut decides what is computed
        return Job([*words, *(["--resume"] if resume else [])], folder)

    def whole(self, algorithm: str) -> Path:
        """The run that nothing disturbs."""
        self.algorithm, folder = algorithm, self.work / f"whole-{algorithm}"
        if not (folder / "summary.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            job = self.job(folder)
            job.launcher.wait()
            assert job.launcher.returncode == 0, job.said
        return folder

    def run(self, number: int, algorithm: str) -> list[dict]:
        """One run from its beginning to its end; its faults and findings."""
        whole = self.whole(algorithm)
        folder, changed = self.work / f"run-{number}", False
        rows = Rows(self.work / "soak.jsonl", {"run": number, "algorithm": algorithm})
        shutil.rmtree(folder, ignore_errors=True)
        job = self.job(folder)
        while not job.over():
            pause = time.monotonic() + self.rng.expovariate(1 / self.args.every)
            while time.monotonic() < pause and not job.over():
                time.sleep(0.05)
            if job.over() or time.monotonic() > self.until:
                break
            kind = self.rng.choices(list(KINDS), list(KINDS.values()))[0]
            if kind.startswith("launcher"):
                changed |= bool(job.told(0, lambda line: REGROUPED in line))
                rows.append(self._launcher(kind, job, folder))
                job = self.job(folder, resume=folder.exists())
            elif row := self._fault(kind, job):
                rows.append(row | memory(job))
        job.launcher.wait()
        changed |= bool(job.told(0, lambda line: REGROUPED in line))
        for row in self._findings(job, folder, whole, changed):
            rows.append(row)
        rows.append({"changed ranks": changed})
        return rows

    def _findings(self, job: Job, folder: Path, whole: Path, changed: bool) -> list[dict]:
        from distgnn.system.atomic import why_foreign
        from distgnn.train.run.run_folder import run_files

        found = []
        if job.launcher.returncode != 0:
            found.append(f"exit {job.launcher.returncode}: {[line for _, line in job.said[-5:]]}")
        elif different := difference(folder, whole, changed, self.algorithm):
            found.append(f"{folder}: {different}")
        found += [f"left behind: {what}" for what in what_is_left()]
        foreign = why_foreign(folder, run_files)
        hidden = [path.name for path in (folder / "checkpoint").glob(".*")]
        found += [f"{folder}: {what}" for what in (foreign, hidden) if what]
        if not found:
            shutil.rmtree(folder)
        return [{"finding": text} for text in found]

    def _launcher(self, kind: str, job: Job, folder: Path) -> dict:
        row, began = {"fault": kind, "epoch": job.epochs(), "lost": job.epochs() % EVERY}, time.monotonic()
        send(job.launcher.pid, signal.SIGKILL)
        if kind == "launcher killed at its start":
            job.launcher.wait()
            job = self.job(folder, resume=folder.exists())
            time.sleep(self.rng.uniform(0.1, 4))
            began = time.monotonic()
            send(job.launcher.pid, signal.SIGKILL)
        job.launcher.wait()
        while any(processes().values()) and time.monotonic() < began + 30:
            time.sleep(0.02)
        row |= {"detected": time.monotonic() - began, "healed": None}
        left = what_is_left()
        return row | ({"finding": f"left behind by {kind}: {left}"} if left else {})

    def _fault(self, kind: str, job: Job) -> dict | None:
        """Put it in, wait until the run has gone beyond where it was, and tell what happened; None: nothing to hit."""
        before, words, began = job.epochs(), len(job.said), time.monotonic()
        file, most = job.file(), before
        if not self._hit(kind, job, words):
            return None
        row = {"fault": kind, "epoch": before, "detected": None, "healed": None, "lost": 0}
        while not job.over() and time.monotonic() < began + HEAL_SECONDS:
            epochs, again = job.epochs(), job.file() != file  # a resumed run replaces its metrics.jsonl
            if not again:
                most = max(most, epochs)
            noticed = job.told(words, NOTICED.search)
            if noticed and row["detected"] is None:
                at, found = noticed[0]
                row |= {"detected": at - began, "lost": max(most - int(found[1] or 0), 0)}
            if (again and noticed and epochs > most) or (kind == "rank paused" and not noticed and epochs > before + 1):
                row["healed"] = time.monotonic() - began
                break
            time.sleep(0.02)
        if row["healed"] is None and not job.over():
            row["finding"] = f"{kind}: not healed after {HEAL_SECONDS:.0f} s: {[line for _, line in job.said[-5:]]}"
            end_all()
        return row

    def _hit(self, kind: str, job: Job, words: int) -> bool:
        targets = processes()[kind.split()[0]]
        if not targets:
            return False
        pid = self.rng.choice(targets)
        if kind == "rank paused":
            done = send(pid, signal.SIGSTOP)
            time.sleep(self.rng.uniform(0.2, 1.3 * self.args.timeout))
            return send(pid, signal.SIGCONT) and done
        done = send(pid, signal.SIGSTOP if kind == "rank stopped" else signal.SIGKILL)
        if done and kind == "rank killed twice":
            while not job.over():
                newer = set(processes()["rank"]) - set(targets)
                if newer and job.told(words, NOTICED.search):
                    send(self.rng.choice(sorted(newer)), signal.SIGKILL)
                    break
                time.sleep(0.02)
        return done


def memory(job: Job) -> dict:
    ranks = processes()["rank"]
    return {
        "rank MB": max((resident_bytes(pid) for pid in ranks), default=0) / 1e6,
        "launcher MB": resident_bytes(job.launcher.pid) / 1e6,
    }


def difference(run: Path, whole: Path, changed: bool, algorithm: str) -> str:
    """What is different from the undisturbed run and should not be; empty where nothing is."""
    (losses, weights), (expected, expected_weights) = results(run), results(whole)
    if [epoch for epoch, _ in losses] != [epoch for epoch, _ in expected]:
        return f"{len(losses)} epochs in metrics.jsonl, not {len(expected)}, each once"
    if not changed:
        return "" if (losses, weights) == (expected, expected_weights) else "not bit-identical"
    apart = [abs(loss - other) for (_, loss), (_, other) in zip(losses, expected, strict=True)]
    if algorithm == "cd-0":
        return "" if max(apart) < ROUNDING else f"losses differ by {max(apart):.2e} after a change of ranks"
    ours, theirs = (statistics.mean(loss for _, loss in some[-LAST:]) for some in (losses, expected))
    return (
        ""
        if ours < (1 + LATE_ROWS) * theirs
        else f"loss {ours:.3f} at the end, not {theirs:.3f}, after a change of ranks"
    )


def grown(rows: list[dict]) -> list[dict]:
    """Findings of memory that grew."""
    found = []
    for name in ("rank MB", "launcher MB"):
        values = [row[name] for row in rows if row.get(name)]
        quarter = len(values) // 4
        if quarter >= 3:
            first, last = statistics.median(values[:quarter]), statistics.median(values[-quarter:])
            print(f"{name}: {first:.0f} in the first quarter of the faults, {last:.0f} in the last (medians)")
            if last > GROWTH * first:
                found.append({"finding": f"memory grew: {name} {first:.0f} to {last:.0f}"})
    return found


def report(rows: list[dict]) -> None:
    """Print the table, median and most, and all findings."""
    faults, runs = [row for row in rows if "fault" in row], [row for row in rows if "changed ranks" in row]
    changed = sum(row["changed ranks"] for row in runs)
    print(f"\n{len(runs)} runs to their end ({changed} changed ranks), {len(faults)} faults; median, most\n")
    print("| fault | count | detected after | healed after | epochs lost |\n|---|---|---|---|---|")
    for kind in KINDS:
        here = [row for row in faults if row["fault"] == kind]
        times = [_spread([row[name] for row in here if row[name] is not None]) for name in ("detected", "healed")]
        lost = [row["lost"] for row in here]
        lost_text = f"{statistics.median(lost):.0f}, {max(lost)}" if lost else "–"
        print(f"| {kind} | {len(here)} | {times[0]} | {times[1]} | {lost_text} |")
    for row in rows:
        if "finding" in row:
            print("FINDING", json.dumps(row), flush=True)


def _spread(seconds: list[float]) -> str:
    return f"{statistics.median(seconds):.2f} s, {max(seconds):.2f} s" if seconds else "–"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--algorithms", default="cd-0,cd-2,0c")
    parser.add_argument("--epochs", type=int, default=600)
    parser.add_argument("--every", type=float, default=4.0, help="seconds between faults, on average")
    parser.add_argument("--timeout", type=float, default=10, help="of the watchdog; more on a machine with other work")
    args = parser.parse_args()
    with_own_shared_memory()
    end_on_signals()
    from distgnn.partition import partition_graph

    args.work.mkdir(parents=True, exist_ok=True)
    if not (args.work / "parts").exists():
        partition_graph("communities:nodes=600,feats=16", 2, args.work / "parts", method="libra")
    soak, rows, number, algorithms = Soak(args), [], 0, args.algorithms.split(",")
    try:
        for name in algorithms:
            soak.whole(name)
        soak.until = time.monotonic() + 60 * args.minutes
        while time.monotonic() < soak.until:
            number += 1
            found = soak.run(number, algorithms[(number - 1) % len(algorithms)])
            rows += found
            report(rows)
    finally:
        end_all()
    rows += grown(rows)
    report(rows)
    return 1 if any("finding" in row for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
