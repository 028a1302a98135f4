"""Learning-rate schedules and early stopping. They see numbers that are equal on all ranks, so ranks agree."""

import math
from dataclasses import dataclass
from typing import Any

from distgnn.config import TrainConfig

PLATEAU_EPOCHS = 10  # without a fall of the training loss, then the rate is halved
LEAST_FALL = 1e-4  # relative


class LearningRate:
    """The learning rate of the next epoch, from the epochs so far."""

    def __init__(self, config: TrainConfig):
        self.config = config
        self.value = config.lr
        self._best_loss, self._epochs_since = math.inf, 0

    def after(self, epoch: int, loss: float) -> float:
        """The rate for epoch + 1, after an epoch with this training loss (of the whole graph)."""
        if self.config.lr_schedule == "cosine":
            done = min((epoch + 1) / self.config.epochs, 1)
            self.value = self.config.lr * 0.5 * (1 + math.cos(math.pi * done))
        elif self.config.lr_schedule == "plateau":
            self._halve_on_plateau(loss)
        return self.value

    def state(self) -> dict:
        """What a checkpoint keeps; numbers are finite."""
        best = self._best_loss if math.isfinite(self._best_loss) else None
        return {"value": self.value, "best_loss": best, "epochs_since": self._epochs_since}

    def load_state(self, state: dict) -> None:
        """Go on from `state`. Raises: KeyError, TypeError or ValueError where it is not one."""
        self.value = _number(state["value"])
        self._best_loss = math.inf if state["best_loss"] is None else _number(state["best_loss"])
        self._epochs_since = int(_number(state["epochs_since"]))

    def _halve_on_plateau(self, loss: float) -> None:
        if loss < self._best_loss * (1 - LEAST_FALL):
            self._best_loss, self._epochs_since = loss, 0
            return
        self._epochs_since += 1
        if self._epochs_since > PLATEAU_EPOCHS:
            self.value, self._epochs_since = self.value / 2, 0


class EarlyStopping:
    """Remembers the best evaluation and counts those since. Without a validation metric the last one is best."""

    def __init__(self, patience: int):
        self.patience = patience
        self.best_epoch, self.best_value = 0, -math.inf
        self.evaluations_since = 0

    def is_best(self, epoch: int, value: float | None) -> bool:
        """Is this evaluation better than all before? (Ties go to the earlier one.)"""
        if value is not None and value <= self.best_value:
            self.evaluations_since += 1
            return False
        self.best_epoch, self.evaluations_since = epoch, 0
        self.best_value = self.best_value if value is None else value
        return True

    def state(self) -> dict:
        """What a checkpoint keeps; numbers are finite."""
        best = self.best_value if math.isfinite(self.best_value) else None
        return {"best_epoch": self.best_epoch, "best_value": best, "evaluations_since": self.evaluations_since}

    def load_state(self, state: dict) -> None:
        """Go on from `state`. Raises: KeyError, TypeError or ValueError where it is not one."""
        self.best_epoch = int(_number(state["best_epoch"]))
        self.best_value = -math.inf if state["best_value"] is None else _number(state["best_value"])
        self.evaluations_since = int(_number(state["evaluations_since"]))

    def should_stop(self) -> bool:
        """Have there been `patience` evaluations without a better one?"""
        return 0 < self.patience <= self.evaluations_since


@dataclass
class Schedules:
    """What changes from epoch to epoch besides weights: the learning rate and early stopping."""

    learning_rate: LearningRate
    stopping: EarlyStopping

    def state(self) -> dict:
        """What a checkpoint keeps."""
        return {"learning_rate": self.learning_rate.state(), "stopping": self.stopping.state()}

    def load_state(self, state: dict) -> None:
        """Go on from `state`. Raises: KeyError, TypeError or ValueError where it is not one."""
        self.learning_rate.load_state(state["learning_rate"])
        self.stopping.load_state(state["stopping"])


def _number(value: Any) -> float | int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{value!r} is no number")
    return value
