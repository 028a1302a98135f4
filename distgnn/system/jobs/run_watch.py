"""The launcher's watch over a run: ranks of which none tells anything new, and machines that do not answer.

A machine is asked by `mpiexec`, the way that ranks are started, to do nothing. One that does not answer in time, nor
soon after the others, is left out of the next start; ranks that ran there are named.

Ranks watch each other (watchdog.py). Where all of them are stopped, or the only one, none is left to do so. And a
machine that is cut off from the others may still reach the disk on which ranks tell: then all seem to wait for one
another. So the launcher asks the machines, once a phase has used up a quarter of the limit.
"""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from distgnn.system.hosts import host_options
from distgnn.system.jobs.processes import die_with_parent, stop_tree
from distgnn.system.jobs.watchdog import HUNG, patience, phase_seconds
from distgnn.system.launch import find_mpiexec, mpi_flavor, mpiexec_command

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SECONDS = 15.0  # in which a machine answers
AFTER_OTHERS = 5.0  # at least, and five times as long as the last that answered took
STOP_SECONDS = 0.5
PAUSE_SECONDS = 5.0  # between two looks: this process did not run itself
LOOK_SECONDS = 2.0  # of the limit, a fifth at most: looks are a second apart
FAR_STATUS_SECONDS = 120.0  # at least without news of ranks on other machines: network file systems tell late
ASK_AT = 0.25  # of the limit
Hosts = list[tuple[str, int]]  # (name, ranks)


class RunWatch:
    """Looks at the ranks' statuses of one start.

    Args: run_dir: the run folder, which may not exist yet; hosts: (name, ranks) in the order of ranks, where they run
        on other machines; `say` gets a line on each that does not answer.
    """

    exit_code = HUNG

    def __init__(self, run_dir: Path, hosts: Hosts | None = None, say: Callable[[str], None] = print):
        self.run_dir, self.hosts, self.say = run_dir, hosts or [], say
        self.shortest = 0.0 if hosts is None else FAR_STATUS_SECONDS
        self._told = _statuses(run_dir)  # at first of ranks that are gone
        self._new_at: dict[Path, float] = {}  # by this machine's clock, when a rank of this start told something new
        self._looked, self._ask_at = time.monotonic(), 0.0
        self._over = threading.Event()
        self._asking: threading.Thread | None = None
        self._said: set[str] = set()

    def look(self) -> str | None:
        """What to say of ranks that have told nothing for the limit; None where one has, or none tells yet."""
        now, told, limit = time.monotonic(), _statuses(self.run_dir), limit_of(self.run_dir)
        slept, self._looked = now - self._looked > PAUSE_SECONDS, now
        for path in told.keys() | self._new_at.keys():
            if path not in told:  # it has left
                del self._new_at[path]
            elif told[path] != self._told.get(path) or (slept and path in self._new_at):
                self._new_at[path] = now
        self._told = told
        if not limit:
            return None
        self._ask(now, limit)
        silent = now - max(self._new_at.values(), default=now)
        if silent < max(patience(limit) - min(LOOK_SECONDS, limit / 5), self.shortest):
            return None
        return f"no rank has told what it does for {silent:.3g} s (--timeout {limit:g}): all are stopped"

    def _ask(self, now: float, limit: float) -> None:
        """Ask the machines, if nothing has moved for long; name those that do not answer, each once."""
        lasting = [phase_seconds(self._told[path]) for path, at in self._new_at.items() if now - at < limit / 2]
        if max((seconds for seconds in lasting if seconds < float("inf")), default=0.0) < ASK_AT * limit:
            self._said.clear()
        elif self.hosts and now >= self._ask_at and not (self._asking and self._asking.is_alive()):
            self._ask_at = now + ASK_AT * limit
            self._asking = threading.Thread(target=self._hear, args=(min(SECONDS, limit / 2),), daemon=True)
            self._asking.start()

    def _hear(self, seconds: float) -> None:
        found = dict(answering(self.hosts, seconds, self._over.is_set))
        for name, ranks in ranks_on(self.hosts).items():
            if name not in found and name not in self._said and not self._over.is_set():
                self._said.add(name)
                self.say(no_answer(name, ranks))

    def close(self) -> None:
        self._over.set()
        if self._asking is not None:
            self._asking.join()


def no_answer(host: str, ranks: list[int]) -> str:
    numbers = str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]}-{ranks[-1]}"
    return f"{'ranks' if len(ranks) > 1 else 'rank'} {numbers} on host {host} does not answer"


def limit_of(run_dir: Path) -> float:
    """--timeout of the run; 0 where there is none, or no run yet."""
    try:
        return float(tomllib.loads((run_dir / "config.toml").read_text(encoding="utf-8"))["train"]["timeout"])
    except (OSError, ValueError, KeyError, TypeError, OverflowError):
        return 0.0


def _statuses(run_dir: Path) -> dict[Path, str]:
    """What ranks tell that they do; the folder may hold runs of several seeds."""
    found = {}
    for pattern in ("logs", "seed-*/logs", "fold-*/logs"):
        for path in run_dir.glob(f"{pattern}/rank-*.status"):
            with suppress(OSError, ValueError):
                found[path] = path.read_text(encoding="utf-8")
    return found


def answering(hosts: Hosts, seconds: float = SECONDS, over: Callable[[], bool] = lambda: False) -> Hosts:
    """The hosts that start a program within some seconds, in their order; all are asked at once.

    Args: over: nobody wants to know any more.
    """
    mpiexec = find_mpiexec()
    flavor = mpi_flavor(mpiexec)
    nothing = [sys.executable, "-I", "-S", "-c", "pass"]
    silent: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    asked: list[subprocess.Popen] = []
    with ExitStack() as stack:
        try:
            for name, _ in hosts:
                options = stack.enter_context(host_options([(name, 1)], flavor, {}))
                command = [*mpiexec_command(mpiexec, flavor, 1), *options, *nothing]
                asked.append(subprocess.Popen(command, **silent, preexec_fn=die_with_parent(signal.SIGKILL)))
            began, answered = time.monotonic(), 0
            deadline = began + seconds
            while not over() and time.monotonic() < deadline and any(process.poll() is None for process in asked):
                time.sleep(0.02)
                now, count = time.monotonic(), sum(process.poll() == 0 for process in asked)
                if count > answered:
                    answered, deadline = count, min(began + seconds, max(now + AFTER_OTHERS, began + 5 * (now - began)))
            good = [process.poll() == 0 for process in asked]
        finally:
            with ThreadPoolExecutor(32) as pool:  # each that does not answer takes STOP_SECONDS
                list(pool.map(lambda process: stop_tree(process, STOP_SECONDS), asked))
    return [host for host, answers in zip(hosts, good, strict=True) if answers]


def first_ranks(hosts: Hosts, num_ranks: int) -> Hosts:
    """The first hosts with room for these ranks; the last of them may get fewer than it has room for."""
    chosen, left = [], num_ranks
    for name, room in hosts:
        if left > 0:
            chosen.append((name, min(room, left)))
            left -= room
    return chosen


def ranks_on(hosts: Hosts) -> dict[str, list[int]]:
    """The ranks that each host runs, numbered in the order of hosts."""
    found: dict[str, list[int]] = {}
    first = 0
    for name, ranks in hosts:
        found.setdefault(name, []).extend(range(first, first + ranks))
        first += ranks
    return found
