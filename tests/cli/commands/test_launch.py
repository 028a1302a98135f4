"""`distgnn run`: a user's script on several ranks, with its own arguments, imports and exit code."""

import signal
import subprocess
import sys

import pytest
from command import distgnn, without_rank_variables

from distgnn.partition import partition_graph
from distgnn.system.launch import find_mpiexec

SCRIPT = """
import os, sys
import beside
from mpi4py import MPI
everyone = MPI.COMM_WORLD.gather(os.environ["OMP_NUM_THREADS"])
if MPI.COMM_WORLD.rank == 0:
    print(MPI.COMM_WORLD.size, *everyone, os.environ["DISTGNN_PRINT"], *sys.argv[1:])
sys.exit(beside.CODE)
"""


@pytest.fixture(autouse=True)
def files_of_all(monkeypatch):
    """Ranks write for themselves: they load no torch for copies of files, which tests/system/scripts has."""
    monkeypatch.setenv("DISTGNN_FILES", "all")


@pytest.fixture
def script(tmp_path):
    (tmp_path / "beside.py").write_text("CODE = 7")
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path / "script.py"


@pytest.mark.slow
def test_a_script_runs_on_all_ranks_with_its_arguments_and_its_exit_code_is_passed_on(script):
    done = distgnn("run", "-n", 3, "--threads", 2, script, "parts/", "--lr", 0.1, "-n", "x")
    assert done.returncode == 7, done.stderr
    assert done.stdout.split() == ["3", "2", "2", "2", "once", "parts/", "--lr", "0.1", "-n", "x"]


MISTAKES = """
import sys
from mpi4py import MPI
from distgnn.comm import abort_on_uncaught
from distgnn.errors import InputError, RunStopped, on_all_ranks
abort_on_uncaught(MPI.COMM_WORLD)
if sys.argv[1] == "stopped":
    raise on_all_ranks(RunStopped(15))
MPI.COMM_WORLD.Barrier()  # who speaks first is a matter of milliseconds, not of who started first
raise InputError("wrong here") if sys.argv[1] == "alike" else ZeroDivisionError("ours")
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "code"), [("alike", 2), ("stopped", 143), ("bug", 1)])
def test_a_mistake_in_a_script_is_said_once_with_the_programs_exit_code(tmp_path, kind, code):
    (tmp_path / "script.py").write_text(MISTAKES)
    done = distgnn("run", "-n", 2, tmp_path / "script.py", kind)
    assert done.returncode == code, done.stderr
    says = {"stopped": "stopped by SIGTERM", "bug": "ZeroDivisionError: ours"}
    assert done.stderr.count(says.get(kind, "InputError: wrong here")) == 1
    assert "rank 1 failed" not in done.stderr


PRINTS = """
import os, sys
import distgnn as dg
ours = os.environ["DISTGNN_PRINT"]
for name, plain, os.environ["DISTGNN_PRINT"] in (("plain", True, ours), ("all", False, "all"), ("ours", False, ours)):
    data = dg.load(sys.argv[1], plain_tensors=plain)
    print(name, float(data.train_mask.double().mean()))
"""


@pytest.mark.slow
def test_numbers_of_the_whole_graph_are_printed_once(tmp_path, monkeypatch):
    folder = tmp_path / "parts"
    graph = "communities:nodes=60,communities=3,feats=4,classes=3,seed=1"
    partition_graph(graph, 2, folder)
    (tmp_path / "script.py").write_text(PRINTS)
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")  # as in containers: lines of ranks stay whole
    lines = distgnn("run", "-n", 2, tmp_path / "script.py", folder).stdout.splitlines()
    assert sorted(line.split()[0] for line in lines) == ["all", "all", "ours", "plain", "plain"]
    assert len({line.split()[1] for line in lines if not line.startswith("plain")}) == 1


@pytest.mark.slow
def test_a_module(script, monkeypatch):
    monkeypatch.chdir(script.parent)
    monkeypatch.setenv("DISTGNN_PRINT", "all")
    done = distgnn("run", "-n", 2, "-m", "script", "a")
    assert (done.returncode, done.stdout.split()[-2:]) == (7, ["all", "a"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-n", 2, "no-such.py"], "no script no-such.py: give the path"),
        (["-n", 0, __file__], "must be at least 1, got 0 ranks"),
        ([__file__], "--ranks"),
    ],
)
def test_mistakes_are_one_line(refused, words, says):
    refused("run", *words, says=says)


@pytest.mark.slow
def test_it_refuses_to_run_on_a_rank(script):
    done = distgnn("run", "-n", 2, script, under=1)
    assert done.returncode == 2
    assert "starts ranks itself" in done.stderr


WAITS = """
import time
from mpi4py import MPI
MPI.COMM_WORLD.Barrier()
if MPI.COMM_WORLD.rank == 0:
    print("ready", flush=True)
time.sleep(900)
"""


@pytest.mark.slow
def test_ctrl_c_is_one_line_without_the_banner_of_mpiexec(tmp_path):
    (tmp_path / "script.py").write_text(WAITS)
    environment = without_rank_variables() | {"DISTGNN_MPIEXEC": find_mpiexec()}  # a named one is always used
    command = [sys.executable, "-m", "distgnn.cli", "run", "-n", "2", str(tmp_path / "script.py")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=900)
    assert (process.returncode, out, err) == (130, "", "distgnn: error: interrupted\n")
