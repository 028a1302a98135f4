"""How far a delayed or narrowed training step is from the exact one: the same step with exact exchanges, beforehand."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import sum_over_ranks
from distgnn.train.gradients import GradientBuffer
from distgnn.train.users_model import drawing, run_model

Loss = Callable[[Any, torch.Tensor], tuple[torch.Tensor, float]]


@dataclass
class ExactStep:
    """Logits of owned rows [O, C] and summed gradients of a step whose every exchange is synchronous and whole."""

    logits: torch.Tensor
    gradients: list[torch.Tensor]

    @classmethod
    def of(
        cls,
        model: nn.Module,
        graph: Any,
        gradients: GradientBuffer,
        epoch: int,
        loss: Loss,
    ) -> "ExactStep":
        """Make the step of `epoch`, masks and all, without moving anything: weights, buffers and torch's random state
        stay as they are. Collective: yes; costs a forward and a backward pass.

        Args: loss: of (graph, logits) to the scalar for the backward pass, and a number that is not needed here.
        """
        with _unmoved(model), graph.exact_exchanges():
            graph.step = epoch
            graph.transport.start_step()
            model.train()
            gradients.zero()
            with drawing(model, graph):
                logits = run_model(model, graph)
                loss(graph, logits)[0].backward()
            gradients.sum()
        return cls(logits.detach(), [_gradient(parameter).clone() for parameter in gradients.parameters])

    def errors_of(self, logits: torch.Tensor, gradients: GradientBuffer, graph: Any) -> dict[str, float]:
        """Relative errors, Euclidean norm over all ranks, of the step that gave `logits` and summed `gradients`
        (as they were before clipping).

        Collective: yes.

        Returns: `logits_error` (owned rows) and `gradient_error`; 0 where the step was exact.
        """
        here, exact = (rows.detach()[: graph.num_owned].double() for rows in (logits, self.logits))
        mine = np.array([float(((here - exact) ** 2).sum()), float((exact**2).sum())])
        wrong, size = sum_over_ranks(graph.comm, mine)
        pairs = [
            (_gradient(p).double() / gradients.scale, exact.double())
            for p, exact in zip(gradients.parameters, self.gradients, strict=True)
        ]
        difference = sum(float(((grad - exact) ** 2).sum()) for grad, exact in pairs)
        length = sum(float((exact**2).sum()) for _, exact in pairs)
        return {"logits_error": _ratio(wrong, size), "gradient_error": _ratio(difference, length)}


@contextmanager
def _unmoved(model: nn.Module) -> Iterator[None]:
    """Buffers (running statistics) and torch's random state are put back at the end."""
    kept = {name: buffer.clone() for name, buffer in model.named_buffers()}
    random = torch.get_rng_state()
    try:
        yield
    finally:
        for name, buffer in model.named_buffers():
            buffer.copy_(kept[name])
        torch.set_rng_state(random)


def _gradient(parameter: nn.Parameter) -> torch.Tensor:
    if parameter.grad is None:
        raise RuntimeError("a gradient is missing after the sum over ranks")
    return parameter.grad


def _ratio(difference: float, size: float) -> float:
    return float(np.sqrt(difference / size)) if size else float(np.sqrt(difference))
