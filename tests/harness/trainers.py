"""Trainers of models by name, 8 columns wide and with weights of one seed; and runs that are stopped and go on."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from resumed import numbers, stop_after

from distgnn.config import ModelConfig, TrainConfig
from distgnn.errors import RunStopped
from distgnn.nn import model_for
from distgnn.train import Trainer


def trainer_of(graph: Any, model: ModelConfig | str = "sage", own: dict | None = None, **config: Any) -> Trainer:
    """A trainer that says nothing. Args: own: arguments of the Trainer that are objects; config: of TrainConfig."""
    torch.manual_seed(0)
    sizes = ModelConfig(model, 8) if isinstance(model, str) else model
    network = model_for(sizes, graph, config.get("task", "node"))
    own = {"say": lambda text: None} | (own or {})
    return Trainer(network, graph, TrainConfig(**{"log": None} | config), **own)


def resumed_to_the_bit(make: Callable[..., Trainer], folder: Path, stop: int) -> tuple[Trainer, Trainer]:
    """A run that was stopped after an epoch and went on, and the one that was not: their records are the same.

    Args: make: of options of TrainConfig, a trainer on a graph of its own.
    """
    whole = make(run_dir=str(folder / "whole"))
    expected, run = whole.fit(), {"run_dir": str(folder / "run")}
    stopped = make(**run)
    stopped.on_epoch = stop_after(stop)
    with pytest.raises(RunStopped, match=rf"stopped by SIGUSR1 after {stop + 2} epochs; .*--resume") as caught:
        stopped.fit()
    assert caught.value.agreed
    resumed = make(**run, resume=True)
    assert numbers(resumed.fit().records) == numbers(expected.records)
    return resumed, whole
