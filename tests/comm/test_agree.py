"""One rank's error becomes every rank's."""

import pytest
import torch

from distgnn.comm import agree, check_same, raise_together
from distgnn.errors import InputError, RunError
from distgnn.system.jobs.rank_log import note


@pytest.mark.mpi(1, 3)
def test_no_error_passes(comm):
    agree(comm, None)
    with raise_together(comm):
        pass


@pytest.mark.mpi(1, 3)
def test_the_error_of_the_last_rank_is_raised_on_all(comm):
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
