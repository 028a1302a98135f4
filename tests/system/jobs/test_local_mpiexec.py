"""Ranks of one machine without mpiexec: they find each other, listen on loopback only, and exit codes come back."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import without_rank_variables

from distgnn.system import launch
from distgnn.system.jobs import local_mpiexec
from distgnn.system.jobs.supervise import guarded

PROGRAM = """
import os, signal, sys, time
from mpi4py import MPI
comm = MPI.COMM_WORLD
assert comm.allgather(comm.rank) == list(range(comm.size)) and comm.Split_type(MPI.COMM_TYPE_SHARED).size == comm.size
if sys.argv[1] == "listen" and comm.rank == 0:
    listening = {socket for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").readlines()[1:]
                 for words in [line.split()] if words[3] == "0A" for socket in [(words[9], words[1].split(":")[0])]}
    folder = "/proc/self/fd"
    links = [os.readlink(f"{folder}/{name}") for name in os.listdir(folder) if os.path.lexists(f"{folder}/{name}")]
    mine = {link[8:-1] for link in links if link.startswith("socket:")}
    print({address for inode, address in listening if inode in mine} - {"0100007F"}, flush=True)
comm.Barrier()
if comm.rank == 1 and sys.argv[1] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if comm.rank == 1 and sys.argv[1] == "abort":
    comm.Abort(77)
if sys.argv[1] in ("kill", "abort"):
    time.sleep(100)
sys.exit(2 if sys.argv[1] == "refuse" else 0)
"""


@pytest.mark.parametrize(
    ("what", "code", "says"), [("listen", 0, "set()\n"), ("kill", 137, ""), ("abort", 77, ""), ("refuse", 2, "")]
)
def test_two_ranks(tmp_path, what, code, says):
    mpiexec = launch.find_mpiexec()
    if launch.mpi_flavor(mpiexec) != "mpich":
        pytest.skip("for MPICH only")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-I", "-S", local_mpiexec.__file__, "-n", "2"]
    environment = without_rank_variables() | launch.LOOPBACK["mpich"] | launch.WAIT_ASLEEP["mpich"]
    done = subprocess.run(
        [*command, *guarded([sys.executable, str(tmp_path / "program.py"), what])],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, says), done.stderr


def test_a_rank_that_fails_before_mpi_ends_the_others(tmp_path, monkeypatch):
    """The others would wait for it in MPI_Init; they get some seconds to say the same."""
    program = "import os, sys, time; time.sleep(100) if os.environ['PMI_RANK'] == '0' else sys.exit(3)"
    (tmp_path / "starter.py").write_text(
        Path(local_mpiexec.__file__).read_text().replace("GRACE_SECONDS = 5.0", "GRACE_SECONDS = 0.2")
    )
    command = [sys.executable, "-I", "-S", str(tmp_path / "starter.py"), "-n", "2", sys.executable, "-S", "-c", program]
    began = time.monotonic()
    assert subprocess.run(command, timeout=60, check=False).returncode == 3
    assert time.monotonic() - began < 50


def test_two_jobs_have_two_names():
    """MPICH names its shared memory after the job: with one name for all, jobs that ran at the same time met in it."""
    jobs = [local_mpiexec.Job(0, []) for _ in range(2)]
    assert jobs[0].name != jobs[1].name
