"""The program in a process of its own, as a user starts it."""

import os
import subprocess
import sys

from speed import slowness

from distgnn.system.jobs.keeper import NOTE_VARIABLE, OWNER
from distgnn.system.jobs.own_rank import RANK_VARIABLES
from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command


def distgnn(*words, under: int = 0, timeout: float = 600) -> subprocess.CompletedProcess:
    """Run the program in a process of its own, by itself or under `mpiexec -n UNDER`. `timeout`: on a quiet machine."""
    command = [sys.executable, "-m", "distgnn.cli", *map(str, words)]
    if under:
        mpiexec = find_mpiexec()
        command = [*mpiexec_command(mpiexec, mpi_flavor(mpiexec), under), *command]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    timeout *= slowness()
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment, check=False)


def python(*words, under: int) -> subprocess.CompletedProcess:
    """Run this Python under `mpiexec -n UNDER`, as a user starts a script."""
    mpiexec = find_mpiexec()
    command = [*mpiexec_command(mpiexec, mpi_flavor(mpiexec), under), sys.executable, *map(str, words)]
    environment = without_rank_variables()
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)


def without_rank_variables() -> dict[str, str]:
    """The environment of a process that no launcher of ranks has started."""
    of_ranks = {*RANK_VARIABLES, OWNER, NOTE_VARIABLE}  # the last two are of a pytest that has begun MPI, too
    return {name: value for name, value in os.environ.items() if name not in of_ranks}
