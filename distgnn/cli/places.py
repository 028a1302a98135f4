"""Places for ranks that are started, and started again after a fault: this machine, or the machines of a file.

Hosts are read from their file and asked anew before each restart, so that machines come back, and others join.

Getting onto ranks: a command that needs one rank per part starts them itself where none were started.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import typer

from distgnn.config import LaunchConfig
from distgnn.config.extras import attached
from distgnn.errors import InputError, on_all_ranks
from distgnn.system.hosts import check_tasks, read_hosts
from distgnn.system.jobs.restarts import Team, run_again
from distgnn.system.jobs.supervise import LOST
from distgnn.system.launch import import_mpi, run_under_mpi, under_mpi
from distgnn.system.machines import Hosts, answering, first_ranks, no_answer, ranks_on
from distgnn.system.output import say

Start = Callable[[list[str]], int]


@dataclass
class ThisMachine:
    """A place for ranks: for how many there is room now, and what starts them. Here, one per part at any time."""

    num_parts: int
    threads: int | None

    def room(self) -> int:
        return self.num_parts

    def start(self, num_ranks: int) -> Start:
        return partial(run_under_mpi, ranks=num_ranks, threads=self.threads, graceful=True)


@dataclass
class Machines:
    """The machines of a file of hosts; those beyond what is needed are spare."""

    file: str
    threads: int | None

    def __post_init__(self) -> None:
        self.hosts: Hosts = read_hosts(self.file)
        self.used: Hosts = []

    def room(self) -> int:
        try:
            self.hosts = read_hosts(self.file)
        except InputError as error:
            say(f"{error}; the hosts of before are used")
        found = answering(self.hosts)
        for name, ranks in ranks_on(self.used).items():
            if name not in dict(found):
                say(no_answer(name, ranks))
        self.hosts = found
        return sum(ranks for _, ranks in found)

    def start(self, num_ranks: int) -> Start:
        self.used = first_ranks(self.hosts, num_ranks)
        return partial(run_under_mpi, ranks=self.used, threads=self.threads, graceful=True)


@dataclass
class SameRanks:
    """Chooses the ranks of each restart: as many as before, once there is a machine for each. Extras may choose others.

    Args:
        words: the arguments of `train`; place: index of the partition folder among them; num_ranks: one a part.
    """

    words: list[str]
    place: int
    num_ranks: int
    launching: LaunchConfig
    run_dir: Path

    @classmethod
    def of(cls, *arguments: Any) -> "SameRanks":
        kind: type[SameRanks] = next(attached("regroup"), cls)
        return kind(*arguments)

    @property
    def fewest(self) -> int:
        return self.num_ranks

    def run(self, places: ThisMachine | Machines) -> int:
        """Start the ranks, again after each fault as often as asked, and return the last exit code."""
        regroup, first = partial(self.team, places), places.start(self.num_ranks)
        return run_again(self.words, first, self.launching.restarts, self.run_dir, regroup=regroup)

    def team(self, places: ThisMachine | Machines, fruitless: int) -> Team:
        """Who is started next, after some failures in a row without a new checkpoint."""
        room = places.room()
        return self.nobody(room) if room < self.fewest else Team(self.words, places.start(self.num_ranks))

    def nobody(self, room: int) -> Team:
        """No ranks: it is looked again after the next pause."""
        return Team(self.words, partial(_nobody, room=room, fewest=self.fewest))


def parsed(command: Any, words: list[str]) -> dict[str, Any]:
    """The parameters that click's command `train` finds in its words."""
    return command.make_context(words[0], words[1:], resilient_parsing=True).params


def argument_place(command: Any, words: list[str], value: str) -> int:
    """Index of the argument PARTS among the words of `train`: an option's value may be the same text."""
    for place, word in enumerate(words):
        changed = [*words[:place], f"{value}?", *words[place + 1 :]]
        if word == value and parsed(command, changed).get("parts") == f"{value}?":
            return place
    raise InputError(f"cannot find the partition folder {value} among the arguments of train")


def _nobody(words: list[str], room: int, fewest: int) -> int:
    say(f"there are machines for {room} ranks, and {fewest} are needed: waiting")
    return LOST


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
