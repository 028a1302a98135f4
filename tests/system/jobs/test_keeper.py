"""A dead rank is named and ends the job; one nobody needs is not; a rank that stays stopped is ended."""

import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from command import distgnn, without_rank_variables

from distgnn.system.jobs import keeper
from distgnn.system.jobs.keeper import EARLY, ENDS, JOINED
from distgnn.system.launch import find_mpiexec, mpi_flavor

PROGRAM = """
import os, signal, sys, time
import distgnn
from mpi4py import MPI
from distgnn.comm.ending.leaving import watched
from distgnn.system.jobs.rank_log import note
crew = watched(MPI.COMM_WORLD)
crew.Barrier()
end = sys.argv[1]
with note.during("epoch 3, forward"):
    if MPI.COMM_WORLD.rank == 1:
        if end.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, end))
        if end == "abort":
            MPI.COMM_WORLD.Abort(7)
    if end != "well":
        time.sleep(900)
if MPI.COMM_WORLD.rank == 1:
    MPI.Finalize()
"""
LINES = {"SIGKILL": "was killed by SIGKILL in epoch 3, forward: not by the kernel for memory", "abort": "", "well": ""}
CODES = {"SIGKILL": 128 + signal.SIGKILL, "abort": 7, "well": 0}


@pytest.fixture(autouse=True)
def mpich():
    if mpi_flavor(find_mpiexec()) != "mpich":
        pytest.skip("for MPICH only")


@pytest.fixture
def plain_files(monkeypatch):
    monkeypatch.setenv("DISTGNN_FILES", "all")  # for copies of files ranks load torch


@pytest.mark.slow
@pytest.mark.usefixtures("plain_files")
@pytest.mark.parametrize("end", LINES)
def test_a_killed_rank_is_named(tmp_path, end):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = distgnn("run", "-n", 2, tmp_path / "program.py", end)
    assert done.returncode == CODES[end], done.stderr
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("distgnn: error:")]
    assert len(said) == bool(LINES[end]), said
    if said:
        assert re.fullmatch(rf"distgnn: error: rank 1 on host \S+ {LINES[end]}.*", said[0])


@pytest.mark.slow
@pytest.mark.usefixtures("plain_files")
def test_a_rank_that_leaves_before_mpi_ends_the_others(tmp_path):
    """They would wait for it in MPI_Init; one that has failed has said so itself (below)."""
    first = "import os, sys\nif os.environ['PMI_RANK'] == '1': sys.exit()\n"
    (tmp_path / "program.py").write_text(f"{first}from distgnn.system.launch import import_mpi\nimport_mpi()\n")
    done = distgnn("run", "-n", 2, tmp_path / "program.py")
    line = "distgnn: error: rank 1 left before it started MPI, the others wait for it in MPI_Init\n"
    assert (done.returncode, done.stderr) == (1, line)


@pytest.mark.slow
@pytest.mark.usefixtures("plain_files")
def test_a_rank_that_ends_at_once_ends_the_job(tmp_path):
    """Its output may go elsewhere: mpiexec may end nobody where it hears of the end of a rank's pipes first."""
    world = "import os, distgnn; from mpi4py import MPI; world = MPI.COMM_WORLD; world.Barrier()"
    elsewhere = "import os; [os.dup2(os.open(os.devnull, os.O_WRONLY), end) for end in (1, 2)]; "
    for number, before in enumerate(("", elsewhere) * 2):
        program = tmp_path / f"{number}.py"
        program.write_text(f"{before}{world}; os._exit(3) if world.rank == 1 else world.Barrier()")
        # The code of rank 1, or of the one that Hydra then ends: 9, or 128 + 9
        assert distgnn("run", "-n", 2, program).returncode in (3, 9, 137), before or "as it is"


RANK = """
import os, signal, sys
import distgnn
from distgnn.system.jobs.rank_log import note
phase, stage, end = sys.argv[1:]
note.set(phase=phase, stage=stage, limit="0.5")
os.kill(os.getpid(), getattr(signal, end)) if end.startswith("SIG") else os._exit(int(end))
"""


KEEP = ["-I", "-S", keeper.__file__, sys.executable, "-c"]


@contextmanager
def started(command, **variables):
    """A process whose starter speaks MPICH's words; it, and what gives all that the starter was told."""
    ours, theirs = socket.socketpair()
    environment = without_rank_variables() | variables | {"PMI_SIZE": "2", "PMI_FD": str(theirs.fileno())}
    pipes = {"pass_fds": [theirs.fileno()], "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process, ours:
        theirs.close()
        yield process, lambda *how: ours.recv(100, *how).decode()


@pytest.mark.parametrize(
    ("phase", "stage", "end", "line", "code"),
    [
        ("it", JOINED, "3", "ended with exit code 3 and without MPI_Finalize: it left in it", 3),
        ("it", JOINED, "0", "ended with exit code 0 and without MPI_Finalize: it left in it", 1),
        ("it", "", "SIGSEGV", "was killed by SIGSEGV in it: it read or wrote memory that is not its own .*", 139),
        ("it", JOINED, "SIGTERM", "", 143),  # its user did it
        ("it", JOINED, "SIGKILL", "was killed by SIGKILL in it: not by the kernel for memory; .*", 137),
        ("it", "", "SIGSTOP", "was stopped for 0.5 s in it", 124),
        ("it", ENDS, "0", None, None),
    ],
)
def test_what_a_keeper_says_and_tells_the_starter(phase, stage, end, line, code):
    """slurmstepd lets the others wait for ever where it hears nothing."""
    with started([sys.executable, *KEEP, RANK, phase, stage, end], PMI_RANK="1") as (process, told):
        said = process.stderr.read()
        assert told() == ("" if code is None else f"cmd=abort exitcode={code}\n")  # until the keeper ends
    assert process.returncode == (code or 0)
    assert re.fullmatch(rf"distgnn: error: rank 1 on host \S+ {line}\n" if line else "", said)


def test_the_starter_is_told_once_the_line_was_read():
    """Hydra may hear of the end first, and show nothing any more."""
    with started([sys.executable, *KEEP, RANK, "it", JOINED, "3"], PMI_RANK="1") as (process, told):
        assert select.select([process.stderr], [], [], 300)[0]
        time.sleep(0.5)
        with pytest.raises(BlockingIOError):
            told(socket.MSG_DONTWAIT)
        assert process.stderr.readline().startswith("distgnn: error: rank 1")
        assert told() == "cmd=abort exitcode=3\n"


IN_MPI = "import mpi4py, time; mpi4py.rc.initialize = False; from mpi4py import MPI; time.sleep(60)"
LATE = "import os, sys, time; time.sleep(float(sys.argv[1])); os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "seconds", "beside", "told"),
    [
        (EARLY, keeper.GRACE_SECONDS + 1, [*KEEP, IN_MPI], "cmd=abort exitcode=3\n"),
        ("", 0.0, [*KEEP, IN_MPI], "cmd=abort exitcode=3\n"),
        (EARLY, 0.0, ["-c", "import time; time.sleep(60)"], ""),
    ],
    ids=["a late rank", "left by os._exit", "no rank"],
)
def test_a_rank_left_while_its_starter_runs_another(stage, seconds, beside, told):
    """On a busy machine, the parent of rank 0 may still be starting. Open MPI's mpirun has an ssh for each machine.

    Hydra may end nobody where a rank leaves by os._exit: nothing was noted, and it may have begun MPI.
    """
    beside = [sys.executable, "-S", "-c", LATE, str(seconds), *beside]
    rank = shlex.join([sys.executable, *KEEP, RANK, "its start", stage, "3"])
    with started(["sh", "-c", f"{shlex.join(beside)} & PMI_RANK=1 {rank}; kill $!"]) as (process, heard):
        assert heard() == told
        assert process.wait(40) in (0, -15, 143)
