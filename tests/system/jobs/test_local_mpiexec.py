"""Ranks of one machine without mpiexec: they find each other, listen on loopback only, and exit codes come back."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from command import without_rank_variables

from distgnn.system import launch
from distgnn.system.jobs import local_mpiexec
from distgnn.system.jobs.supervise import ended_with_parent

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


@pytest.mark.slow
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
        [*command, *ended_with_parent([sys.executable, str(tmp_path / "program.py"), what])],
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert (done.returncode, done.stdout) == (code, says), done.stderr


@pytest.mark.slow
def test_a_rank_that_fails_before_mpi_ends_the_others(tmp_path, monkeypatch):
    """The others would wait for it in MPI_Init; they get some seconds to say the same."""
    program = "import os, sys, time; time.sleep(900) if os.environ['PMI_RANK'] == '0' else sys.exit(3)"
    (tmp_path / "starter.py").write_text(
        Path(local_mpiexec.__file__).read_text().replace("GRACE_SECONDS = 5.0", "GRACE_SECONDS = 0.2")
    )
    command = [sys.executable, "-I", "-S", str(tmp_path / "starter.py"), "-n", "2", sys.executable, "-S", "-c", program]
    assert subprocess.run(command, timeout=900, check=False).returncode == 3


def test_two_jobs_have_two_names():
    """MPICH names its shared memory after the job: with one name for all, jobs that ran at the same time met in it."""
    jobs = [local_mpiexec.Job(0, []) for _ in range(2)]
    assert jobs[0].name != jobs[1].name


SPEAKS = """
import os, signal, socket, sys, time
sys.path.insert(0, {folder!r})
rank, fd = int(os.environ["PMI_RANK"]), int(os.environ["PMI_FD"])
starter = socket.socket(fileno=fd)
def ask(text):
    starter.sendall(text + b"\\n")
    return starter.recv(4096)
def init():
    ask(b"cmd=init pmi_version=1 pmi_subversion=1")
def do(text):
    os.pwrite(int(os.environ["DISTGNN_NOTE_FD"]), b"\\n" + text, 0)
{act}
time.sleep(900)
"""
COMPLAINS = """init()
path = __file__ + ".pid"
if rank == 1:
    open(path + "~", "w").write(str(os.getpid()))
    os.rename(path + "~", path)
else:
    while not os.path.exists(path):
        time.sleep(0.01)
    starter.sendall(b"cmd=abort exitcode=1\\n")  # its neighbour's death is told a moment later
    time.sleep(0.05)
    os.kill(int(open(path).read()), signal.SIGSEGV)
"""
GARBAGE = """
for text in (b"\\xff\\x00", b"cmd=put key", b"cmd=get", b"cmd=barrier_in group=,", b"cmd={0}", b"cmd=abort exitcode=x"):
    starter.sendall(text + b"\\n")
"""
ENDS = {
    "killed": ("init(); do(b'epoch 3, forward\\nrun/logs/rank-1.log')\nif rank == 1: os.kill(os.getpid(), 9)", 137),
    "another complains first": (COMPLAINS, 139),
    "no MPI_Finalize": ("init(); do(b'script.py')\nif rank == 1: os._exit(3)", 3),
    "no MPI_Finalize, exit code 0": ("init()\nif rank == 1: os._exit(0)", 1),
    "before MPI": ("if rank == 1: sys.exit(0)\ninit(); ask(b'cmd=barrier_in')", 1),
    "garbage": (GARBAGE, 1),
}
LINES = {
    "killed": r"rank 1 on host \S+ was killed by SIGKILL in epoch 3, forward: not by .*; its log is run/logs/r",
    "another complains first": r"rank 1 on host \S+ was killed by SIGSEGV in its start: it read or wrote",
    "no MPI_Finalize": r"rank 1 on host \S+ ended with exit code 3 and without MPI_Finalize: it left in script.py",
    "no MPI_Finalize, exit code 0": r"rank 1 on host \S+ ended with exit code 0 and without MPI_Finalize",
    "before MPI": r"rank 1 left before it started MPI, the others wait for it in MPI_Init",
    "garbage": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDS)
def test_the_rank_that_ends_a_job_is_named_in_one_line(tmp_path, name):
    act, code = ENDS[name]
    (tmp_path / "rank.py").write_text(SPEAKS.format(folder=str(tmp_path), act=act))
    (tmp_path / "starter.py").write_text(
        Path(local_mpiexec.__file__).read_text().replace("GRACE_SECONDS = 5.0", "GRACE_SECONDS = 0.5")
    )
    command = [sys.executable, "-I", "-S", str(tmp_path / "starter.py"), "-n", "2"]
    done = subprocess.run(
        [*command, sys.executable, "-S", str(tmp_path / "rank.py")],
        env=without_rank_variables(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert re.fullmatch(f"distgnn: error: {LINES[name]}.*\n" if LINES[name] else "", done.stderr), done.stderr


def test_the_kernels_memory_killer_is_told_from_other_signals(monkeypatch):
    before = (1, 5)
    assert "memory behind a mapped file is gone" in local_mpiexec.why_killed(signal.SIGBUS, before)
    assert "a library gave up" in local_mpiexec.why_killed(signal.SIGABRT, before)
    for now, says in (
        ((1, 5), "not by the kernel for memory"),
        ((2, 6), "the kernel ended it for memory"),
        ((1, 6), "of this machine for memory"),
    ):
        monkeypatch.setattr(local_mpiexec, "memory_kills", lambda now=now: now)
        assert says in local_mpiexec.why_killed(signal.SIGKILL, before)
    assert "--remat" in local_mpiexec.why_killed(signal.SIGKILL, before)
