"""Measures every part of a cut by itself: one process per part, as many at a time as are asked for.

Legend: P parts.

    for each group of parts    start processes -> all "ready" -> "go" to all -> all "done" -> end of input
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

import distgnn
from distgnn.config import Settings
from distgnn.errors import InputError, RunError
from distgnn.extras.replay.recording import Recording
from distgnn.partition import load_part, read_manifest
from distgnn.system.jobs.own_rank import RANK_VARIABLES
from distgnn.system.launch import THREAD_VARIABLES, torch_environment
from distgnn.train.run.estimate import estimate_bytes

TASKS = ("node", "regression")
MODULE = "distgnn.extras.replay.worker"
READY, COMPILED, DONE = "ready", "compiled", "done"  # what it says


@dataclass(frozen=True)
class Measuring:
    """How parts are measured.

    Args:
        threads: of each part; at_once: how many parts at a time.
        repeats: times each epoch (of each bin) is measured; the median counts.
        evaluate: evaluate once, as training does: it may take more memory than an epoch.
    """

    threads: int = 1
    at_once: int = 1
    repeats: int = 5
    evaluate: bool = True

    def check(self) -> "Measuring":
        """Return self; raise InputError for counts below one."""
        for name in ("threads", "at_once", "repeats"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: expected at least 1")
        return self


def measure_parts(
    folder: str,
    settings: Settings,
    measuring: Measuring,
    advance: Callable[[str, int], None] = lambda text, done: None,
) -> list[Recording]:
    """What each part does in an epoch, in the order of ranks. Args: advance: takes a part, and how many are done."""
    manifest = read_manifest(folder)
    check_replayable(settings, manifest["num_parts"])
    ranks = range(manifest["num_parts"])
    found: list[Recording] = []
    with tempfile.TemporaryDirectory() as work:
        answers = bin_answers(folder, settings, manifest["num_parts"], Path(work))
        for first in range(0, len(ranks), measuring.at_once):
            group = ranks[first : first + measuring.at_once]
            asked = {"settings": asdict(settings), "repeats": measuring.repeats, "evaluate": measuring.evaluate}
            asked |= {"num_ranks": manifest["num_parts"]}
            workers = [_Worker(folder, rank, asked, answers.get(rank), Path(work), measuring.threads) for rank in group]
            if len(workers) > 1:
                for place, worker in enumerate(workers):
                    worker.pin(place)
            try:
                found += [Recording.from_json(one) for one in _run(workers)]
            finally:
                for worker in workers:
                    worker.end()
            for rank in group:
                advance(f"part {rank}", rank + 1)
    sections = settings.sections()
    for recording in found:
        recording.estimated_bytes = estimate_bytes(manifest, recording.rank, sections)
    return found


def check_replayable(settings: Settings, num_parts: int) -> None:
    """Raise InputError for what a part cannot do by itself."""
    if settings.train.task not in TASKS:
        raise InputError(f"replay is of {' and '.join(TASKS)}: pairs of task {settings.train.task} ask for rows by id")
    if settings.train.verify_every or settings.train.inductive:
        raise InputError("replay takes neither --verify-every nor --inductive: leave them out")
    if num_parts < 2:
        raise InputError("a single part sends nothing: distgnn bench measures it")


def _run(workers: list["_Worker"]) -> list[dict[str, Any]]:
    for worker in workers:
        if worker.expect(READY, COMPILED) == COMPILED:
            worker.start_again()
            worker.expect(READY)
    for worker in workers:
        worker.say("go")
    for worker in workers:
        worker.expect(DONE)
    return [json.loads(worker.out.read_text()) for worker in workers]


class _Worker:
    """The process of one part."""

    def __init__(self, folder: str, rank: int, asked: dict[str, Any], answers: Path | None, work: Path, threads: int):
        self.rank, self._threads = rank, threads
        self.out, self._errors = work / f"out-{rank}.json", work / f"errors-{rank}.txt"
        environment = {name: value for name, value in os.environ.items() if name not in RANK_VARIABLES}
        environment |= torch_environment() | dict.fromkeys(THREAD_VARIABLES, str(threads))
        environment |= {"DISTGNN_NUM_THREADS": str(threads), "PYTHONSAFEPATH": "1"}
        root = str(Path(distgnn.__file__).resolve().parents[1])  # that it is imported from
        environment |= {"PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))}
        self._environment, self._asked = environment, asked | {"answers": None if answers is None else str(answers)}
        self._command = [sys.executable, "-m", MODULE, folder, str(rank), str(self.out)]
        self._place: int | None = None
        self._start()

    def _start(self) -> None:
        with self._errors.open("w") as errors:
            pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors}
            self._process: Any = subprocess.Popen(self._command, text=True, env=self._environment, **pipes)
        self.say(json.dumps(self._asked))

    def start_again(self) -> None:
        self.end()
        self._start()
        if self._place is not None:
            self.pin(self._place)

    def pin(self, place: int) -> None:
        """Give it cores of its own among this process's, if there are enough."""
        self._place = place
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_setaffinity") else []
        mine = cores[place * self._threads : (place + 1) * self._threads]
        if len(mine) == self._threads:
            os.sched_setaffinity(self._process.pid, mine)

    def say(self, line: str) -> None:
        """Write a line to its input; a process that is gone says so when something is expected of it."""
        with suppress(BrokenPipeError):
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()

    def expect(self, *words: str) -> str:
        """Wait for one of some lines, and return it."""
        for line in self._process.stdout:
            if line.strip() in words:
                return str(line.strip())
        lines = self._errors.read_text().strip().splitlines() or [f"exit code {self._process.wait()}"]
        raise RunError(f"part {self.rank} could not be measured: {lines[-1]}")

    def end(self) -> None:
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


class _Asking:
    """In place of a communicator: keeps what a rank would tell the others in `Alltoall`."""

    def __init__(self) -> None:
        self.told: list[np.ndarray] = []

    def Alltoall(self, mine: np.ndarray, theirs: np.ndarray) -> None:
        self.told.append(mine.copy())
        theirs[:] = 0


def bin_answers(folder: str, settings: Settings, num_parts: int, work: Path) -> dict[int, Path]:
    """For each rank the file (in `work`) of what others tell it of their bins; nothing where a schedule has no bins.

    Notes: owners cut the bins of a schedule and tell the ranks with halos; here all parts are on one machine.
    """
    from distgnn.comm.bins import make_bins
    from distgnn.graph.copy_graph import CopyGraph
    from distgnn.graph.dist_graph import DistGraph

    algorithm = settings.algorithm
    if algorithm.no_exchange or (algorithm.delay is None and settings.schedule.exact):
        return {}
    kind = CopyGraph if settings.run.update == "copies" else DistGraph
    told = []
    for rank in range(num_parts):
        comm: Any = _Asking()
        make_bins(kind.plan_of(load_part(folder, rank, check=False)), algorithm.delay or 1, comm)
        told.append(comm.told)
    files = {}
    for rank in range(num_parts):
        answers = [np.stack([of_rank[call][rank] for of_rank in told]) for call in range(len(told[0]))]
        files[rank] = work / f"bins-{rank}.npz"
        np.savez(files[rank], *answers)
    return files
