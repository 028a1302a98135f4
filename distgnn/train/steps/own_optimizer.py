"""What the trainer and checkpoints ask of the program's own optimisers."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from distgnn.config import TrainConfig


class OwnOptimizer:
    """An optimiser whose state is tensors, a few for each parameter.

    Args:
        parameters: those that are trained; their `.grad` must be there at each step.
        lr, weight_decay: learning rate (may be set between steps) and penalty.

    Notes: a subclass sets `name`, one of `OPTIMIZERS` and the name of its file in a checkpoint, and says in `columns`
        what it keeps.
    """

    weight_decay: float
    lr: float

    name = ""

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float = 0.0):
        self.lr, self.weight_decay = lr, weight_decay
        self.parameters = parameters

    @classmethod
    def of(cls, parameters: list[nn.Parameter], config: TrainConfig) -> "OwnOptimizer":
        """The optimiser as the settings of a run say."""
        return cls(parameters, config.lr, config.weight_decay)

    def watch(self, model: nn.Module, graph: Any, say: Callable[[str], None]) -> None:
        """Before the first step: the model, the graph it trains on, and how to tell the user something. Collective."""

    def begin(self) -> None:
        """Before the forward pass of a step."""

    def step(self) -> None:
        """Move every parameter along its gradient."""
        raise NotImplementedError

    def columns(self) -> dict[str, Sequence[torch.Tensor]]:
        """What is kept between steps, by name: one tensor for each parameter."""
        raise NotImplementedError

    @property
    def gradients(self) -> list[torch.Tensor]:
        """The gradients of all parameters."""
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def follow(self, rate: float, _loss: float | None) -> None:
        """After an epoch: the learning rate of the next one."""
        self.lr = rate

    def state(self) -> dict[str, torch.Tensor]:
        """What a checkpoint keeps, by name; the tensors are not copied."""
        return {f"{name}.{i}": tensor for name, tensors in self.columns().items() for i, tensor in enumerate(tensors)}

    def state_like(self, _found: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What a checkpoint must have to be loaded, in names, shapes and dtypes; `_found`: what it has."""
        return self.state()

    @torch.no_grad()
    def load_state(self, state: dict[str, torch.Tensor]) -> None:
        """Take over what `state` gave; names and shapes must be the same."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
