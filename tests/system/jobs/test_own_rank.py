"""What a rank starts is a plain process; a failing fork does not end its parent's job; a job's last line is read."""

import os
import select
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest
from command import python, without_rank_variables

from distgnn.system.jobs import own_rank

CHILDREN = """
import multiprocessing, os, subprocess, sys
import distgnn
from mpi4py import MPI
from distgnn.comm import abort_on_uncaught
from distgnn.system.jobs.own_rank import under_mpi

def child(queue):
    import distgnn
    queue.put((under_mpi(), MPI.COMM_WORLD.size if multiprocessing.get_start_method() != "fork" else 1))

if __name__ == "__main__":
    abort_on_uncaught(MPI.COMM_WORLD)
    if MPI.COMM_WORLD.rank == 0:
        source = "import distgnn; from mpi4py import MPI; print(MPI.COMM_WORLD.size)"
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
        print("subprocess", done.stdout.strip(), flush=True)
        for act, code in ((lambda: 1 / 0, 1), (lambda: sys.exit(5), 5)):
            pid = os.fork()
            if pid == 0:
                act()
            print("fork", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code, flush=True)
        for method in ("spawn", "forkserver"):
            multiprocessing.set_start_method(method, force=True)
            queue = multiprocessing.Queue()
            process = multiprocessing.Process(target=child, args=(queue,))
            process.start()
            print(method, *queue.get(timeout=600), flush=True)
            process.join()
    print("together", MPI.COMM_WORLD.allreduce(1), flush=True)
"""


@pytest.mark.slow
def test_what_a_rank_starts_is_a_plain_process(tmp_path):
    (tmp_path / "script.py").write_text(CHILDREN)
    done = python(tmp_path / "script.py", under=2)
    assert done.returncode == 0, done.stderr
    expected = ["subprocess 1", "fork True", "fork True", "spawn False 1", "forkserver False 1"]
    assert sorted(done.stdout.splitlines()) == sorted([*expected, "together 2", "together 2"]), done.stderr
    assert done.stderr.count("ZeroDivisionError") == 1


@pytest.fixture
def rank(monkeypatch):
    """This process has the environment of rank 1 of two, and its end is not seen to."""
    for name in [name for name in os.environ if name.startswith(own_rank.PREFIXES)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PMI_RANK", "1")
    monkeypatch.delenv(own_rank.OWNER, raising=False)
    monkeypatch.setattr(own_rank, "_finalize_here", lambda: None)
    return monkeypatch


def test_warnings_of_the_network_do_not_go_to_standard_output(rank):
    rank.delenv("UCX_LOG_FILE", raising=False)
    own_rank.forget_parent()
    assert os.environ["UCX_LOG_FILE"] == "stderr"


def test_a_rank_stays_one_however_often_distgnn_is_imported(rank):
    for _ in range(2):
        own_rank.forget_parent()
        assert own_rank.under_mpi() and not own_rank.is_child()


def test_a_process_with_another_ranks_variables_is_none(rank):
    rank.setenv(own_rank.OWNER, f"1 {own_rank._rank()}")  # noted by process 1
    rank.setenv("DISTGNN_RANKS", "2")
    own_rank.forget_parent()
    assert not own_rank.under_mpi() and "DISTGNN_RANKS" not in os.environ


def test_a_rank_of_a_job_that_a_rank_has_started_is_one(rank):
    rank.setenv(own_rank.OWNER, f"1 {own_rank._rank()}")
    rank.setenv("PMI_RANK", "0")  # its own starter has numbered it
    own_rank.forget_parent()
    assert own_rank.under_mpi() and os.environ[own_rank.OWNER].startswith(f"{os.getpid()} ")


def test_a_closed_line_to_the_starter_is_that_of_a_child(rank):
    rank.setenv("PMI_FD", "12345")
    own_rank.forget_parent()
    assert not own_rank.under_mpi()


SCRIPT = """
import sys
from distgnn.system.jobs import own_rank

own_rank.READ_SECONDS = float(sys.argv[1])
print("the last line", file=sys.stderr, flush=True)
exec(sys.argv[2])
own_rank.abort_job(7)
"""


@contextmanager
def aborting(seconds, before=""):
    """A process that has written its last line, and waits `seconds` at most until that was read."""
    command = [sys.executable, "-c", SCRIPT, str(seconds), before]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, env=without_rank_variables(), **pipes) as child:
        try:
            assert select.select([child.stderr], [], [], 60)[0]
            yield child
        finally:
            child.kill()


def test_the_job_does_not_end_before_its_last_line_was_read():
    with aborting(60) as child:
        time.sleep(0.5)
        assert child.poll() is None
        assert os.read(child.stderr.fileno(), 1000) == b"the last line\n"
        assert child.wait(300) == 7


@pytest.mark.parametrize("before", ["", "sys.stdout.close()", "sys.stdout = None"])
def test_nobody_who_reads_and_no_output_do_not_hold_the_end_up(before):
    with aborting(0.1, before) as child:
        assert child.wait(300) == 7
