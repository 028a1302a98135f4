"""One `mpiexec` that runs a list of test ids: starts it, reads what the ranks write, ends it.

```
job folder/
  job.json            ids, in order
  rank-0.jsonl        one line per event of the rank: start, report (setup, call, teardown), finish
  rank-0.log          everything the rank printed
  mpiexec.log         everything mpiexec printed
  rank-0/             the rank's tmp_path
```
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import NoReturn

import pytest
from process_tree import stop_tree
from speed import slowness

from distgnn.errors import DistGNNError
from distgnn.system.jobs.processes import die_with_parent, mapped_segments
from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command, rank_environment

POLL_SECONDS = 0.02
START_SECONDS = 180.0  # imports and collection, on a busy machine
FINISH_SECONDS = 30.0  # from the last test to the end of mpiexec
GRACE_SECONDS = 5.0  # for the other ranks, once one has failed
STACK_SECONDS = 0.5  # for a rank to print where it hangs
SHOWN_CHARACTERS = 6000
PYTEST_FRAME = re.compile(r'  File ".*/(_pytest|pluggy|harness)/[^"]*", line \d+ in ')


class JobFailure(Exception):
    """The job cannot go on: what happened, what each rank had reported of the test, and what each rank printed."""

    def __init__(self, message: str, reports: list[list[dict]] = (), output: dict[str, str] | None = None):
        super().__init__(message)
        self.reports = reports
        self.output = output or {}


class RankFile:
    """What one rank has written so far: events by test id."""

    def __init__(self, path: Path):
        self.path = path
        self.pid: int | None = None
        self.segments: set[str] = set()
        self.log_begin: dict[str, int] = {}
        self.log_end: dict[str, int] = {}
        self.reports: dict[str, list[dict]] = defaultdict(list)
        self._offset = 0

    def read(self) -> None:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        for line in complete.splitlines():
            self._take(json.loads(line))

    def printed(self, nodeid: str) -> str:
        """Return what the rank printed during the test (its end, if long), without pytest's own stack frames."""
        path = self.path.with_suffix(".log")
        if not path.exists():
            return ""
        text = path.read_bytes()[self.log_begin.get(nodeid, 0) : self.log_end.get(nodeid)].decode(errors="replace")
        lines = [line for line in text.splitlines() if not PYTEST_FRAME.match(line)]
        return _tail("\n".join(lines))

    def _take(self, event: dict) -> None:
        match event["event"]:
            case "start":
                if self.pid is None:
                    self.pid = event["pid"]
                    self.segments = mapped_segments(Path(f"/proc/{self.pid}/maps"))
                self.log_begin[event["id"]] = event["log_offset"]
            case "report":
                self.reports[event["id"]].append(event["report"])
            case "finish":
                self.log_end[event["id"]] = event["log_offset"]


class Job:
    """Runs `ids` under `mpiexec -n num_ranks`; `wait_for` is to be called in the order of the ids."""

    def __init__(self, config: pytest.Config, ids: list[str], num_ranks: int):
        self.ids = ids
        self.num_ranks = num_ranks
        self._temporary = tempfile.TemporaryDirectory(prefix="distgnn-mpi-", ignore_cleanup_errors=True)
        self.folder = Path(self._temporary.name)
        self.ranks = [RankFile(self.folder / f"rank-{rank}.jsonl") for rank in range(num_ranks)]
        self.process = self._start(config)

    def wait_for(self, nodeid: str, limit: float) -> list[list[dict]]:
        """Return each rank's reports of the test. Raises JobFailure: time is up, a rank died or was left waiting.

        A limit is seconds of a quiet machine: it is stretched by how slow this one is at the moment it passes.
        """
        began = time.monotonic()
        started_at = failed_at = None
        while True:
            ended = self.process.poll() is not None  # before reading: nothing is written after it
            for rank in self.ranks:
                rank.read()
            now = time.monotonic()
            if all(nodeid in rank.log_end for rank in self.ranks):
                break
            if started_at is None and any(nodeid in rank.log_begin for rank in self.ranks):
                started_at = now
            if failed_at is None and any(_failed(rank.reports[nodeid]) for rank in self.ranks):
                failed_at = now
            if ended:
                self._fail(nodeid, f"mpiexec ended with exit code {self.process.returncode} during this test")
            if failed_at is not None and _over(now - failed_at, GRACE_SECONDS):
                self._fail(nodeid, "failed, and other ranks were left waiting")
            begun, allowed = (began, START_SECONDS) if started_at is None else (started_at, limit)
            if _over(now - begun, allowed):
                self._fail(nodeid, f"time limit: not finished after {now - (started_at or began):.0f} s")
            time.sleep(POLL_SECONDS)
        if nodeid == self.ids[-1]:
            self._wait_for_end(nodeid)
        return [rank.reports[nodeid] for rank in self.ranks]

    def printed(self, nodeid: str) -> list[str]:
        """Return what each rank printed during the test."""
        return [rank.printed(nodeid) for rank in self.ranks]

    def stop(self) -> None:
        """End every process of the job and remove its folder."""
        stop_tree(self.process, seconds=2.0)
        for segment in {segment for rank in self.ranks for segment in rank.segments}:
            Path(segment).unlink(missing_ok=True)  # a rank that aborts leaves it behind
        self._temporary.cleanup()

    def _start(self, config: pytest.Config) -> subprocess.Popen:
        (self.folder / "job.json").write_text(json.dumps({"ids": self.ids}))
        try:
            mpiexec = find_mpiexec()
            flavor = mpi_flavor(mpiexec)
        except DistGNNError as error:
            self._temporary.cleanup()
            raise JobFailure(f'{error}; or leave these tests out with -m "not mpi"') from error
        runner = Path(__file__).with_name("mpi_rank.py")
        command = [*mpiexec_command(mpiexec, flavor, self.num_ranks), sys.executable, str(runner), str(self.folder)]
        environment = os.environ | rank_environment(self.num_ranks, 1, flavor)
        environment.pop("PYTEST_ADDOPTS", None)
        with (self.folder / "mpiexec.log").open("wb") as log:
            return subprocess.Popen(
                command + _pytest_arguments(config, self.ids),
                cwd=config.invocation_params.dir,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=die_with_parent(),
            )

    def _wait_for_end(self, nodeid: str) -> None:
        try:
            code = self.process.wait(FINISH_SECONDS * slowness())
        except subprocess.TimeoutExpired:
            self._fail(nodeid, f"mpiexec did not end within {FINISH_SECONDS:.0f} s after the last test")
        if code != 0:
            self._fail(nodeid, f"mpiexec ended with exit code {code} after the last test")

    def _fail(self, nodeid: str, message: str) -> NoReturn:
        """Ask the unfinished ranks where they are, then raise."""
        late = [number for number, rank in enumerate(self.ranks) if nodeid not in rank.log_end]
        for number in late:
            self._print_stack(number)
        time.sleep(STACK_SECONDS)
        output = {f"rank {number} of {self.num_ranks}": self.ranks[number].printed(nodeid) for number in late}
        output["mpiexec"] = _tail((self.folder / "mpiexec.log").read_text(errors="replace"))
        if late:
            message += f" (unfinished: rank {', '.join(map(str, late))} of {self.num_ranks})"
        raise JobFailure(message, [rank.reports[nodeid] for rank in self.ranks], output)

    def _print_stack(self, number: int) -> None:
        pid = self.ranks[number].pid
        if pid is not None and self.process.poll() is None:
            try:
                os.kill(pid, signal.SIGUSR1)
            except ProcessLookupError:
                pass


def _pytest_arguments(config: pytest.Config, ids: list[str]) -> list[str]:
    """Return the arguments that make the ranks' pytest read the same files under the same settings."""
    arguments = ["--rootdir", str(config.rootpath)]
    if config.inipath is not None:
        arguments += ["-c", str(config.inipath)]
    for option in config.option.override_ini or []:
        arguments += ["-o", option]
    for option in config.option.pythonwarnings or []:
        arguments += ["-W", option]
    files = dict.fromkeys(nodeid.split("::")[0] for nodeid in ids)
    return arguments + [str(config.rootpath / file) for file in files]


def _over(seconds: float, limit: float) -> bool:
    """Whether a limit has passed, also at the speed that this machine has now (measured only then)."""
    return seconds > limit and seconds > limit * slowness()


def _failed(reports: list[dict]) -> bool:
    return any(report["outcome"] != "passed" for report in reports)


def _tail(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SHOWN_CHARACTERS else "…" + text[-SHOWN_CHARACTERS:]
