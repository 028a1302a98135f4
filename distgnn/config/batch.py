"""How much of the graph a training step is on: all of it, or cluster batches; and stages of a run with either.

--batch cluster:32                                   every epoch is a pass of 32 steps
--batch cluster:32 --stages cluster:8,full:20        8 such passes, then 20 epochs of one exact step each
"""

import re
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from distgnn.config.option import documented, option
from distgnn.config.together import NUM_STRATA
from distgnn.errors import InputError

CLUSTER, FULL = "cluster", "full"

_training = partial(option, panel="Training")


class Stage(NamedTuple):
    """Epochs of one kind: `num_batches` steps each; 0: one step on the whole graph."""

    num_batches: int
    epochs: int


@documented
@dataclass(kw_only=True)
class BatchConfig:
    """What a training step is on. Part of `TrainConfig`."""

    batch: str = _training(
        "full",
        "full: each epoch is one step on the whole graph. With cluster:M it is M steps, on one of M micro-parts of "
        "every stratum of the vertex clusters.",
    )
    history: bool = _training(
        True,
        "In cluster batches: last rows of vertices outside the batch are used; without, arcs from them are left out "
        "(Cluster-GCN).",
    )
    strata: int = _training(NUM_STRATA, "Groups of vertex clusters; a cluster batch has a micro-part of each.", least=1)
    stages: str | None = _training(
        None,
        "Epochs of each kind in turn, in place of --epochs, such as cluster:8,full:20; the optimiser goes on.",
        default_text="all epochs as --batch",
    )

    @property
    def num_batches(self) -> int:
        """M of `cluster:M`; 0 for the full batch. Raises: InputError for another text."""
        kind, _, number = self.batch.partition(":")
        if self.batch == FULL:
            return 0
        if kind != CLUSTER or not re.fullmatch(r"[1-9]\d{0,8}", number):
            raise InputError(f"batch is {self.batch!r}: expected full, or cluster:M with the number of steps of a pass")
        return int(number)

    def stage_list(self, epochs: int) -> list[Stage]:
        """The stages in turn; without any, all `epochs` are of one. Raises: InputError for a text that is none."""
        if self.stages is None:
            return [Stage(self.num_batches, epochs)]
        stages = []
        for text in map(str.strip, self.stages.split(",")):
            found = re.fullmatch(r"(cluster|full):([1-9]\d{0,8})", text)
            if found is None:
                raise InputError(f"stages has {text!r}: expected epochs of each kind, such as cluster:8,full:20")
            if found[1] == CLUSTER and not self.num_batches:
                raise InputError("stages has cluster batches: say how many steps a pass has, --batch cluster:M")
            stages.append(Stage(self.num_batches if found[1] == CLUSTER else 0, int(found[2])))
        return stages
