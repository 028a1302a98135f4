"""SIGKILL at random places of a training run on two ranks, again and again: is a checkpoint ever lost or damaged?

    python tests/bench/faults/kill_points.py WORK --points 200 [--seed 0] [--seconds 280] [--alone]

One run is killed and resumed until it has all its epochs; then its losses are compared, bit for bit, with those of a
run that was never killed, and the next run begins. After every kill the script checks that

- no process of the job is left, and how long the death of one rank took to end the whole job;
- every checkpoint folder reads whole, checksums included, and the newest is not older than the last one committed;
- metrics.jsonl has no epoch twice.

Half of the kills are aimed: a rank dies at the n-th call of a named function of its program (exchange, gradient sum,
optimiser, evaluation, each step of writing a checkpoint: half a file, before and after each fsync, rename and removal,
and reading it when resuming). The others hit a random process of the job (either rank or mpiexec) at a random time, its
start included. Results are appended to WORK/kill_points.jsonl as they come; a call goes on where the last one ended,
with the same program only: the sources' checksum is kept in WORK and compared before every point. What should not
happen becomes a finding with all that is known of it, and the script goes on with a new run.
`--alone` trains on one rank in a forked child instead: nothing is started and imported again, so a point takes a
fraction of a second, and all kills are aimed.
"""

import argparse
import collections
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from victim import ONLY_RANK_0, POINTS, prepare, victim

MARK = "DISTGNN_KILL_POINTS"


def start(work: Path, run: Path, aim: dict | None) -> subprocess.Popen:
    from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command, rank_environment

    mpiexec = find_mpiexec()
    flavor = mpi_flavor(mpiexec)
    command = [*mpiexec_command(mpiexec, flavor, 2), sys.executable, __file__, str(work), "--victim", str(run)]
    environment = os.environ | rank_environment(2, 1, flavor) | {MARK: str(os.getpid())}
    if aim:
        command += ["--aim", json.dumps(aim)]
    with open(work / "output.txt", "w", encoding="utf-8") as output:
        return subprocess.Popen(command, env=environment, stdout=output, stderr=output, start_new_session=True)


class Child:
    """A victim that is alone: a fork of this process, which has everything imported but has not begun MPI."""

    def __init__(self, work: Path, run: Path, aim: dict | None):
        self.returncode = None
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                from mpi4py import MPI

                MPI.Init()
                victim(work, run, aim)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.002)
        return self.returncode


def patiently(done: Callable[[], bool], seconds: float) -> bool:
    """Wait until `done`; False after `seconds` in which this process was running: a machine may pause its jobs."""
    waited, last = 0.0, time.monotonic()
    while not done():
        time.sleep(0.005)
        now = time.monotonic()
        waited, last = waited + min(now - last, 0.1), now
        if waited > seconds:
            return done()
    return True


def checksum_of_sources() -> str:
    """Of all packages, three of which lie outside `distgnn/` in a checkout, and of this script."""
    from distgnn import datasets, kernels, partition, train

    places = {Path(package.__file__).parent for package in (train, datasets, kernels, partition)}
    places.add(Path(train.__file__).parent.parent)
    files = sorted({path for place in places for path in place.rglob("*.py")})
    own = Path(__file__), Path(__file__).with_name("victim.py")
    return hashlib.sha256(b"".join(path.read_bytes() for path in [*files, *own])).hexdigest()


def ours() -> list[int]:
    """Processes of the job that still run."""
    mark, found = f"{MARK}={os.getpid()}".encode(), []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" and mark in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def ranks_of(pids: list[int]) -> list[int]:
    found = []
    for pid in pids:
        try:
            environment = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
        if b"PMI_RANK=" in environment or b"OMPI_COMM_WORLD_RANK=" in environment:
            found.append(pid)
    return found


def check_folder(run: Path, at_least: int) -> int:
    """Every checkpoint reads whole, none is lost, no epoch is told twice; returns the newest's epochs."""
    from distgnn.train.checkpoint import files as files

    found = files.find_checkpoints(run)
    for path in found:
        state = files.read_state(path)
        for name in state["files"]:
            assert files.read_file(path, state, name) is not None
    newest = files.epochs_of(found[0]) if found else 0
    assert newest >= at_least, f"a checkpoint is lost: {newest} epochs, {at_least} had been committed"
    return newest


def one_point(work: Path, run: Path, rng: random.Random, startup: float, alone: bool) -> dict:
    aimed = alone or rng.random() < 0.5
    aim = None
    if aimed:
        point = rng.randrange(len(POINTS))
        name, *_, most = POINTS[point]
        rank = 0 if alone or name in ONLY_RANK_0 else rng.randrange(2)
        half = rng.random() if "half" in name else None
        aim = {"point": point, "rank": rank, "calls": rng.randint(1, most), "after": rng.random() < 0.5, "half": half}
    for name in ("died", "committed"):
        (work / name).unlink(missing_ok=True)
    before, began = check_folder(run, 0), time.time()
    job = Child(work, run, aim) if alone else start(work, run, aim)
    what = {"aim": POINTS[aim["point"]][0] if aim else "random time", "rank": aim["rank"] if aim else None}
    died = None
    if aim is None:
        time.sleep(rng.uniform(0, startup + 2.0))
        pids = ours()
        ranks = ranks_of(pids)
        target = rng.choice([*ranks, job.pid]) if ranks else job.pid
        what["rank"] = "mpiexec" if target == job.pid else ranks.index(target)
        if job.poll() is None:
            died = time.time()
            try:
                os.kill(target, signal.SIGKILL)
            except ProcessLookupError:
                died = None
    if not patiently(lambda: job.poll() is not None, 600):
        what["finding"] = "it did not end within 600 s: " + " ".join(map(str, ours()))
        for pid in [job.pid, *ours()]:
            os.kill(pid, signal.SIGKILL)
        job.wait()
    patiently(lambda: not ours(), 10)
    left = ours()
    gone = time.time()
    what["left_behind"] = len(left)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    if (work / "died").exists():
        died = float((work / "died").read_text())
    committed = int((work / "committed").read_text() or 0) if (work / "committed").exists() else 0
    try:
        newest = check_folder(run, max(before, committed))
    except Exception as error:
        newest, what["finding"] = -1, f"{type(error).__name__}: {error}"
    what |= {"killed": died is not None, "epochs": newest, "seconds": round(gone - began, 2)}
    if died is not None:
        what["detection_seconds"] = round(gone - died, 3)
    elif job.returncode != 0 and "finding" not in what:
        what["finding"] = f"it ended by itself with {job.returncode}: {(work / 'output.txt').read_text()[-2000:]!r}"
    if left:
        what["finding"] = f"{len(left)} processes were left"
    return what


def losses(run: Path) -> list[tuple[int, float]]:
    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [(record["epoch"], record["loss"]) for record in records]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so long; call again to go on")
    parser.add_argument("--alone", action="store_true")
    parser.add_argument("--victim", type=Path)
    parser.add_argument("--aim", type=json.loads)
    args = parser.parse_args()
    if args.victim:
        victim(args.work, args.victim, args.aim)
        return
    begin = Child if args.alone else start
    num_parts = 1 if args.alone else 2
    if args.alone:
        prepare()
    from distgnn.partition import partition_graph

    began = time.time()
    args.work.mkdir(parents=True, exist_ok=True)
    log = args.work / "kill_points.jsonl"
    rows = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    if not (args.work / "parts").exists():
        partition_graph(
            "communities:nodes=300,communities=4,feats=8,classes=4", num_parts, args.work / "parts", method="libra"
        )
    whole, version = args.work / "whole", args.work / "version"
    if not version.exists():
        version.write_text(checksum_of_sources())
    if not (whole / "summary.json").exists():
        assert begin(args.work, whole, None).wait() == 0
    expected = losses(whole)
    seconds = time.time()
    assert begin(args.work, whole, None).wait() == 0  # nothing to do: how long a start takes
    startup = time.time() - seconds
    chain = max((row["chain"] for row in rows), default=0)
    while sum(row["killed"] for row in rows) < args.points and time.time() - began < args.seconds:
        if checksum_of_sources() != version.read_text():
            sys.exit(f"{args.work} is of another version of the program: compare runs of one version only")
        rng = random.Random(f"{args.seed}-{len(rows)}")
        run = args.work / f"run-{chain}"
        run.mkdir(exist_ok=True)
        row = one_point(args.work, run, rng, startup, args.alone) | {"chain": chain}
        if "finding" not in row and (run / "summary.json").exists() and not row["killed"]:
            found = losses(run)
            row["identical"] = found == expected
            if not row["identical"]:
                row["finding"] = f"a resumed run is not bit-identical: {found}"
            chain += 1
        if "finding" in row:
            print(json.dumps(row), flush=True)
            chain = row["chain"] + 1
        rows.append(row)
        with open(log, "a", encoding="utf-8") as stream:
            stream.write(json.dumps(row) + "\n")
    report(rows)
    sys.exit(any("finding" in row or row["left_behind"] for row in rows))


def report(rows: list[dict]) -> None:
    killed = [row for row in rows if row["killed"]]
    times = sorted(row["detection_seconds"] for row in killed)
    print(f"kill points: {len(killed)}; findings: {sum('finding' in row for row in rows)}")
    print(f"processes left behind: {sum(row['left_behind'] for row in rows)}")
    print(f"runs finished after kills, losses bit-identical: {sum(row.get('identical', False) for row in rows)}")
    if times:
        middle = times[len(times) // 2]
        print(f"from a process's death to the end of the job: median {middle:.2f} s, longest {times[-1]:.2f} s")
    for name, count in collections.Counter(row["aim"] for row in killed).most_common():
        print(f"  {count:4d}  {name}")


if __name__ == "__main__":
    main()
