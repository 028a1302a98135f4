"""One rank's error becomes every rank's, and is said with the user's line."""

import traceback

import pytest
import torch
from command import distgnn

from distgnn.comm import agree, check_same, raise_together
from distgnn.config import TrainConfig
from distgnn.errors import InputError, RunError, users_line, users_trace
from distgnn.partition import partition_graph
from distgnn.system.jobs.rank_log import note


@pytest.mark.mpi(1, 3)
def test_the_error_of_the_last_rank_is_raised_on_all(comm):
    agree(comm, None)
    with pytest.raises(InputError, match="file of the last rank") as caught, raise_together(comm):
        if comm.rank == comm.size - 1:
            raise InputError("file of the last rank")
    assert caught.value.agreed
    assert comm.rank < comm.size - 1 or caught.value.__cause__ is None  # the error itself, not one chained to it


@pytest.mark.mpi(2)
def test_a_bug_stays_a_bug_on_its_rank_and_ends_the_others(comm):
    kind = ZeroDivisionError if comm.rank == 0 else RunError
    with pytest.raises(kind), raise_together(comm):
        if comm.rank == 0:
            _ = 1 // 0


@pytest.mark.mpi(2)
def test_a_shortage_of_memory_is_the_same_line_everywhere(comm):
    line = r"no memory for rank 1 on host \S+ in loading: "
    with pytest.raises(RunError, match=line), note.during("loading"), raise_together(comm):
        if comm.rank == 1:
            torch.empty(1 << 50)


@pytest.mark.mpi(3)
def test_check_same_names_what_differs(comm):
    check_same(comm, {"version": 1}, "install one version")
    with pytest.raises(RunError, match=r"ranks differ in version: rank 0 has 1, rank 2 has 2: install one version"):
        check_same(comm, {"version": 2 if comm.rank == 2 else 1}, "install one version")


class Own(torch.nn.Module):
    def forward(self, lr):
        return TrainConfig(lr=lr).check()


def test_an_error_of_ours_has_the_users_lines_only():
    with pytest.raises(InputError, match="lr is -1") as caught:
        torch.nn.Sequential(Own())(-1.0)
    trace = users_trace(caught.value, caught.value.__traceback__)
    assert [one.name for one in traceback.extract_tb(trace)] == [
        test_an_error_of_ours_has_the_users_lines_only.__name__,
        "forward",
    ]
    assert users_line(caught.value, trace) == f" (test_agree.py:{Own.forward.__code__.co_firstlineno + 1})"
    bug = ValueError("of another library")
    assert users_trace(bug, caught.value.__traceback__) is caught.value.__traceback__


SCRIPT = """
import sys, distgnn as dg
def work():
    if len(sys.argv) == 2:
        dg.load("nowhere")
    try:
        input()
    except dg.DistGNNError as error:
        print(error)
    dg.load(sys.argv[1], say=None).x.sort(0)
work()
"""


@pytest.mark.slow
def test_ranks_say_where_in_the_script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    done = distgnn("run", "-n", 2, tmp_path / "script.py", "any")
    assert done.returncode == 2 and done.stderr.splitlines()[-1].endswith("(script.py:5)"), done.stderr
    partition_graph("communities:nodes=60", 2, tmp_path / "parts")
    done = distgnn("run", "-n", 2, tmp_path / "script.py", tmp_path / "parts", "sort")
    assert "torch's sort" in done.stderr and 'script.py", line 10, in work' in done.stderr, done.stderr
    assert "row_tensor.py" not in done.stderr and done.stdout.startswith("ranks have no standard input"), done.stdout
