"""The program's own optimisers: what the trainer and checkpoints ask of them, and Adam, AdamW and SGD.

Steps are torch's functional forms. `torch.optim.Adam` does the same arithmetic, but making one imports torch's
compiler: 1.4 s at the start of every rank. Fused: one pass over memory for all parameters, where torch's other forms
take seven. A step of a cluster batch is short beside a first layer of thousands of columns.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import nn
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from distgnn.config import TrainConfig

MOMENTUM = 0.9


class OwnOptimizer:
    """An optimiser whose state is tensors, a few for each parameter; every `.grad` must be there at each step.

    Notes: a subclass sets `name`, one of `OPTIMIZERS` and the name of its file in a checkpoint, and says in `columns`
        what it keeps.
    """

    name = ""

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float = 0.0):
        self.lr: float = lr
        self.weight_decay: float = weight_decay
        self.parameters = parameters

    @classmethod
    def of(cls, parameters: list[nn.Parameter], config: TrainConfig) -> "OwnOptimizer":
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
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def follow(self, rate: float, _loss: float | None) -> None:
        self.lr = rate

    @property
    def names(self) -> dict[str, Any]:
        """What is not the program's own: a resumed run must have the same."""
        return {}

    def objects(self) -> dict[str, Any]:
        """States that are no tensors alone: none."""
        return {}

    def load_objects(self, state: dict[str, Any]) -> None:
        """Take over what `objects` gave."""

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


class Adam(OwnOptimizer):
    """Adam with L2 weight decay. Source: Kingma and Ba, ICLR'15."""

    name = "adam"
    _move: ClassVar[Callable[..., None]] = staticmethod(adam)

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float = 0.0):
        super().__init__(parameters, lr, weight_decay)
        self.means: list[torch.Tensor] = [torch.zeros_like(parameter) for parameter in parameters]
        self.squares: list[torch.Tensor] = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps: list[torch.Tensor] = [torch.zeros(()) for _ in parameters]

    @torch.no_grad()
    def step(self) -> None:
        self._move(
            list[torch.Tensor](self.parameters), self.gradients, self.means, self.squares, [], self.steps,
            foreach=False, fused=True, amsgrad=False, beta1=0.9, beta2=0.999, lr=self.lr,
            weight_decay=self.weight_decay, eps=1e-8, maximize=False,
        )  # fmt: skip

    def columns(self) -> dict[str, Sequence[torch.Tensor]]:
        return {"mean": self.means, "square": self.squares, "steps": self.steps}


class AdamW(Adam):
    """Adam whose weight decay shrinks the weights themselves. Source: Loshchilov and Hutter, ICLR'19."""

    name = "adamw"
    _move: ClassVar[Callable[..., None]] = staticmethod(adamw)


class SGD(OwnOptimizer):
    """v ← 0.9 v + gradient + weight decay · w;  w ← w − lr · v."""

    name = "sgd"

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float = 0.0):
        super().__init__(parameters, lr, weight_decay)
        self.velocities: list[torch.Tensor] = [torch.zeros_like(parameter) for parameter in parameters]

    @torch.no_grad()
    def step(self) -> None:
        sgd(
            list[torch.Tensor](self.parameters), self.gradients, list[torch.Tensor | None](self.velocities),
            foreach=False, weight_decay=self.weight_decay, momentum=MOMENTUM, lr=self.lr, dampening=0.0,
            nesterov=False, maximize=False,
        )  # fmt: skip

    def columns(self) -> dict[str, Sequence[torch.Tensor]]:
        return {"velocity": self.velocities}
