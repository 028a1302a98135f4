"""Agreeing: one rank's error becomes every rank's error, so that nobody is left waiting."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from mpi4py import MPI

from distgnn.errors import DistGNNError, RunError, on_all_ranks
from distgnn.system.free_memory import no_memory


def agree(comm: MPI.Comm, error: Exception | None) -> None:
    """Raise the lowest failing rank's error on every rank.

    Collective: yes. One integer over all ranks when nothing is wrong.

    Raises:
        The lowest failing rank's error: the same class and text everywhere. An error that is not ours (a bug) keeps its
        traceback on its own rank; a shortage of memory is a RunError.
    """
    shortage = None if error is None else no_memory(error, comm.rank)
    if shortage is not None:
        error = RunError(shortage)
    first = comm.allreduce(comm.rank if error is not None else comm.size, op=MPI.MIN)
    if first == comm.size:
        return
    kind, text = comm.bcast((type(error), str(error)) if comm.rank == first else None, root=first)
    if error is not None and not isinstance(error, DistGNNError):
        raise error
    if isinstance(error, DistGNNError) and comm.rank == first:
        raise on_all_ranks(error)
    if issubclass(kind, DistGNNError):
        raise on_all_ranks(kind(text)) from error
    raise on_all_ranks(RunError(f"rank {first} failed: {kind.__name__}: {text}"))


@contextmanager
def raise_together(comm: MPI.Comm) -> Iterator[None]:
    """A block that every rank enters; an error in it on any rank is raised on all at its end. Collective."""
    error = None
    try:
        yield
    except Exception as caught:
        error = caught
    agree(comm, error)


def check_same(comm: MPI.Comm, values: Mapping[str, object], advice: str) -> None:
    """Refuse to go on where ranks differ in what must be the same (program version, partition, settings).

    Collective: yes.

    Raises:
        RunError: on every rank, with the first name that differs and the ranks' values.
    """
    rows = comm.allgather(values)
    for name in values:
        everywhere = [row[name] for row in rows]
        if any(value != everywhere[0] for value in everywhere):
            rank = next(rank for rank, value in enumerate(everywhere) if value != everywhere[0])
            two = f"rank 0 has {everywhere[0]}, rank {rank} has {everywhere[rank]}"
            raise on_all_ranks(RunError(f"ranks differ in {name}: {two}: {advice}"))
