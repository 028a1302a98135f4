"""Learning-rate schedules and early stopping. They see numbers that are equal on all ranks, so ranks agree."""

import math
from typing import Any

from distgnn.config import TrainConfig
from distgnn.errors import RunError

WARMUP_SHARE, DECAY_SHARE = 0.1, 0.2  # of the epochs: wsd (warm-up, stable, decay)
UP_SHARE, LOWEST_START, LOWEST_END = 0.3, 1 / 25, 1 / 25e4  # one-cycle, as torch's OneCycleLR
SMOOTHED = 3  # evaluations whose mean has to rise: validation swings


def cosine(epoch: int, epochs: int) -> float:
    """Half a cosine, from 1 to 0 after the last epoch."""
    return 0.5 * (1 + math.cos(math.pi * min(epoch / epochs, 1)))


def one_cycle(epoch: int, epochs: int) -> float:
    """Half a cosine up to 1, then half a cosine down to almost nothing.

    Source: Smith and Topin, Super-Convergence, 2018; as `torch.optim.lr_scheduler.OneCycleLR`.
    """
    top = UP_SHARE * epochs - 1
    if epoch <= top:
        start, end, share = LOWEST_START, 1.0, epoch / top if top else 1.0
    else:
        start, end, share = 1.0, LOWEST_END, min((epoch - top) / (max(epochs - 1, 1) - top), 1)
    return end + (start - end) / 2 * (1 + math.cos(math.pi * share))


def warmup_stable_decay(epoch: int, epochs: int) -> float:
    """Linearly up to 1, there for most epochs, and linearly down. Source: Hu et al., MiniCPM, 2024."""
    warmup, decay = (max(1, math.ceil(share * epochs)) for share in (WARMUP_SHARE, DECAY_SHARE))
    return max(0.0, min(1.0, (epoch + 1) / warmup, (epochs - epoch) / decay))


SHAPES = {"cosine": cosine, "one-cycle": one_cycle, "wsd": warmup_stable_decay}  # of the rate, from epoch and epochs


def rate_of(config: TrainConfig, epoch: int) -> float:
    """The learning rate of an epoch."""
    shape = SHAPES.get(config.lr_schedule)
    return config.lr if shape is None else config.lr * shape(epoch, config.epochs)


class EarlyStopping:
    """Remembers the best evaluation, and counts those since the mean of the last few was best. Without a validation
    metric the last one is best, and nothing stops."""

    KEPT = ("best_epoch", "best_value", "best_mean", "evaluations_since", "last")  # in a checkpoint

    def __init__(self, patience: int):
        self.patience = patience
        self.best_epoch: int = 0
        self.best_value: float = -math.inf
        self.best_mean: float = -math.inf
        self.evaluations_since: int = 0
        self.last: list[float] = []

    def is_best(self, epoch: int, value: float | None) -> bool:
        """Is this evaluation better than all before? (Ties go to the earlier one.)"""
        if value is None:
            self.best_epoch, self.evaluations_since = epoch, 0
            return True
        self.last = [*self.last, value][-SMOOTHED:]
        mean = math.fsum(self.last) / len(self.last)
        self.evaluations_since = 0 if mean > self.best_mean else self.evaluations_since + 1
        self.best_mean = max(self.best_mean, mean)
        if value <= self.best_value:
            return False
        self.best_epoch, self.best_value = epoch, value
        return True

    def should_stop(self) -> bool:
        return 0 < self.patience <= self.evaluations_since

    @property
    def reason(self) -> str:
        since = f"{self.evaluations_since} evaluations without a better mean of {SMOOTHED} on validation"
        return f"{since}; the best weights are those of epoch {self.best_epoch + 1}"

    def state(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.KEPT}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from the `state` of a checkpoint. Raises: RunError where it is damaged."""
        for name in self.KEPT:
            value, is_list = state.get(name), isinstance(getattr(self, name), list)
            numbers = value if isinstance(value, list) else [value]
            if isinstance(value, list) != is_list or not all(type(n) in (int, float) and n == n for n in numbers):
                raise RunError(f"the checkpoint's early stopping is damaged: {name} is {str(value)[:40]}")
            setattr(self, name, value)
