"""How much of the graph a training step is on: all of it, or cluster batches; and stages of a run with either.

--batch cluster:32                                   every epoch is a pass of 32 steps
--batch cluster:32 --stages cluster:8,full:20        8 such passes, then 20 epochs of one exact step each
"""

import re
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from distgnn.config.options.option import documented, option
from distgnn.errors import InputError

NUM_STRATA = 64
CLUSTER, FULL = "cluster", "full"
EXACT = "cluster batches need algorithm cd-0 and float32 on the wire: which rows are late is theirs to say"
OWNERS = "cluster batches need update on owners: leave --update out"
SUMS = "cluster batches run layers of distgnn.nn that add up rows of neighbours, {} does not: choose --batch full"

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
    strata: int = _training(NUM_STRATA, "Groups of vertex clusters; a cluster batch has a micro-part of each.")
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
        return [self._stage(text.strip()) for text in self.stages.split(",")]

    def _stage(self, text: str) -> Stage:
        found = re.fullmatch(r"(cluster|full):([1-9]\d{0,8})", text)
        if found is None:
            raise InputError(f"stages has {text!r}: expected epochs of each kind, such as cluster:8,full:20")
        if found[1] == CLUSTER and not self.num_batches:
            raise InputError("stages has cluster batches: say how many steps a pass has, --batch cluster:M")
        return Stage(self.num_batches if found[1] == CLUSTER else 0, int(found[2]))

    def check_batch(self) -> None:
        """Raise InputError for the first setting that makes no sense, alone or beside others of a TrainConfig."""
        stages = self.stage_list(1)
        if self.strata < 1:
            raise InputError(f"strata is {self.strata}: expected at least 1")
        if not self.num_batches:
            if not self.history or self.strata != NUM_STRATA:
                name = "strata" if self.history else "no-history"
                raise InputError(f"--{name} is about cluster batches: add --batch cluster:M")
            return
        if not any(stage.num_batches for stage in stages):
            raise InputError(f"stages is {self.stages} and has no cluster batches: leave --batch out")
        self._check_beside()

    def _check_beside(self) -> None:
        config: Any = self
        refused = {
            f"task {config.task}": config.task != "node",
            "--inductive": config.inductive,
            "--verify-every": config.verify_every,
            "--optimizer kfac": config.optimizer == "kfac",
        }
        for name, given in refused.items():
            if given:
                raise InputError(f"cluster batches do not go with {name}: choose --batch full")


def check_batches_beside(model: Any, exact: bool, update: str) -> None:
    """Raise InputError for settings of a model (a ModelConfig) and a run that cluster batches do not go with.

    Args: exact: are exchanges synchronous and whole; update: "owners" or "copies".
    """
    if not exact:
        raise InputError(EXACT)
    if update != "owners":
        raise InputError(OWNERS)
    if model.by_arc:
        raise InputError(SUMS.format(model.name + " with --weighted" * model.weighted))
    if model.label_reuse:
        raise InputError("cluster batches do not go with label reuse: choose --batch full")
