"""Adam through torch's functional form.

`torch.optim.Adam` does the same arithmetic, but making one imports torch's compiler: 1.4 s at the start of every rank.
"""

import torch
from torch import nn
from torch.optim.adam import adam


class Adam:
    """Adam with L2 weight decay.

    Args:
        parameters: those that are trained; their `.grad` must be there at each step.
        lr, weight_decay: learning rate (may be set between steps) and L2 penalty.

    Source: Kingma and Ba, ICLR'15.
    """

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float = 0.0):
        self.lr, self.weight_decay = lr, weight_decay
        self.parameters = parameters
        self.means = [torch.zeros_like(parameter) for parameter in parameters]
        self.squares = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps = [torch.zeros(()) for _ in parameters]

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter along its gradient."""
        adam(
            list[torch.Tensor](self.parameters),
            [parameter.grad for parameter in self.parameters if parameter.grad is not None],
            self.means,
            self.squares,
            [],
            self.steps,
            foreach=False,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.lr,
            weight_decay=self.weight_decay,
            eps=1e-8,
            maximize=False,
        )

    def follow(self, rate: float, _loss: float | None) -> None:
        """After an epoch: the learning rate of the next one."""
        self.lr = rate

    def state(self) -> dict[str, torch.Tensor]:
        """Means, squares and step counts by name, as a checkpoint keeps them; the tensors are not copied."""
        columns = {"mean": self.means, "square": self.squares, "steps": self.steps}
        return {f"{name}.{i}": tensor for name, tensors in columns.items() for i, tensor in enumerate(tensors)}

    @torch.no_grad()
    def load_state(self, state: dict[str, torch.Tensor]) -> None:
        """Take over what `state` gave; names and shapes must be the same."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
