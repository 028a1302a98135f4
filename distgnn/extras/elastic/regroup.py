"""Chooses the ranks and the partition folder for a restart after a fault.

| then | ranks | folder |
|---|---|---|
| all machines answer | one per part of the command's folder | that |
| machines stay away, at least `--min-ranks` are left | as many as are left | parts merged |
| ranks died twice without a new checkpoint | one less | the same |
| fewer than `--min-ranks` are left | none: it looks again after the next pause | |
"""

import os
import subprocess
import sys
from dataclasses import dataclass

from distgnn.cli.places import Machines, SameRanks, ThisMachine
from distgnn.config.extras import part_of
from distgnn.errors import DistGNNError, InputError
from distgnn.extras.elastic.extra import ElasticOptions
from distgnn.system.jobs.processes import die_with_parent
from distgnn.system.jobs.restarts import Team
from distgnn.system.launch import safe_path
from distgnn.system.output import say

TRIES = 2  # with the same ranks, from the same checkpoint


@dataclass
class Elastic(SameRanks):
    """Chooses ranks and folder of each restart."""

    changed: int = 0

    def __post_init__(self) -> None:
        self.ranks = self.num_ranks

    @property
    def fewest(self) -> int:
        return min(part_of(self.launching, ElasticOptions).min_ranks or self.num_ranks, self.num_ranks)

    def team(self, places: ThisMachine | Machines, fruitless: int) -> Team:
        """Who is started next, after some failures in a row without a new checkpoint."""
        if fruitless <= 1:  # a checkpoint was gained: whoever died may be back
            self.changed, most = 0, sys.maxsize
        else:
            most = self.ranks - (fruitless - self.changed >= TRIES)
        room = places.room()
        ranks = min(room, max(most, self.fewest), self.num_ranks)
        if ranks < self.fewest:
            return self.nobody(room)
        try:
            words = [*self.words[: self.place], self._folder(ranks), *self.words[self.place + 1 :]]
        except DistGNNError as error:
            say(f"cannot go on with {ranks} ranks: {error}")
            return self.nobody(room)
        if ranks != self.ranks:
            say(f"going on with {ranks} ranks in place of {self.ranks}, on {words[self.place]}")
            self.ranks, self.changed = ranks, fruitless
        return Team(words, places.start(ranks))

    def _folder(self, ranks: int) -> str:
        """The partition folder of these parts, made by merging where there is none yet."""
        if ranks == self.num_ranks:
            return self.words[self.place]
        folder = self.run_dir / "merged" / f"parts-{ranks}"
        if not (folder / "partition.json").is_file():
            # A process of its own: its memory is free again when ranks start.
            options = ("--parts", str(ranks), "--out", str(folder), "--merge", "--quiet")
            command = [sys.executable, "-m", "distgnn.cli", "repartition", self.words[self.place], *options]
            done = subprocess.run(command, env=os.environ | safe_path(), preexec_fn=die_with_parent(), check=False)
            if done.returncode:
                raise InputError(f"merging parts ended with exit code {done.returncode}")
        return str(folder)
