"""`dg.launch`: a function on ranks of this machine, its results back as a list by rank.

```
launch()                 a folder that only this user can read: function and arguments
  └─ run_program         as `distgnn run`: starts, watches and ends the ranks
       └─ on_rank.py     calls the function; its result, or its error, goes into the folder
```
"""

import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

from distgnn.errors import DistGNNError, InputError, OnRank, RunError, RunStopped
from distgnn.system.calls import on_rank
from distgnn.system.calls.packing import pack, unpack
from distgnn.system.hosts import check_names, parse_hosts, read_hosts
from distgnn.system.jobs.own_rank import leave_step_of_one, under_mpi
from distgnn.system.launch import check_temporary, run_program, working_folder
from distgnn.system.output import fill_closed
from distgnn.system.processor import available_sockets

REASON = "reason.txt"  # in the folder of a call: what is known of a rank that was killed
THREADS = "DISTGNN_NUM_THREADS"  # of a single process


def launch(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    ranks: int | None = None,
    *,
    threads: int | None = None,
    timeout: float | None = None,
    hosts: Sequence[str] | str | None = None,
) -> list[Any]:
    """Call a function on ranks; each has its share of the cores, and `dg.load` gives it its part.

    Args:
        function: any function, also a lambda, a closure, or one of a notebook; args: its arguments, the same on all
            ranks. Both are copied to the ranks.
        ranks: how many; None: one for each socket. One is this process itself: nothing is started and nothing copied.
        threads: per rank; None: cores / ranks.
        timeout: seconds after which ranks that exchange nothing are ended; None: no limit.
        hosts: names of machines, as "node1" or "node1:2" with ranks, or a file of them, for `distgnn launch`; the
            working folder and all paths must be the same there. None: this machine.

    Returns: what the function gave, by rank.

    Raises:
        What the function raises on a rank; its `__cause__` has the rank and the traceback there.
        InputError for what cannot travel, with the attribute; on a rank, which starts no others.
        RunError where ranks end in another way (killed, timeout); lines on standard error say how.
        KeyboardInterrupt after Ctrl-C or a notebook's stop button, when the ranks are gone.

    Notes: no rank outlives the caller, however that ends.

    Example:
        >>> import distgnn
        >>> distgnn.launch(lambda name: f"hello {name}", ("rank",), ranks=1)
        ['hello rank']
    """
    return call_on_ranks(function, args, ranks, threads=threads, timeout=timeout, hosts=hosts)


def call_on_ranks(
    function: Callable[..., Any],
    args: Sequence[Any],
    ranks: int | None,
    *,
    threads: int | None = None,
    timeout: float | None = None,
    graceful: bool = False,
    hosts: Sequence[str] | str | None = None,
    apart: bool = False,
) -> list[Any]:
    """As `launch`. Args: graceful: a first signal asks the ranks to end by themselves; apart: one rank, too, is a
    process of its own."""
    ranks = check_ranks(ranks, hosts)
    check_temporary()
    if ranks == 1 and hosts is None and not apart:
        with _threads(threads):
            return [function(*args)]
    place = None if hosts is None else working_folder()  # other machines see it, too
    with tempfile.TemporaryDirectory(prefix=".distgnn-call-", dir=place, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "call.pickle").write_bytes(_packed(function, args))
        (folder / "path.json").write_text(json.dumps([one or working_folder() for one in sys.path]))
        fill_closed()
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # closed, full
                stream.flush()
        received: list[int] = []
        program = [sys.executable, on_rank.__file__, name]
        told: dict[str, Any] = {"graceful": graceful, "received": received, "temporary": folder}
        if hosts is not None and timeout is not None:
            raise InputError("timeout is for ranks of this machine: with hosts, set DISTGNN_TIMEOUT there")
        places = ranks if hosts is None else check_names(_hosts(hosts))
        code = run_program(program, places, threads, timeout, reason=folder / REASON, **told)
        failures = [unpack(path.read_bytes()) for path in sorted(folder.glob(on_rank.ERROR.format(rank="*")))]
        if not all(one.follows for one in failures) or (failures and not (folder / REASON).is_file()):
            _raise(failures, ranks, received)
        if code or received:
            # Ranks have ended, and none has said why in its file
            reason = folder / REASON
            if received and received[0] == signal.SIGINT:
                raise KeyboardInterrupt
            if received:  # it was meant for this process, which had handed it on
                os.kill(os.getpid(), received[0])
                raise RunError(f"the ranks were ended by {signal.Signals(received[0]).name}")
            if reason.is_file():
                error = RunError(reason.read_text(encoding="utf-8"))
                error.said = True
                raise error
            raise RunError(f"the ranks ended with exit code {code}: the lines above say which of them, and why")
        return [_result(folder, rank) for rank in range(ranks)]


def check_ranks(ranks: int | None, hosts: Sequence[str] | str | None = None) -> int:
    """How many ranks to start. Raises: InputError for none, and on a rank."""
    if hosts is not None:
        there = sum(count for _, count in _hosts(hosts))
        if ranks not in (None, there):
            raise InputError(f"ranks is {ranks}, and the hosts are for {there}: leave ranks out, or write NAME:RANKS")
        ranks = there
    if under_mpi() and not leave_step_of_one():
        raise InputError("this process is a rank already: start the script with python, it starts its ranks itself")
    if "TORCHELASTIC_RUN_ID" in os.environ and os.environ.get("WORLD_SIZE") != "1":
        raise InputError("torchrun or accelerate started this process: start the script with python, once")
    if ranks is None:
        return available_sockets()
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        shown = " ".join(repr(ranks).split())[:60]
        raise InputError(f"ranks is {shown}: expected a whole number of processes, at least 1")
    return ranks


def _hosts(hosts: Sequence[str] | str) -> list[tuple[str, int]]:
    return read_hosts(hosts) if isinstance(hosts, str) else parse_hosts(list(hosts), "hosts")


def _packed(function: Callable[..., Any], args: Sequence[Any]) -> bytes:
    """Function and arguments together, so that what they share stays shared; each by its name where one fails."""
    try:
        return pack((function, tuple(args)), "the call")
    except InputError:
        pack(function, getattr(function, "__name__", "the function"))
        for place, one in enumerate(args):
            pack(one, type(one).__name__ if hasattr(one, "__dict__") else f"argument {place}")
        raise


@contextmanager
def _threads(threads: int | None) -> Iterator[None]:
    """Within, this process works with a number of threads."""
    before = os.environ.get(THREADS)
    if threads is not None:
        if threads < 1:
            raise InputError(f"threads is {threads}: expected at least 1")
        os.environ[THREADS] = str(threads)
    try:
        yield
    finally:
        if threads is not None:
            os.environ.pop(THREADS)
            os.environ |= {} if before is None else {THREADS: before}


def _result(folder: Path, rank: int) -> Any:
    path = folder / on_rank.RESULT.format(rank=rank)
    if not path.is_file():
        raise RunError(f"rank {rank} ended without a result: its function left the process (os._exit, exec)")
    return unpack(path.read_bytes())


def _raise(failures: list[on_rank.Failure], num_ranks: int, received: list[int]) -> NoReturn:
    """The error of the lowest rank that has one of its own."""
    failure = min(failures, key=lambda one: (one.follows, one.rank))
    try:
        error = unpack(failure.error) if failure.error else None
    except Exception:  # its class takes other arguments than it was made with
        error = None
    if not isinstance(error, BaseException):
        error = RunError(f"rank {failure.rank} raised {failure.text}")
    if isinstance(error, RunStopped) and received:  # ranks know the signal only that it was passed on by
        raise RunStopped(received[0], error.epochs_done, error.run_dir)
    if isinstance(error, DistGNNError) and (failure.agreed or not error.traced):
        raise error
    raise error from OnRank(failure.rank, num_ranks, failure.trace)
