"""Results of ranks by rank, their errors in the caller, and nobody who outlives it."""

import re
import signal
import subprocess
import sys
import time

import pytest
from command import without_rank_variables

from distgnn.system.jobs.processes import runs

SCRIPT = """
import os, sys, time, traceback
import distgnn as dg

class Box:
    def __init__(self, content):
        self.content = content

def summed(box):
    from mpi4py import MPI
    time.sleep(0.1 * (1 - MPI.COMM_WORLD.rank))  # the order is that of ranks, not of their ends
    return Box([MPI.COMM_WORLD.rank, MPI.COMM_WORLD.allreduce(box.content)]), factor

factor = 7
results = dg.launch(summed, (Box(3),), ranks=2)
print([box.content for box, _ in results], isinstance(results[0][0], Box), results[1][1])

def fails():
    from mpi4py import MPI
    if MPI.COMM_WORLD.rank == 1:
        raise ZeroDivisionError("only here")
    MPI.COMM_WORLD.Barrier()

try:
    dg.launch(fails, ranks=2)
except ZeroDivisionError:
    traceback.print_exc()
def dies():
    from mpi4py import MPI
    if MPI.COMM_WORLD.rank == 1:
        os.kill(os.getpid(), 9)
    MPI.COMM_WORLD.Barrier()

try:
    dg.launch(dies, ranks=2)
except dg.DistGNNError as error:
    print(error, flush=True)
class Unread:
    def __reduce__(self):
        return read, ()

def read():
    from mpi4py import MPI
    if MPI.COMM_WORLD.rank == 0:
        raise ValueError("not on this host")

try:
    dg.launch(print, (Unread(),), ranks=2)  # rank 1 would wait for rank 0
except dg.DistGNNError as error:
    print(error, flush=True)
dg.launch(lambda: (os.write(1, b"%d\\n" % os.getpid()), time.sleep(60)), ranks=2)
"""


@pytest.mark.slow
def test_results_errors_and_the_end_of_the_caller(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    environment = without_rank_variables() | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        assert process.stdout.readline() == "[[0, 6], [1, 6]] True 7\n"
        assert re.match(r"rank 1 on host \S+ was killed by SIGKILL in .*: not by the kernel", process.stdout.readline())
        assert process.stdout.readline() == "ranks cannot read what was given: ValueError: not on this host\n"
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGKILL)
        err = process.stderr.read()
    assert err.count("ZeroDivisionError: only here") == 2  # its traceback on the rank, and as it is raised here
    assert "OnRank: on rank 1 of 2\nTraceback" in err and ", in fails\n" in err and "Abort(" not in err
    deadline = time.monotonic() + 300
    while (any(map(runs, pids)) or list(tmp_path.glob(".distgnn-call-*"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(runs, pids)) and not list(tmp_path.glob(".distgnn-call-*"))
