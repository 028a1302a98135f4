"""Passes beside a training step that move nothing: the step with exact exchanges, which a delayed or narrowed one is
compared with; and the pass that finds the layer where a NaN or an infinity came from.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import sum_over_ranks
from distgnn.errors import RunError, on_all_ranks
from distgnn.ops import SparseRows
from distgnn.ops.function import only_looks
from distgnn.rows import local_of
from distgnn.train.gradients import GradientBuffer
from distgnn.train.users_model import drawing, run_model

Loss = Callable[[Any, torch.Tensor], tuple[torch.Tensor, float, torch.Tensor | None]]
ExactStep = tuple[torch.Tensor, list[torch.Tensor]]  # logits of owned rows [O, C], and summed gradients


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


def exact_step(model: nn.Module, graph: Any, gradients: GradientBuffer, epoch: int, loss: Loss) -> ExactStep:
    """The step of `epoch`, masks and all, with every exchange synchronous and whole: a forward and a backward pass.
    Collective: yes."""
    with _unmoved(model), graph.exchanges.all_exact():
        graph.step = epoch
        graph.transport.start_step()
        model.train()
        gradients.zero()
        with drawing(model, graph):
            logits = run_model(model, graph)
            loss(graph, logits)[0].backward()
        gradients.sum()
    grads: list[Any] = [parameter.grad for parameter in gradients.parameters]
    return logits.detach(), [grad.clone() for grad in grads]


def step_errors(step: ExactStep, logits: torch.Tensor, gradients: GradientBuffer, graph: Any) -> dict[str, float]:
    """Relative errors, Euclidean norm over all ranks, of the step that gave `logits` and summed `gradients` (as before
    clipping): `logits_error` (owned rows) and `gradient_error`; 0 where it was exact. Collective: yes."""
    here, exact = (rows.detach()[: graph.num_owned].double() for rows in (logits, step[0]))
    mine = np.array([float(((here - exact) ** 2).sum()), float((exact**2).sum())])
    wrong, size = sum_over_ranks(graph.comm, mine)
    grads: list[Any] = [parameter.grad for parameter in gradients.parameters]
    pairs = [(grad.double() / gradients.scale, one.double()) for grad, one in zip(grads, step[1], strict=True)]
    difference = sum(float(((grad - one) ** 2).sum()) for grad, one in pairs)
    length = sum(float((one**2).sum()) for _, one in pairs)
    found = {"logits_error": (wrong, size), "gradient_error": (difference, length)}
    return {name: float(np.sqrt(one / other if other else one)) for name, (one, other) in found.items()}


def explain(model: nn.Module, graph: Any, name: str, loss: float) -> RunError:
    """The error for a step whose loss or gradient is not finite: its name, rank, and the first layer, in the order of
    the forward pass, whose output is not.

    Collective: yes; one more forward pass, exact, with the masks of the step.
    """
    graph.step = graph.step  # masks are numbered from 0 again
    outputs: list[tuple[str, bool]] = []

    def note(layer: str) -> Any:
        @only_looks
        def hook(_module: Any, _inputs: Any, output: Any) -> None:
            tensors = output if isinstance(output, tuple | list) else (output,)
            finite = all(bool(torch.isfinite(local_of(tensor)).all()) for tensor in tensors if torch.is_tensor(tensor))
            outputs.append((layer, finite))

        return hook

    hooks = [module.register_forward_hook(note(layer)) for layer, module in model.named_modules() if layer]
    try:
        with torch.no_grad(), _unmoved(model), drawing(model, graph):
            model.train()
            run_model(model, graph)
    finally:
        for hook in hooks:
            hook.remove()
    bad = next((place for place, (_, finite) in enumerate(outputs) if not finite), len(outputs))
    places = graph.comm.allgather((bad, outputs[bad][0] if bad < len(outputs) else ""))
    rows = graph.feats.values if isinstance(graph.feats, SparseRows) else graph.feats
    feats = graph.comm.allgather(rows is not None and not bool(torch.isfinite(torch.as_tensor(rows)).all()))
    broken = next((weight for weight, p in model.named_parameters() if not bool(torch.isfinite(p).all())), None)
    rank = min(range(len(places)), key=lambda rank: places[rank][0])
    if any(feats):
        where = f"the input features on rank {feats.index(True)} are not finite"
    elif broken:
        where = f"the weights {broken} were not finite before the step"
    elif places[rank][1]:
        where = f"it began in layer {places[rank][1]} on rank {rank}; lower --lr, or check the features"
    else:
        where = "every layer's output is finite, so it began in the loss or the gradient; lower --lr"
    error = RunError(f"the loss is {loss} in {name}: {where}")
    on_all_ranks(error)
    return error
