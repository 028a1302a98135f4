"""Gradient descent with momentum, through torch's functional form (why: adam.py)."""

from collections.abc import Sequence

import torch
from torch import nn
from torch.optim.sgd import sgd

from distgnn.train.steps.own_optimizer import OwnOptimizer

MOMENTUM = 0.9


class SGD(OwnOptimizer):
    """v ← 0.9 v + gradient + weight decay · w;  w ← w − lr · v."""

    name = "sgd"

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float = 0.0):
        super().__init__(parameters, lr, weight_decay)
        self.velocities: list[torch.Tensor] = [torch.zeros_like(parameter) for parameter in parameters]

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter along its velocity."""
        sgd(
            list[torch.Tensor](self.parameters),
            self.gradients,
            list[torch.Tensor | None](self.velocities),
            foreach=False,
            weight_decay=self.weight_decay,
            momentum=MOMENTUM,
            lr=self.lr,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )

    def columns(self) -> dict[str, Sequence[torch.Tensor]]:
        """The velocities."""
        return {"velocity": self.velocities}
