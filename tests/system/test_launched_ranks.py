"""Ranks that were started: their exit code, and that no signal leaves one behind."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import without_rank_variables

from distgnn.system.processes import descendants

LAUNCHER = """
import os, sys
from distgnn.system import launch
mpiexec = launch.find_mpiexec()
command = launch.mpiexec_command(mpiexec, launch.mpi_flavor(mpiexec), 2)
sys.exit(launch._run([*command, sys.executable, sys.argv[1], sys.argv[2]], dict(os.environ)))
"""
RANK = """
import sys, time
from pathlib import Path
from mpi4py import MPI
folder = Path(sys.argv[1])
(folder / str(MPI.COMM_WORLD.rank)).touch()
MPI.COMM_WORLD.Barrier()
time.sleep(100 if (folder / "wait").exists() else 0)
sys.exit(2)
"""


@pytest.fixture
def start(tmp_path):
    """Start a launcher with two ranks; return it once both ranks run, or at once where they do not wait."""
    (tmp_path / "rank.py").write_text(RANK)

    def start_launcher(wait: bool) -> subprocess.Popen:
        (tmp_path / "wait").touch() if wait else None
        launcher = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(tmp_path / "rank.py"), str(tmp_path)],
            env=without_rank_variables(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while wait and not all((tmp_path / str(rank)).exists() for rank in (0, 1)):
            assert time.monotonic() < deadline, "the ranks did not start"
            time.sleep(0.02)
        return launcher

    return start_launcher


def test_the_ranks_exit_code_is_the_launchers(start):
    assert start(wait=False).wait(60) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_the_launcher_and_every_rank(start, number):
    launcher = start(wait=True)
    below = descendants(launcher.pid)
    assert len(below) >= 3  # mpiexec and two ranks, with or without a proxy between
    launcher.send_signal(number)
    assert launcher.wait(30) == (-number if number == signal.SIGKILL else 128 + number)
    deadline = time.monotonic() + 10
    while any(running(pid) for pid in below):
        assert time.monotonic() < deadline, "ranks were left behind"
        time.sleep(0.05)


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
