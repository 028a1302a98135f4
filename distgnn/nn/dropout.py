"""Dropout keyed by global vertex or arc id, as a module and as torch's function: one mask for any number of ranks."""

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from distgnn import ops
from distgnn.config import check_choice
from distgnn.errors import InputError
from distgnn.interop.pyg.tensors import ArcTensor
from distgnn.nn.conv.graph_module import GraphModule
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView
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
    def forward(self, rows: torch.Tensor, graph: GraphView | None = None) -> torch.Tensor:
        """`graph` may be left out after `distgnn.nn.distribute(model, graph)`."""
        if not self.training or self.p == 0:
            return rows
        graph = self.graph_of(graph)
        if isinstance(rows, RowTensor):
            return ops.dropout_of(graph, rows, rows.row_space.draw_ids, self.p, self._draw(graph))
        self._check(rows, graph)
        return ops.dropout(graph, rows, self.p, self._draw(graph), self.over)

    def of_ids(self, rows: torch.Tensor, ids: np.ndarray, graph: GraphView) -> torch.Tensor:
        """The same for rows that have some other global ids, int64 [rows], as rows of a type have."""
        if not self.training or self.p == 0:
            return rows
        return ops.dropout_of(graph, rows, ids, self.p, self._draw(graph))

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


# `torch.nn.functional.dropout` inside a model: masks keyed by vertex or arc, as `distgnn.nn.Dropout` has them.
#
# PyG's attention layers and most scripts for PyG drop with the function, which no swapped module would reach.
# `distribute` watches torch's functions while the model's forward pass runs. ReLU of hidden rows is ours there, too
# (`ops.relu`): it and a dropout that follows are then one pass, with one result to keep.

SITE = SITES_PER_CALL - 1  # the last number of a site: modules are numbered from 0
RELU = (functional.relu, torch.relu, torch.Tensor.relu)
FLOATS = (torch.float32, torch.float64)


class KeyedDropout(TorchFunctionMode):
    """Within, `functional.dropout` of rows of vertices or arcs draws the graph's masks."""

    def __init__(self, graph: GraphView):
        super().__init__()
        self.graph = graph

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is functional.dropout:
            return self._dropout(*args, **kwargs)
        if func in RELU and len(args) == 1 and not kwargs.get("inplace") and torch.is_grad_enabled():
            rows = args[0]  # of vertices [O, D], on the way to a loss?
            is_rows = type(rows) is torch.Tensor and rows.dim() == 2 and len(rows) == self.graph.num_nodes()
            if is_rows and rows.dtype in FLOATS and rows.requires_grad:
                return ops.relu(self.graph, rows)
        return func(*args, **kwargs)

    def _dropout(self, rows: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
        if not training or p == 0:
            return rows
        rows = rows.plain("dropout") if isinstance(rows, ArcTensor) else rows
        dim, ids = self._ids(rows)
        site = SITE + SITES_PER_CALL * self.graph.random_keys.next_call(SITE)
        if not inplace and rows.dim() == 2 and ids is self.graph.row_ids:
            return ops.dropout(self.graph, rows, p, site)
        front = rows.movedim(dim, 0)
        out = ops.dropout_of(self.graph, front, ids, p, site).movedim(0, dim)
        return rows.copy_(out) if inplace else out

    def _ids(self, rows: torch.Tensor) -> tuple[int, Any]:
        """(the dimension that counts vertices or arcs, their ids)."""
        graph: Any = self.graph
        arcs = graph.kept_arcs.get("last")
        if rows.dim() and len(rows) == graph.num_nodes():
            return 0, graph.row_ids
        if rows.dim() and arcs is not None and len(rows) == arcs.num_arcs:
            return 0, arcs.mask_ids()
        if rows.dim() > 2 and rows.size(-2) == graph.num_nodes():
            return rows.dim() - 2, graph.row_ids
        raise InputError(
            f"dropout of {list(rows.shape)} values, which are neither this rank's {graph.num_nodes()} vertices nor its "
            "arcs: use distgnn.nn.Dropout, or drop elsewhere"
        )


def watch(model: nn.Module, graph: GraphView) -> None:
    """Key the masks of `functional.dropout` in the model's forward pass by the graph."""
    mode = model.__dict__.get("_keyed_dropout")
    if mode is not None:
        mode.graph = graph
        return
    model.__dict__["_keyed_dropout"] = KeyedDropout(graph)

    def enter(module: nn.Module, args: Any) -> None:
        module.__dict__["_keyed_dropout"].__enter__()  # a copy of the model has its own

    def leave(module: nn.Module, args: Any, result: Any) -> None:
        module.__dict__["_keyed_dropout"].__exit__(None, None, None)

    model.register_forward_pre_hook(enter)
    model.register_forward_hook(leave, always_call=True)
