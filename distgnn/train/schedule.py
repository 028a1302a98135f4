"""Learning-rate schedules and early stopping. They see numbers that are equal on all ranks, so ranks agree."""

import math

import torch

from distgnn.config import TrainConfig

PLATEAU_EPOCHS = 10


class LearningRate:
    """Sets the optimiser's learning rate after each epoch."""

    def __init__(self, optimizer: torch.optim.Optimizer, config: TrainConfig):
        self.schedule = config.lr_schedule
        if self.schedule == "cosine":
            self._torch = torch.optim.lr_scheduler.LambdaLR(
                optimizer, lambda epoch: 0.5 * (1 + math.cos(math.pi * min(epoch / config.epochs, 1)))
            )
        elif self.schedule == "plateau":
            self._torch = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=PLATEAU_EPOCHS)

    def step(self, loss: float) -> None:
        """After an epoch with this training loss (of the whole graph)."""
        if self.schedule == "cosine":
            self._torch.step()
        elif self.schedule == "plateau":
            self._torch.step(loss)


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

    def should_stop(self) -> bool:
        return 0 < self.patience <= self.evaluations_since
