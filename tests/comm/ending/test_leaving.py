"""A rank that leaves while others wait ends the job with one line; one that others do not wait for
does not, however long they work on."""

import pytest
from command import distgnn, python

SCRIPT = """
import os, sys, time
import numpy as np
{first}
from distgnn.comm import Transport, abort_on_uncaught, sum_over_ranks
from distgnn.comm.ending import leaving
from mpi4py import MPI
leaving.LOOK_SECONDS, leaving.STILL_SECONDS = 0.1, 0.5
abort_on_uncaught(MPI.COMM_WORLD)
comm = leaving.watched(MPI.COMM_WORLD)
def main():
    main.sender = Transport(comm)
    sum_over_ranks(comm, np.ones(1))
    if comm.rank == 1:
        {act}
    {others}
main()
"""
WAIT = "sum_over_ranks(comm, np.ones(1))"
SENDS = "main.sender.send(np.zeros(1 << 20), 0, 1)"
CASES = {
    "distgnn run, an exit code": ("run", "", "sys.exit(3)", WAIT, 1),
    "distgnn run, rows that nobody reads": ("run", "", f"{SENDS}; sys.exit(3)", WAIT, 1),
    "mpiexec, a text": ("mpiexec", "", 'raise SystemExit("no data")', WAIT, 1),
    "mpiexec, MPI imported first": ("mpiexec", "from mpi4py import MPI", "return", WAIT, 1),
    "distgnn run, one works alone": ("run", "", "return", "time.sleep(2)", 0),
    "mpiexec, the rooted call was made": ("mpiexec", "", "comm.gather(1); return", "time.sleep(1); comm.gather(2)", 0),
    "distgnn run, MPI_Finalize by the script": ("run", "", "MPI.Finalize(); return", "time.sleep(1)", 0),
}


@pytest.mark.slow
@pytest.mark.parametrize(("launcher", "first", "act", "others", "code"), CASES.values(), ids=CASES)
def test_a_rank_leaves(tmp_path, monkeypatch, launcher, first, act, others, code):
    monkeypatch.setenv("DISTGNN_FILES", "all")  # for copies of files ranks load torch
    (tmp_path / "script.py").write_text(SCRIPT.format(first=first, act=act, others=others))
    if launcher == "run":
        done = distgnn("run", "-n", 2, tmp_path / "script.py")
    else:
        done = python(tmp_path / "script.py", under=2)
    assert done.returncode == code, done.stderr
    line = "rank 1 left in script.py, after 3 collective calls, the others wait in Allreduce at script.py:"
    assert done.stderr.count(line) == (code != 0), done.stderr
    assert "Traceback" not in done.stderr


HEARD = """
import atexit, time
from mpi4py import MPI
@atexit.register
def look():
    time.sleep(0.5)
    unheard = MPI.COMM_WORLD.Iprobe(tag=own_rank.UNJOINED)
    print("rank", MPI.COMM_WORLD.rank, "unheard:", unheard, flush=True)
from distgnn.system.jobs import own_rank
time.sleep(0.2 * MPI.COMM_WORLD.rank)
"""


@pytest.mark.slow
def test_all_messages_are_received_before_mpi_ends(tmp_path):
    """MPICH 5 fails in MPI_Finalize otherwise, and its mpiexec may then kill the other ranks."""
    (tmp_path / "script.py").write_text(HEARD)
    done = python(tmp_path / "script.py", under=3)
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} unheard: False" for rank in range(3)]
    assert (done.returncode, done.stderr) == (0, "")
