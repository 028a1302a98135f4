"""A dead rank is named and ends the job, under the launcher and a user's own mpiexec; one nobody needs is not."""

import re
import signal
import socket
import subprocess
import sys

import pytest
from command import distgnn, python, without_rank_variables

from distgnn.system.jobs.death_watch import ENDS, JOINED, SPOKEN
from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command


@pytest.fixture(autouse=True)
def mpich():
    if mpi_flavor(find_mpiexec()) != "mpich":
        pytest.skip("for MPICH only")


WATCHED = """
import contextlib, os, signal, sys, time
import distgnn
from distgnn.system.jobs.processes import children
from distgnn.system.jobs.rank_log import note
def is_watched():
    # Whether the process beside this one waits for its end already.
    with contextlib.suppress(OSError):
        folders = [f"/proc/{child}/fd" for child in children(os.getpid()) or ()]
        return any("pidfd" in os.readlink(f"{folder}/{fd}") for folder in folders for fd in os.listdir(folder))
deadline = time.monotonic() + 600
while not is_watched():
    assert time.monotonic() < deadline, "nobody watches this rank"
    time.sleep(0.01)
"""
PROGRAM = f"""{WATCHED}
from mpi4py import MPI
from distgnn.comm.ending.leaving import watched
crew = watched(MPI.COMM_WORLD)
crew.Barrier()
end = sys.argv[1]
with note.during("epoch 3, forward"):
    if MPI.COMM_WORLD.rank == 1:
        if end.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, end))
        if end == "abort":
            MPI.COMM_WORLD.Abort(7)
        if end.isdigit():
            os._exit(int(end))
    if end != "well":
        time.sleep(900)
if MPI.COMM_WORLD.rank == 1:
    MPI.Finalize()
"""
LINES = {
    "SIGKILL": "was killed by SIGKILL in epoch 3, forward: not by the kernel for memory",
    "SIGSEGV": "was killed by SIGSEGV in epoch 3, forward: it read or wrote memory that is not its own",
    "0": "ended with exit code 0 and without MPI_Finalize: it left in epoch 3, forward",
    "SIGTERM": "",
    "abort": "",
    "well": "",
}
CODES = {"0": 1, "abort": 7, "well": 0}


@pytest.mark.slow
@pytest.mark.parametrize("end", LINES)
def test_a_killed_rank_is_named(tmp_path, end):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = python(tmp_path / "program.py", end, under=2)
    assert done.returncode == (CODES[end] if end in CODES else 128 + getattr(signal, end)), done.stderr
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("distgnn: error:")]
    assert len(said) == bool(LINES[end]), said
    if said:
        assert re.fullmatch(rf"distgnn: error: rank 1 on host \S+ {LINES[end]}.*", said[0])


@pytest.mark.slow
@pytest.mark.parametrize("code", [0, 3])
def test_a_rank_that_leaves_before_mpi_ends_the_others(tmp_path, code):
    """They would wait for it in MPI_Init; one that has failed has said so itself."""
    first = f"import os, sys\nif os.environ['PMI_RANK'] == '1': sys.exit({code})\n"
    (tmp_path / "program.py").write_text(f"{first}from distgnn.system.launch import import_mpi\nimport_mpi()\n")
    done = distgnn("run", "-n", 2, tmp_path / "program.py")
    line = "distgnn: error: rank 1 left before it started MPI, the others wait for it in MPI_Init\n"
    assert (done.returncode, done.stderr) == ((3, "") if code else (1, line))


@pytest.mark.slow
def test_a_rank_that_ends_at_once_ends_the_job(tmp_path):
    """Its watcher may still start, or its output go elsewhere: the job hung in about every second run of each."""
    world = "import os, distgnn; from mpi4py import MPI; world = MPI.COMM_WORLD; world.Barrier()"
    elsewhere = "import os; [os.dup2(os.open(os.devnull, os.O_WRONLY), end) for end in (1, 2)]; "
    for before in ("", elsewhere) * 3:
        program = f"{before}{world}; os._exit(3) if world.rank == 1 else world.Barrier()"
        words = [*mpiexec_command(find_mpiexec(), "mpich", 2), sys.executable, "-c", program]
        done = subprocess.run(words, env=without_rank_variables(), timeout=900, check=False)
        # The code of rank 1, or of the one that Hydra then ends: 9, or 128 + 9
        assert done.returncode in (3, 9, 137), before or "as it is"


RANK = f"""{WATCHED}
phase, stage, end = sys.argv[1:]
note.set(phase, stage=stage)
os.kill(os.getpid(), signal.SIGKILL) if end == "SIGKILL" else os._exit(int(end))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "phase, stage, end", [("it", JOINED, "3"), ("it", JOINED, "SIGKILL"), ("it", ENDS, "0"), (SPOKEN, JOINED, "3")]
)
def test_a_starter_that_collects_at_once_is_told_to_end_the_others(phase, stage, end):
    """As slurmstepd does, which lets the others wait for ever."""
    ours, theirs = socket.socketpair()
    rank = subprocess.Popen(
        [sys.executable, "-c", RANK, phase, stage, end],
        env=without_rank_variables() | {"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_FD": str(theirs.fileno())},
        pass_fds=[theirs.fileno()],
        stderr=subprocess.PIPE,
        text=True,
    )
    theirs.close()
    rank.wait()
    said, told = rank.stderr.read(), ours.recv(100).decode()  # until the process beside it ends
    rank.stderr.close()
    ours.close()
    how = "(ended .* without MPI_Finalize: it left|was killed by SIGKILL)"
    line = rf"distgnn: error: rank 1 on host \S+ {how} in it.*\n"
    assert re.fullmatch("" if stage == ENDS or phase == SPOKEN else line, said)
    assert re.fullmatch("" if stage == ENDS else r"cmd=abort exitcode=\d+\n", told)
