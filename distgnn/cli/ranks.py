"""Getting onto ranks: a command that needs one rank per part starts them itself where none were started."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from distgnn.errors import InputError, on_all_ranks
from distgnn.system.hosts import check_tasks
from distgnn.system.launch import import_mpi, run_under_mpi, under_mpi


def run_on_ranks(num_ranks: int, threads: int | None, graceful: bool = False) -> None:
    """On a rank return; elsewhere run this command on `num_ranks` ranks, and exit as they did.

    Args:
        threads: per rank; None shares the cores out.
        graceful: a first signal asks the ranks to stop by themselves (with a checkpoint).
    """
    if threads is not None and threads < 1:
        raise on_all_ranks(InputError(f"threads is {threads}: expected at least 1"))
    if not under_mpi():
        check_tasks()
        if num_ranks > 1:
            raise typer.Exit(run_under_mpi(sys.argv[1:], num_ranks, threads, graceful=graceful))
    if threads is not None:
        os.environ["DISTGNN_NUM_THREADS"] = str(threads)
    import_mpi()


@contextmanager
def checked_together() -> Iterator[None]:
    """A block of checks before the work: on ranks, what one of them finds wrong is raised on all. Collective."""
    if not under_mpi():
        yield
        return
    comm = import_mpi().COMM_WORLD
    from distgnn.comm import raise_together

    with raise_together(comm):
        yield
