"""What each rank runs: `mpiexec -n P python mpi_rank.py JOB_FOLDER PYTEST_ARGUMENTS…`.

pytest itself runs the job's ids in the job's order, without capturing; all ranks meet after each test.
"""

import faulthandler
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from mpi4py import MPI

MEET_SECONDS = 0.0005  # ranks that wait for each other sleep: there may be fewer cores than ranks
FINE_CODES = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)


class RankPlugin:
    """Runs the ids of the job and writes one line of JSON per event."""

    def __init__(self, folder: Path, comm: MPI.Comm):
        self.__name__ = "mpi_rank"  # pytest registers it under this name
        self.comm = comm
        self.ids = json.loads((folder / "job.json").read_text())["ids"]
        self.events = (folder / f"rank-{comm.rank}.jsonl").open("w", buffering=1)

    def pytest_configure(self, config):
        self.config = config

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        found = {item.nodeid: item for item in items}
        missing = [nodeid for nodeid in self.ids if nodeid not in found]
        if missing:
            raise pytest.UsageError(f"this rank does not collect {', '.join(missing)}")
        items[:] = [found[nodeid] for nodeid in self.ids]

    def pytest_runtest_logstart(self, nodeid):
        self._write("start", nodeid, pid=os.getpid(), log_offset=_log_offset())

    def pytest_runtest_logreport(self, report):
        data = self.config.hook.pytest_report_to_serializable(config=self.config, report=report)
        self._write("report", report.nodeid, report=data)

    def pytest_runtest_logfinish(self, nodeid):
        self._write("finish", nodeid, log_offset=_log_offset())
        request = self.comm.Ibarrier()
        while not request.Test():
            time.sleep(MEET_SECONDS)

    def _write(self, event, nodeid, **values):
        self.events.write(json.dumps({"event": event, "id": nodeid, **values}, default=str) + "\n")


def _log_offset() -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    return os.lseek(1, 0, os.SEEK_CUR)


def main() -> None:
    """Collective: yes. A rank whose pytest breaks ends the job: the others would wait for it."""
    folder = Path(sys.argv[1])
    comm = MPI.COMM_WORLD.Dup()
    log = os.open(folder / f"rank-{comm.rank}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # what a rank printed before it hung is there
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    options = ["-p", "no:terminal", "-p", "no:cacheprovider", "-p", "mpi_marker", "--capture=no"]
    options += ["--basetemp", str(folder / f"rank-{comm.rank}")]
    plugin = RankPlugin(folder, comm)
    code = pytest.main(options + sys.argv[2:], plugins=[plugin])
    if code not in FINE_CODES:
        print(f"pytest ended with {code!r}", file=sys.stderr, flush=True)
        comm.Abort(int(code))


if __name__ == "__main__":
    main()
