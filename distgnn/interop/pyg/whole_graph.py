"""PyG's utilities that are about all arcs of a graph: exact over all ranks, or refused in one line.

As PyG wrote them they would take one rank's arcs for the graph: wrong numbers, or ranks that wait for each
other. Those that are not here run on the tensors of `tensors.py`, where what a rank cannot know is refused.

Legend: O owned rows, M arcs of this rank.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError
from distgnn.interop.pyg.tensors import ArcIndex, local_in

UTILS = "torch_geometric.utils."
BEFORE = "compute it on the whole graph before partitioning, in one process"
DRAWS = "it would draw for each rank by itself: drop rows or messages with distgnn.nn.Dropout instead"
MODULES = {
    "homophily": "_homophily",
    "contains_self_loops": "loop",
    **dict.fromkeys(("dropout_adj", "dropout_edge"), "dropout"),
}
WHOLE: dict[str, str] = {name: UTILS + module for name, module in MODULES.items()}  # name -> the module that has it


def _sums(index: ArcIndex, *numbers: float) -> Any:
    graph: Any = index.arcs.graph
    return sum_over_ranks(graph.transport.comm, np.array(numbers, dtype=np.float64))


def _num_ranks(index: ArcIndex) -> int:
    graph: Any = index.arcs.graph
    return int(graph.transport.comm.size)


def _dropout(name: str) -> Callable[..., Any]:
    """A random choice of arcs. On rows of all ranks PyG's own function is right: its mask is of all arcs."""

    def dropout(edge_index: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(edge_index, ArcIndex) or edge_index.arcs.rows or _num_ranks(edge_index) == 1:
            return NotImplemented
        if not kwargs.get("training", True) or kwargs.get("p", args[0] if args else None) == 0:
            return NotImplemented
        raise InputError(f"{UTILS}{name} cannot run on the edge_index of a DistGraph on several ranks: {DRAWS}")

    return dropout


def _contains_self_loops(edge_index: Any) -> Any:
    if not isinstance(edge_index, ArcIndex):
        return NotImplemented
    arcs = edge_index.arcs
    return bool(_sums(edge_index, (arcs.ids("source") == arcs.ids("target")).sum().item())[0])


def _homophily(edge_index: Any, y: Any, batch: Any = None, method: str = "edge") -> Any:
    if not isinstance(edge_index, ArcIndex) or (_num_ranks(edge_index) == 1 and not edge_index.arcs.rows):
        return NotImplemented
    if batch is not None or method not in ("edge", "node"):
        asked = f"homophily(method={method!r}{', batch' * (batch is not None)})"
        raise InputError(f"{UTILS}{asked} cannot run on the edge_index of a DistGraph: {BEFORE}")
    arcs = edge_index.arcs
    rows = (local_in(y, arcs) if arcs.rows else y).view(-1).double()
    alike = (arcs.spread(rows, "source") == arcs.spread(rows, "target")).double()
    values = alike if method == "edge" else arcs.mean(alike, edge_index.roles[1])
    total, count = _sums(edge_index, values.sum().item(), len(values))
    return float(total / count)


OURS: dict[str, Callable[..., Any]] = {
    "homophily": _homophily,
    "contains_self_loops": _contains_self_loops,
    **{name: _dropout(name) for name in MODULES if name.startswith("dropout")},
}
