"""Chooses the ranks and the partition folder for a restart after a fault.

| then | ranks | folder |
|---|---|---|
| all machines answer | one per part of the command's folder; more where a folder for more is prepared | that |
| machines stay away, at least `--min-ranks` are left | as many as are left | a prepared one, or parts merged |
| ranks died twice without a new checkpoint | one less | the same |
| fewer than `--min-ranks` are left | none: it looks again after the next pause | |

Hosts are read from their file and asked anew before each restart, so that machines come back, and others join.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from distgnn.config import LaunchConfig
from distgnn.config.run import RANKS
from distgnn.errors import DistGNNError, InputError
from distgnn.system.hosts import read_hosts
from distgnn.system.jobs.parent_death import die_with_parent
from distgnn.system.jobs.restarts import Team, run_again
from distgnn.system.jobs.run_watch import Hosts, RunWatch, answering, first_ranks, no_answer, ranks_on
from distgnn.system.jobs.supervise import LOST
from distgnn.system.launch import run_under_mpi, safe_path
from distgnn.system.output import say

TRIES = 2  # with the same ranks, from the same checkpoint
Start = Callable[[list[str]], int]


@dataclass
class ThisMachine:
    """A place for ranks: for how many there is room now, and what starts them. Here, one per part at any time."""

    num_parts: int
    threads: int | None
    run_dir: Path

    def room(self) -> int:
        return self.num_parts

    def start(self, num_ranks: int) -> Start:
        watch = partial(RunWatch, self.run_dir)
        return partial(run_under_mpi, ranks=num_ranks, threads=self.threads, graceful=True, watch=watch)


@dataclass
class Machines:
    """The machines of a file of hosts; those beyond what is needed are spare."""

    file: str
    threads: int | None
    run_dir: Path

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
        watch = partial(RunWatch, self.run_dir, self.used, say)
        return partial(run_under_mpi, ranks=self.used, threads=self.threads, graceful=True, watch=watch)


@dataclass
class Elastic:
    """Chooses ranks and folder of each restart.

    Args:
        words: the arguments of `train`; place: index of the partition folder among them; num_ranks: that the
            command needs, one or several a part.
    """

    words: list[str]
    place: int
    num_ranks: int
    launching: LaunchConfig
    run_dir: Path
    changed: int = 0

    def __post_init__(self) -> None:
        self.pattern = self.launching.parts_for or str(self.run_dir / "merged" / f"parts-{RANKS}")
        self.fewest = min(self.launching.min_ranks or self.num_ranks, self.num_ranks)
        self.ranks = self.num_ranks

    def run(self, places: ThisMachine | Machines) -> int:
        """Start the ranks, again after each fault as often as asked, and return the last exit code."""
        regroup, first = partial(self.team, places), places.start(self.num_ranks)
        return run_again(self.words, first, self.launching.restarts, self.run_dir, regroup=regroup)

    def team(self, places: ThisMachine | Machines, fruitless: int) -> Team:
        """Who is started next, after some failures in a row without a new checkpoint."""
        if fruitless <= 1:  # a checkpoint was gained: whoever died may be back
            self.changed, most = 0, sys.maxsize
        else:
            most = self.ranks - (fruitless - self.changed >= TRIES)
        room = places.room()
        most = min(room, max(most, self.fewest))
        more = (ranks for ranks in range(most, self.num_ranks, -1) if self._prepared(ranks))
        ranks = next(more, min(most, self.num_ranks))  # the most that there is a folder for, or can be made one
        nobody = Team(self.words, partial(_nobody, room=room, fewest=self.fewest))
        if ranks < self.fewest:
            return nobody
        try:
            words = [*self.words[: self.place], self._folder(ranks), *self.words[self.place + 1 :]]
        except DistGNNError as error:
            say(f"cannot go on with {ranks} ranks: {error}")
            return nobody
        if ranks != self.ranks:
            say(f"going on with {ranks} ranks in place of {self.ranks}, on {words[self.place]}")
            self.ranks, self.changed = ranks, fruitless
        return Team(words, places.start(ranks))

    def _prepared(self, ranks: int) -> bool:
        return (Path(self.pattern.replace(RANKS, str(ranks))) / "partition.json").is_file()

    def _folder(self, ranks: int) -> str:
        """The partition folder of these parts, made by merging where there is none yet."""
        if ranks == self.num_ranks:
            return self.words[self.place]
        path = self.pattern.replace(RANKS, str(ranks))
        if not self._prepared(ranks):
            # A process of its own: its memory is free again when ranks start.
            options = ("--parts", str(ranks), "--out", path, "--merge", "--quiet")
            command = [sys.executable, "-m", "distgnn.cli", "repartition", self.words[self.place], *options]
            done = subprocess.run(command, env=os.environ | safe_path(), preexec_fn=die_with_parent(), check=False)
            if done.returncode:
                raise InputError(f"merging parts ended with exit code {done.returncode}")
        return str(Path(path))


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
    say(f"there are machines for {room} ranks, and {fewest} are needed (--min-ranks): waiting")
    return LOST
