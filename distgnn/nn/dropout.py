"""Dropout keyed by global vertex or arc id: one mask for any number of ranks."""

import numpy as np
import torch
from torch import nn

from distgnn import ops
from distgnn.config import check_choice
from distgnn.nn.conv.graph_module import GraphModule
from distgnn.ops.function import GraphView, opaque
from distgnn.rows import RowTensor

SITES_PER_CALL = 1 << 16
OVER = ("vertices", "arcs")


class Dropout(GraphModule):
    """`torch.nn.Dropout` whose mask depends on (seed, training step, site, global id, column) only.

    Args:
        p: probability of a zero.
        site: number of this place in the model; `number_sites` gives them in construction order.
        over: what rows stand for: "vertices" [O, ...], or "arcs" [A, ...] (attention, edge weights).

    Shape: [O, ...] or [A, ...] to the same.

    Notes:
        A module used several times in one step draws a mask of its own each time.

    Example:
        >>> drop = dg.nn.distribute(dg.nn.Dropout(0.5), graph)
        >>> bool((drop(graph.feats) == 0).any())
        True
        >>> bool((drop.eval()(graph.feats) == graph.feats).all())
        True
    """

    p: float
    site: int
    over: str

    def __init__(self, p: float = 0.5, site: int = 0, over: str = "vertices"):
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"dropout is {p}: expected a probability from 0 up to, but not including, 1")
        check_choice("over", over, OVER)
        self.p, self.site, self.over = p, site, over

    @opaque
    def forward(
        self, rows: torch.Tensor, graph: GraphView | None = None, ids: np.ndarray | None = None
    ) -> torch.Tensor:
        """`graph` may be left out after `distgnn.nn.distribute(model, graph)`.

        Args: ids: global ids of the rows, int64, where they are no vertices or arcs of `graph`: those of a type.
        """
        if not self.training or self.p == 0:
            return rows
        graph = self.graph_of(graph)
        if isinstance(rows, RowTensor):
            return ops.dropout_of(graph, rows, rows.row_space.draw_ids, self.p, self._draw(graph))
        if ids is not None:
            return ops.dropout_of(graph, rows, ids, self.p, self._draw(graph))
        self._check(rows, graph)
        return ops.dropout(graph, rows, self.p, self._draw(graph), self.over)

    def epilogue(self, graph: GraphView, eps: float = 1e-5) -> ops.Epilogue:
        """ReLU and this dropout, for what takes them in one pass with other things; eps is a layer norm's."""
        if not self.training or self.p == 0:
            return ops.relu_dropout(graph, eps=eps)
        return ops.relu_dropout(graph, self.p, self._draw(graph), eps)

    def _draw(self, graph: GraphView) -> int:
        """The number of the next mask of this site."""
        return self.site + SITES_PER_CALL * graph.random_keys.next_call(self.site)

    def _check(self, rows: torch.Tensor, graph: GraphView) -> None:
        sizes = {"vertices": graph.num_nodes(), "arcs": graph.num_edges()}
        if len(rows) != sizes[self.over]:
            raise ValueError(
                f"this dropout is over {sizes[self.over]} {self.over} but got {len(rows)} rows: name modules that drop "
                "rows of arcs in distgnn.nn.distribute(model, graph, arc_dropout=[...])"
            )

    def extra_repr(self) -> str:
        return f"p={self.p}, site={self.site}, over={self.over}"


def number_sites(model: nn.Module) -> None:
    """Number the dropout sites of a model in construction order."""
    sites = (module for module in model.modules() if isinstance(module, Dropout))
    for site, module in enumerate(sites):
        module.site = site
