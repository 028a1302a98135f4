"""Parameters and gradients over ranks: one broadcast at the start, one summed buffer per step."""

import numpy as np
import torch
from torch import nn

from distgnn.comm import sum_over_ranks


class GradientBuffer:
    """All gradients of a model in one flat buffer, summed over ranks in one message.

    Every parameter's `.grad` is a view of the buffer, so nothing is packed or unpacked.

    Collective: the constructor (broadcasts the parameters of rank 0), `sum`.

    Args:
        model: with the same parameters, in the same order, on every rank.
        comm: communicator of the graph.
    """

    def __init__(self, model: nn.Module, comm):
        self.comm = comm
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self._groups = [_Group(same) for same in _by_dtype(self.parameters)]
        for tensor in [*model.parameters(), *model.buffers()]:
            values = tensor.detach().contiguous().numpy().copy()
            comm.Bcast(values, root=0)
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(values))

    def zero(self) -> None:
        """Before the backward pass: gradients to zero, in place."""
        for group in self._groups:
            group.reset()

    def sum(self) -> None:
        """After the backward pass: each gradient becomes its sum over ranks, the same bits on each."""
        if self.comm.size > 1:
            for group in self._groups:
                group.gather_strays()
                group.flat[:] = sum_over_ranks(self.comm, group.flat)


class _Group:
    """The parameters of one dtype."""

    def __init__(self, parameters: list[nn.Parameter]):
        self.parameters = parameters
        self.flat = np.zeros(sum(p.numel() for p in parameters), parameters[0].detach().numpy().dtype)
        ends = np.cumsum([p.numel() for p in parameters])
        views = zip(parameters, np.split(self.flat, ends[:-1]), strict=True)
        self.views = [torch.from_numpy(part).view(p.shape) for p, part in views]
        self.reset()

    def reset(self) -> None:
        self.flat[:] = 0
        for parameter, view in zip(self.parameters, self.views, strict=True):
            parameter.grad = view

    def gather_strays(self) -> None:
        """Copy back gradients that something replaced instead of adding to."""
        for parameter, view in zip(self.parameters, self.views, strict=True):
            if parameter.grad is not view:
                view.zero_() if parameter.grad is None else view.copy_(parameter.grad)
                parameter.grad = view


def _by_dtype(parameters: list[nn.Parameter]) -> list[list[nn.Parameter]]:
    groups: dict[torch.dtype, list[nn.Parameter]] = {}
    for parameter in parameters:
        groups.setdefault(parameter.dtype, []).append(parameter)
    return list(groups.values())
