"""Getting onto ranks: a command that needs one rank per part starts them itself where none were started."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import typer

from distgnn.errors import InputError, on_all_ranks
from distgnn.system.hosts import check_tasks
from distgnn.system.jobs.restarts import Restarts
from distgnn.system.jobs.run_watch import RunWatch
from distgnn.system.launch import import_mpi, run_under_mpi, under_mpi


def run_on_ranks(
    num_ranks: int,
    threads: int | None,
    *,
    words: list[str] | None = None,
    graceful: bool = False,
    restarts: Restarts | None = None,
) -> None:
    """On a rank return; elsewhere run this command on `num_ranks` ranks, and exit as they did.

    Args:
        threads: per rank; None shares the cores out.
        words: in place of those of this command.
        graceful: a first signal asks the ranks to stop by themselves (with a checkpoint).
        restarts: start them again after a fault; a single rank then has a process of its own, too.
    """
    if threads is not None and threads < 1:
        raise on_all_ranks(InputError(f"threads is {threads}: expected at least 1"))
    if not under_mpi():
        check_tasks()
        if num_ranks > 1 or restarts is not None:
            watch = None if restarts is None else partial(RunWatch, restarts.run_dir)
            start = partial(run_under_mpi, num_ranks=num_ranks, threads=threads, graceful=graceful, watch=watch)
            words = sys.argv[1:] if words is None else words
            raise typer.Exit(start(words) if restarts is None else restarts.run(words, start))
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
