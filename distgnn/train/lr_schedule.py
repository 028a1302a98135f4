"""Learning-rate schedules and early stopping. They see numbers that are equal on all ranks, so ranks agree."""

import math
from dataclasses import dataclass
from typing import Any

from distgnn.config import TrainConfig
from distgnn.errors import RunError

PLATEAU_EPOCHS = 10  # without a fall of the training loss, then the rate is halved
LEAST_FALL = 1e-4  # relative
WARMUP_SHARE, DECAY_SHARE = 0.1, 0.2  # of the epochs: wsd (warm-up, stable, decay)
UP_SHARE, LOWEST_START, LOWEST_END = 0.3, 1 / 25, 1 / 25e4  # one-cycle, as torch's OneCycleLR


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
    """Linearly up to 1, there for most epochs, and linearly down.

    Source: Hu et al., MiniCPM, 2024.
    """
    warmup, decay = (max(1, math.ceil(share * epochs)) for share in (WARMUP_SHARE, DECAY_SHARE))
    return max(0.0, min(1.0, (epoch + 1) / warmup, (epochs - epoch) / decay))


SHAPES = {"cosine": cosine, "one-cycle": one_cycle, "wsd": warmup_stable_decay}  # of the rate, from epoch and epochs


class LearningRate:
    """The learning rate of the next epoch, from the epochs so far."""

    def __init__(self, config: TrainConfig):
        self.config = config
        self.value: float = self._shaped(0)
        self._best_loss, self._epochs_since = math.inf, 0

    def after(self, epoch: int, loss: float) -> float:
        """The rate for epoch + 1, after an epoch with this training loss (of the whole graph)."""
        if self.config.lr_schedule in SHAPES:
            self.value = self._shaped(epoch + 1)
        elif self.config.lr_schedule == "plateau" and loss < self._best_loss * (1 - LEAST_FALL):
            self._best_loss, self._epochs_since = loss, 0
        elif self.config.lr_schedule == "plateau":
            self._epochs_since += 1
            if self._epochs_since > PLATEAU_EPOCHS:
                self.value, self._epochs_since = self.value / 2, 0
        return self.value

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps; numbers are finite."""
        best = self._best_loss if math.isfinite(self._best_loss) else None
        return {"value": self.value, "best_loss": best, "epochs_since": self._epochs_since}

    def load_state(self, state: dict[str, Any]) -> None:
        self.value = _number(state["value"])
        self._best_loss = math.inf if state["best_loss"] is None else _number(state["best_loss"])
        self._epochs_since = int(_number(state["epochs_since"]))

    def _shaped(self, epoch: int) -> float:
        """The rate of an epoch that follows from its number alone."""
        shape = SHAPES.get(self.config.lr_schedule)
        return self.config.lr if shape is None else self.config.lr * shape(epoch, self.config.epochs)


SMOOTHED = 3  # evaluations whose mean has to rise: validation swings


class EarlyStopping:
    """Remembers the best evaluation, and counts those since the mean of the last few was best. Without a validation
    metric the last one is best, and nothing stops."""

    def __init__(self, patience: int):
        self.patience = patience
        self.best_epoch: int = 0
        self.best_value: float = -math.inf
        self.best_mean: float = -math.inf
        self.evaluations_since: int = 0
        self._last: list[float] = []

    def is_best(self, epoch: int, value: float | None) -> bool:
        """Is this evaluation better than all before? (Ties go to the earlier one.)"""
        if value is None:
            self.best_epoch, self.evaluations_since = epoch, 0
            return True
        self._last = [*self._last, value][-SMOOTHED:]
        mean = math.fsum(self._last) / len(self._last)
        self.evaluations_since = 0 if mean > self.best_mean else self.evaluations_since + 1
        self.best_mean = max(self.best_mean, mean)
        if value <= self.best_value:
            return False
        self.best_epoch, self.best_value = epoch, value
        return True

    def state(self) -> dict[str, Any]:
        best, mean = (value if math.isfinite(value) else None for value in (self.best_value, self.best_mean))
        kept = {"best_epoch": self.best_epoch, "best_value": best, "evaluations_since": self.evaluations_since}
        return kept | {"best_mean": mean, "last": [*self._last]}

    def load_state(self, state: dict[str, Any]) -> None:
        self.best_epoch = int(_number(state["best_epoch"]))
        self.best_value = -math.inf if state["best_value"] is None else _number(state["best_value"])
        self.evaluations_since = int(_number(state["evaluations_since"]))
        self.best_mean = -math.inf if state["best_mean"] is None else _number(state["best_mean"])
        self._last = [_number(value) for value in state["last"]][-SMOOTHED:]

    def should_stop(self) -> bool:
        return 0 < self.patience <= self.evaluations_since


@dataclass
class Schedules:
    """What changes from epoch to epoch besides weights: the learning rate and early stopping."""

    learning_rate: LearningRate
    stopping: EarlyStopping

    def state(self) -> dict[str, Any]:
        return {"learning_rate": self.learning_rate.state(), "stopping": self.stopping.state()}

    def load_state(self, state: dict[str, Any]) -> None:
        """Go on from the `state` of a checkpoint. Raises: RunError where it is damaged."""
        try:
            self.learning_rate.load_state(state["learning_rate"])
            self.stopping.load_state(state["stopping"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise RunError(f"the checkpoint's schedules are damaged: {error}") from error


def _number(value: Any) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return value
