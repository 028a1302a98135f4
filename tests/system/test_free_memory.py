"""No memory is one line, and other errors are not taken for it; too small a /dev/shm is said before the start."""

import errno
import signal

import numpy as np
import pytest
import torch

from distgnn.errors import InputError, RunError
from distgnn.system import free_memory, launch
from distgnn.system.free_memory import no_memory
from distgnn.system.launch import run_program


def caught(act) -> BaseException:
    with pytest.raises(BaseException) as found:
        act()
    return found.value


def raised(error: BaseException, cause: BaseException | None = None):
    def act():
        raise error from cause

    return act


SHORTAGES = {
    "numpy": lambda: np.empty(1 << 50),
    "torch": lambda: torch.empty(1 << 50),
    "python": lambda: bytearray(1 << 50),
    "system": raised(OSError(errno.ENOMEM, "Cannot allocate memory")),
    "linker": raised(ImportError("libtorch_cpu.so: failed to map segment from shared object")),
    "linker, told by another": raised(OSError("no library"), OSError("x.so: failed to map segment from shared object")),
    "threads": raised(RuntimeError("can't start new thread")),
    "mpi": raised(RuntimeError("MPI_ERR_NO_MEM: out of memory")),
}
OTHERS = {
    "shape": lambda: torch.zeros(2) @ torch.zeros(3),
    "value": raised(ValueError("cannot allocate memory to a name")),
    "file": raised(FileNotFoundError(errno.ENOENT, "no such file")),
}


@pytest.mark.parametrize("act", SHORTAGES.values(), ids=SHORTAGES)
def test_a_shortage_is_one_line_with_rank_phase_and_advice(monkeypatch, act):
    error = caught(act)
    error.phase = "epoch 3, forward"
    line = no_memory(error, 1)
    assert line.startswith("no memory for rank 1 on host ") and " in epoch 3, forward" in line and "\n" not in line
    assert "ulimit" not in line and "--remat" in line
    monkeypatch.setattr(free_memory, "address_limit", lambda: 900_000 * 1024)
    assert "with at most 922 MB of addresses (ulimit -v)" in no_memory(error, 1)


@pytest.mark.parametrize("act", OTHERS.values(), ids=OTHERS)
def test_other_errors_are_none(act):
    assert no_memory(caught(act), 0) is None


def test_too_few_addresses_are_one_line_before_ranks_start_and_exit_code_2_after(monkeypatch):
    monkeypatch.setattr(free_memory, "address_limit", lambda: 1_200_000_000)
    with pytest.raises(InputError, match=r"needs about 1.5 GB of addresses, and may have 1.2 GB \(ulimit -v\): raise"):
        run_program(["true"], 2)
    monkeypatch.setattr(free_memory, "address_limit", lambda: 2_000_000_000)
    monkeypatch.setattr(launch, "supervise", lambda *_, **__: 128 + signal.SIGABRT)
    for limit, code in ((2_000_000_000, 2), (None, 134)):
        monkeypatch.setattr(launch, "address_limit", lambda limit=limit: limit)
        assert run_program(["true"], 2) == code


def test_more_ranks_than_have_memory_are_not_started(monkeypatch):
    free_memory.check_programs(4, 4 * free_memory.PROGRAM)
    monkeypatch.setattr(free_memory, "available_bytes", lambda: 5 * free_memory.PROGRAM)
    with pytest.raises(InputError, match=r"6 ranks need 1.2 GB .* at most 5 of them"):
        run_program(["true"], 6)


@pytest.mark.parametrize(
    ("num_ranks", "free", "enough"), [(1, 64_000, 2e6), (2, 1_500_000, 4e6), (16, 16_000_000, 32e6)]
)
def test_too_little_room_is_refused_with_both_numbers(num_ranks, free, enough):
    free_memory.check_room(num_ranks, int(enough))
    with pytest.raises(RunError, match=rf"has room for \d.*, and {num_ranks} ranks of MPICH .* need \d.*--shm-size"):
        free_memory.check_room(num_ranks, free)


def test_ranks_of_one_machine_look_before_they_start_mpi(monkeypatch):
    monkeypatch.setattr(free_memory, "_room", lambda blocks: 1_500_000 if blocks == "f_blocks" else 0)
    monkeypatch.setenv("MPI_LOCALNRANKS", "2")
    monkeypatch.setenv("PMI_SIZE", "4")
    free_memory.check_room_here(alone=False)
    monkeypatch.setenv("PMI_SIZE", "2")
    with pytest.raises(RunError, match="2 ranks") as caught:
        free_memory.check_room_here(alone=False)
    assert caught.value.agreed
