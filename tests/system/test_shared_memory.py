"""Too small a /dev/shm is one line before the start, not a bus error in MPI_Init."""

import pytest

from distgnn.errors import RunError
from distgnn.system import shared_memory


@pytest.mark.parametrize(("num_ranks", "free"), [(1, 64_000), (2, 1_500_000), (16, 16_000_000)])
def test_too_little_room_is_refused_with_both_numbers(num_ranks, free):
    with pytest.raises(RunError, match=rf"has room for \d.*, and {num_ranks} ranks of MPICH .* need \d.*--shm-size"):
        shared_memory.check_room(num_ranks, free)


@pytest.mark.parametrize(("num_ranks", "free"), [(1, 2_000_000), (2, 4_000_000), (32, 64_000_000)])
def test_enough_room_is(num_ranks, free):
    shared_memory.check_room(num_ranks, free)


def test_ranks_of_one_machine_look_before_they_start_mpi(monkeypatch):
    monkeypatch.setattr(shared_memory, "_room", lambda blocks: 1_500_000 if blocks == "f_blocks" else 0)
    monkeypatch.setenv("MPI_LOCALNRANKS", "2")
    monkeypatch.setenv("PMI_SIZE", "4")
    shared_memory.check_room_here(alone=False)
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(RunError, match="2 ranks") as caught:
        shared_memory.check_room_here(alone=False)
    assert caught.value.agreed
