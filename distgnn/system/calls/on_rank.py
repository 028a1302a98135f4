"""What one rank of `dg.launch` does: reads the function, calls it, and writes its result or its error.

    python on_rank.py FOLDER

FOLDER is the caller's, and only its user can read it:

    path.json            where the caller imports from: the rank imports from there
    call.pickle          (function, arguments)
    result-0.pickle …    what each rank gave
    error-1.pickle …     or a `Failure` of each rank that failed
"""

import json
import os
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULT, ERROR = "result-{rank}.pickle", "error-{rank}.pickle"


@dataclass(frozen=True)
class Failure:
    """An exception of a rank.

    Args:
        text: its class and message; trace: its traceback as Python prints it; error: the exception as bytes, empty
            where it cannot travel; agreed: all ranks raise the same; follows: it complains of another rank.
    """

    rank: int
    text: str
    trace: str
    error: bytes
    agreed: bool = False
    follows: bool = False


def main() -> None:
    folder = Path(sys.argv[1])
    sys.path[:] = json.loads((folder / "path.json").read_text())

    from distgnn.system.calls import on_rank

    on_rank.run(folder)  # not this module, which is `__main__` here


def run(folder: Path) -> None:
    """Call the function and write what it gives. Ends the process, or the whole job, where it raises."""
    from distgnn.errors import InputError
    from distgnn.system.atomic import replace_file
    from distgnn.system.calls.packing import pack, unpack
    from distgnn.system.launch import import_mpi
    from distgnn.system.scripts.run_script import share_random_states

    comm = import_mpi().COMM_WORLD
    try:
        try:
            function, args = unpack((folder / "call.pickle").read_bytes())
        except Exception as error:
            unread = InputError(f"ranks cannot read what was given: {type(error).__name__}: {error}")
            unread.traced = False  # no line of the user's ran; maybe one rank alone cannot, and the others wait for it
            raise unread from error
        share_random_states(comm)
        result = pack(function(*args), "the result")
        replace_file(folder / RESULT.format(rank=comm.rank), result, sync=False)
    except BaseException as error:
        _end(folder, comm, error)


def _end(folder: Path, comm: Any, error: BaseException) -> None:
    """Write the failure, and end: alone where all ranks raise the same, else with all others."""
    import cloudpickle
    from mpi4py import MPI

    from distgnn.errors import DistGNNError, RunError, exit_code, users_trace
    from distgnn.system.atomic import replace_file
    from distgnn.system.free_memory import no_memory
    from distgnn.system.jobs.own_rank import DEATH_SECONDS, SPEAK_SECONDS, abort_job

    rank, size = comm.rank, comm.size
    follows = isinstance(error, MPI.Exception)  # another rank may have died: who started the ranks then says so
    if follows:
        time.sleep(DEATH_SECONDS)
    shortage = no_memory(error, rank)
    shown = error if shortage is None else RunError(shortage)
    agreed = isinstance(error, DistGNNError) and error.agreed
    trace = error.__traceback__.tb_next if error.__traceback__ is not None else None  # without `run` itself
    text = "".join(traceback.format_exception(type(error), error, users_trace(error, trace)))
    try:
        packed = cloudpickle.dumps(shown.with_traceback(None))
    except Exception:
        packed = b""
    failure = Failure(rank, f"{type(shown).__name__}: {shown}", text, packed, agreed, follows)
    replace_file(folder / ERROR.format(rank=rank), cloudpickle.dumps(failure), sync=False)
    if agreed or size == 1:
        sys.exit(exit_code(error))
    time.sleep(SPEAK_SECONDS * min(rank, 10))  # where all ranks fail alike, the lowest speaks
    sys.stderr.flush()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # MPI says that it was aborted; the caller says why
    abort_job(exit_code(shown))


if __name__ == "__main__":
    main()
