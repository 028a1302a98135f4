"""A trainer with K-FAC, three layers and new factors every three steps."""

from trainers import trainer_of

from distgnn.config import ModelConfig
from distgnn.train import Trainer


def make(graph, model="sage", *, sizes=None, own=None, **config) -> Trainer:
    options = {"optimizer": "kfac", "epochs": 10, "eval_every": 5, "kfac_every": 3} | config
    return trainer_of(graph, ModelConfig(model, **{"hidden_feats": 8, "num_layers": 3} | (sizes or {})), own, **options)


def losses(trainer: Trainer) -> list[float]:
    return trainer.fit().losses
