"""Under a user's own mpiexec a rank that is killed is named in one line, and one that ends by itself is not."""

import re
import subprocess
import sys

import pytest
from command import python, without_rank_variables

from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command


@pytest.fixture(autouse=True)
def mpich():
    if mpi_flavor(find_mpiexec()) != "mpich":
        pytest.skip("for MPICH only")


PROGRAM = """
import contextlib, os, signal, sys, time
import distgnn
from distgnn.system.jobs.job_cleanup import children
from distgnn.system.jobs.rank_log import note
from mpi4py import MPI
def watched():
    # Whether the process beside this one waits for its end already.
    with contextlib.suppress(OSError):
        folders = [f"/proc/{child}/fd" for child in children(os.getpid()) or ()]
        return any("pidfd" in os.readlink(f"{folder}/{fd}") for folder in folders for fd in os.listdir(folder))
deadline = time.monotonic() + 600
while not watched():
    assert time.monotonic() < deadline, "nobody watches this rank"
    time.sleep(0.01)
MPI.COMM_WORLD.Barrier()
end = sys.argv[1]
with note.during("epoch 3, forward"):
    if MPI.COMM_WORLD.rank == 1:
        if end.startswith("SIG"):
            os.kill(os.getpid(), getattr(signal, end))
        if end == "abort":
            MPI.COMM_WORLD.Abort(7)
    if end != "well":
        time.sleep(900)
"""
LINES = {
    "SIGKILL": "in epoch 3, forward: not by the kernel for memory",
    "SIGSEGV": "in epoch 3, forward: it read or wrote memory that is not its own",
    "SIGTERM": "",
    "abort": "",
    "well": "",
}


@pytest.mark.slow
@pytest.mark.parametrize("end", LINES)
def test_a_killed_rank_is_named(tmp_path, end):
    (tmp_path / "program.py").write_text(PROGRAM)
    done = python(tmp_path / "program.py", end, under=2)
    assert (done.returncode == 0) == (end == "well"), done.stderr
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.startswith("distgnn: error:")]
    assert len(said) == bool(LINES[end]), said
    if said:
        assert re.fullmatch(rf"distgnn: error: rank 1 on host \S+ was killed by {end} {LINES[end]}.*", said[0])


@pytest.mark.slow
def test_a_rank_that_ends_at_once_ends_the_job(tmp_path):
    """Its watcher may still start, or its output go elsewhere: the job hung in about every second run of each."""
    world = "import os, distgnn; from mpi4py import MPI; world = MPI.COMM_WORLD; world.Barrier()"
    elsewhere = "import os; [os.dup2(os.open(os.devnull, os.O_WRONLY), end) for end in (1, 2)]; "
    for before in ("", elsewhere) * 3:
        program = f"{before}{world}; os._exit(3) if world.rank == 1 else world.Barrier()"
        words = [*mpiexec_command(find_mpiexec(), "mpich", 2), sys.executable, "-c", program]
        done = subprocess.run(words, env=without_rank_variables(), timeout=900, check=False)
        # The code of rank 1, or of the one that Hydra then ends
        assert done.returncode in (3, 9), before or "as it is"
