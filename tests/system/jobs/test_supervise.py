"""Ranks that were started: their exit code, and that neither a signal nor the end of a proxy leaves one behind."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import without_rank_variables
from process_tree import descendants

from distgnn.system.jobs import supervise as supervisor
from distgnn.system.jobs.processes import runs
from distgnn.system.jobs.supervise import supervise

LAUNCHER = """
import os, sys
from distgnn.system import launch
from distgnn.system.jobs import supervise
mpiexec = launch.find_mpiexec()
flavor = launch.mpi_flavor(mpiexec)
command = launch.mpiexec_command(mpiexec, flavor, 2)
rank = supervise.ended_with_parent([sys.executable, sys.argv[1], sys.argv[2]])
sys.exit(supervise.supervise([*command, *rank], dict(os.environ), proxies=flavor != "openmpi"))
"""
RANK = """
import sys, time
from pathlib import Path
from mpi4py import MPI
folder = Path(sys.argv[1])
(folder / str(MPI.COMM_WORLD.rank)).touch()
MPI.COMM_WORLD.Barrier()
time.sleep(900)
"""


@pytest.fixture
def start(tmp_path):
    """Start a launcher with two ranks; return it once both ranks run."""
    (tmp_path / "rank.py").write_text(RANK)

    def start_launcher() -> subprocess.Popen:
        launcher = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(tmp_path / "rank.py"), str(tmp_path)],
            env=without_rank_variables(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 300
        while not all((tmp_path / str(rank)).exists() for rank in (0, 1)):
            assert time.monotonic() < deadline, "the ranks did not start"
            time.sleep(0.02)
        return launcher

    return start_launcher


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV])
def test_what_starts_the_ranks_is_named_when_it_is_killed(capfd, number):
    command = [sys.executable, "-S", "-c", f"import os; os.kill(os.getpid(), {int(number)})"]
    assert supervise(command, dict(os.environ)) == 128 + number
    line = f"distgnn: error: what started the ranks on host .* was killed by {number.name}: .*\n"
    assert re.fullmatch(line, capfd.readouterr().err)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_the_launcher_and_every_rank(start, number):
    launcher = start()
    below = descendants(launcher.pid)
    assert len(below) >= 3  # mpiexec and two ranks, with or without a proxy between
    launcher.send_signal(number)
    assert launcher.wait(900) == (-number if number == signal.SIGKILL else 128 + number)
    nobody_is_left(below)


def nobody_is_left(pids: list[int]) -> None:
    deadline = time.monotonic() + 600
    while any(runs(pid) for pid in pids):
        assert time.monotonic() < deadline, "ranks were left behind"
        time.sleep(0.05)


def proxies_in(pids: list[int]) -> list[int]:
    """Those between mpiexec and the ranks. Open MPI has none on the launcher's machine."""
    found = [pid for pid in pids if b"hydra_pmi_proxy" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found or pytest.skip("this mpiexec has no proxy on the launcher's machine")


ASKED = """
import os, signal, sys, time
came = []
signal.signal(signal.SIGUSR1, lambda *_: came.append(1))
while not os.path.exists(sys.argv[2]):  # what comes while a job starts, ends it
    time.sleep(0.01)
os.kill(os.getppid(), signal.SIGTERM)
deadline = time.monotonic() + 60
while len(came) < 3 and time.monotonic() < deadline:
    time.sleep(0.01)
open(sys.argv[1], "w").write(str(len(came)))
"""


def test_ranks_that_may_not_have_heard_a_signal_are_told_again_at_each_look(tmp_path, monkeypatch):
    monkeypatch.setattr(supervisor, "LOOK_SECONDS", 0.05)
    wait = supervisor.Job._wait
    monkeypatch.setattr(supervisor.Job, "_wait", lambda job: (tmp_path / "started").touch() or wait(job))
    command = [sys.executable, "-S", "-c", ASKED, str(tmp_path / "came"), str(tmp_path / "started")]
    assert supervise(command, dict(os.environ), graceful=True) == 128 + signal.SIGTERM
    assert (tmp_path / "came").read_text() == "3"


@pytest.mark.slow
def test_ranks_whose_proxy_is_killed_end_and_so_does_the_launcher(start):
    launcher = start()
    below = descendants(launcher.pid)
    for pid in proxies_in(below):
        os.kill(pid, signal.SIGKILL)
    nobody_is_left(below)
    assert launcher.wait(900) not in (0, 2)


@pytest.mark.slow
def test_a_proxy_that_is_stopped_does_not_outlive_the_launcher(start):
    launcher = start()
    below = descendants(launcher.pid)
    for pid in proxies_in(below):
        os.kill(pid, signal.SIGSTOP)
    launcher.kill()
    launcher.wait(900)
    nobody_is_left(below)
