"""Dropout keyed by global vertex id: the same mask for any number of ranks."""

import torch
from torch import nn

from distgnn import ops

SITES_PER_CALL = 1 << 16


class Dropout(nn.Module):
    """`torch.nn.Dropout` whose mask depends on (seed, training step, site, global vertex id, column) only.

    Args:
        p: probability of a zero.
        site: number of this place in the model; `number_sites` gives them in construction order.

    Shape: [O, ...] to the same.

    Notes:
        A module used several times in one step draws a mask of its own each time.
    """

    def __init__(self, p: float = 0.5, site: int = 0):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout is {p}: expected a probability from 0 up to, but not including, 1")
        self.p = p
        self.site = site
        self.graph = None

    def forward(self, rows: torch.Tensor, graph=None) -> torch.Tensor:
        """`graph` may be left out after `distgnn.nn.distribute(model, graph)`."""
        if not self.training or self.p == 0:
            return rows
        graph = graph if graph is not None else self.graph
        if graph is None:
            raise ValueError("this Dropout knows no graph: pass it, or call distgnn.nn.distribute(model, graph) first")
        return ops.dropout(graph, rows, self.p, self.site + SITES_PER_CALL * graph.next_call(self.site))

    def extra_repr(self) -> str:
        return f"p={self.p}, site={self.site}"


def number_sites(model: nn.Module) -> None:
    """Number the dropout sites of a model in construction order."""
    sites = (module for module in model.modules() if isinstance(module, Dropout))
    for site, module in enumerate(sites):
        module.site = site
