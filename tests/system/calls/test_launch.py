"""`dg.launch`: results by rank, what travels, errors of ranks in the caller, and nobody who outlives it."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from command import without_rank_variables

from distgnn.errors import InputError
from distgnn.system.calls.launch import launch
from distgnn.system.jobs.own_rank import OURS
from distgnn.system.jobs.processes import runs
from distgnn.system.output import say

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
        pids = [int(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGKILL)
        err = process.stderr.read()
    assert err.count("ZeroDivisionError: only here") == 2  # its traceback on the rank, and as it is raised here
    assert "OnRank: on rank 1 of 2\nTraceback" in err and ", in fails\n" in err and "Abort(" not in err
    deadline = time.monotonic() + 300
    while (any(map(runs, pids)) or list(tmp_path.glob(".distgnn-call-*"))) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(runs, pids)) and not list(tmp_path.glob(".distgnn-call-*"))


class Held:
    def __init__(self, **held):
        self.__dict__ |= held


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("function", "args", "place"),
    [
        (print, (Held(inner=[0, {"a": LOCK}]),), "Held.inner[1]['a']"),
        (print, (1, LOCK), "argument 1"),
        (lambda inner=LOCK: LOCK, (), "variable LOCK of <lambda>"),
    ],
)
def test_what_cannot_travel_is_named(function, args, place):
    with pytest.raises(InputError) as caught:
        launch(function, args, ranks=2)
    assert caught.value._render_traceback_() == [f"InputError: {caught.value}"]  # in a notebook
    assert str(caught.value).startswith(f"{place} cannot travel to the ranks: cannot pickle") and "\n" not in str(
        caught.value
    )


def test_a_notebook_shows_no_progress_in_red(monkeypatch, capfd):
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    say("here")
    launch(lambda: print("there", file=sys.stderr), ranks=2)
    out, err = capfd.readouterr()
    assert "distgnn: here" in out and "there" in out and not err


def test_one_rank_is_this_process(monkeypatch):
    held = []
    assert launch(lambda: (os.getpid(), held.append(1)), ranks=1, threads=1)[0][0] == os.getpid() and held == [1]
    for name in OURS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PMI_RANK", "0")
    for size in ("", "2"):
        monkeypatch.setenv("PMI_SIZE", size)
        with pytest.raises(InputError, match="is a rank already"):
            launch(print, ranks=1)
    monkeypatch.setenv("PMI_SIZE", "1")  # as of `srun -n 1 python script.py`
    monkeypatch.setenv("DISTGNN_TIMEOUT", "600")
    assert launch(os.getpid, ranks=1) == [os.getpid()] and "PMI_RANK" not in os.environ
    assert os.environ["DISTGNN_TIMEOUT"] == "600"  # the user's
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")  # as torchrun sets it, and accelerate
    with pytest.raises(InputError, match="start the script with python, once"):
        launch(print, ranks=1)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ({"ranks": 0}, "expected a whole number"),
        ({"ranks": True}, "expected a whole number"),
        ({"ranks": 1, "threads": 0}, "threads is 0"),
        ({"ranks": 3, "hosts": ["one:2", "two"], "timeout": 1}, "timeout is for ranks of this machine"),
        ({"ranks": 2, "hosts": ["one:2", "two"]}, "the hosts are for 3"),
        ({"hosts": ["one two"]}, "expected NAME or NAME:RANKS"),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(words, says):
    with pytest.raises(InputError, match=says):
        launch(print, **words)
