"""Floor 7: the training loop, its losses, metrics and run folder."""

from distgnn.train.trainer import Trainer, TrainResult

__all__ = ["TrainResult", "Trainer"]
