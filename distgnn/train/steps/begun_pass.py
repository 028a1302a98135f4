"""The steps of a pass that are done: a run that is asked to stop within a pass goes on from there."""

import math
import time
from dataclasses import dataclass, field
from typing import Any


@dataclass
class BegunPass:
    """What the record of a pass is made of so far.

    Args: shares: of the loss, this rank's, one for each step. norms: of the gradient. seconds: of earlier processes.
    """

    shares: list[float] = field(default_factory=list)
    norms: list[float] = field(default_factory=list)
    seconds: float = 0.0
    started: float = field(default_factory=time.perf_counter)

    @property
    def steps(self) -> int:
        """How many are done."""
        return len(self.shares)

    def add(self, share: float, norm: float) -> None:
        """One step more."""
        self.shares.append(share)
        self.norms.append(norm)

    def loss(self) -> float:
        """This rank's share of the loss, the mean over steps."""
        return math.fsum(self.shares) / len(self.shares)

    def elapsed(self) -> float:
        """Seconds since the first step, without those between two processes."""
        return self.seconds + time.perf_counter() - self.started

    def state(self, comm: Any) -> dict[str, Any]:
        """What a checkpoint keeps; empty where no step is done. Collective: yes."""
        if not self.steps:
            return {}
        return {
            "shares": comm.allgather(self.shares),
            "norms": self.norms,
            "seconds": max(comm.allgather(self.elapsed())),
        }

    @classmethod
    def of(cls, state: dict[str, Any], comm: Any) -> "BegunPass":
        """From what `state` gave, on as many ranks or others.

        Raises: KeyError, TypeError, ValueError where it is damaged.
        """
        if not state:
            return cls()
        shares = [[float(share) for share in rank] for rank in state["shares"]]
        if len(shares) == comm.size:
            mine = shares[comm.rank]
        else:
            totals = [math.fsum(step) for step in zip(*shares, strict=True)]
            mine = totals if comm.rank == 0 else [0.0] * len(totals)
        return cls(mine, [float(norm) for norm in state["norms"]], float(state["seconds"]))
