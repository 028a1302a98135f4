"""PyG's utilities that are about all arcs of a graph: exact over all ranks, or refused in one line.

As PyG wrote them they would take one rank's arcs for the graph: other numbers in silence, or ranks that wait for each
other. Those that are not here run on the tensors of `tensors.py`, where what a rank cannot know is refused.

Legend: O owned rows, M arcs of this rank.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError
from distgnn.interop.pyg.tensors import ArcEnds, ArcIndex

UTILS = "torch_geometric.utils."
BEFORE = "compute it on the whole graph before partitioning, in one process"
DRAWS = "it would draw for each rank by itself: drop rows or messages with distgnn.nn.Dropout instead"
PLACES = "its vertices are numbered within a rank: give a mask over the rows of graph.x instead of ids"


def _sums(index: ArcIndex, *numbers: float) -> Any:
    graph: Any = index.arcs.graph
    return sum_over_ranks(graph.transport.comm, np.array(numbers, dtype=np.float64))


def _num_ranks(args: Any) -> int:
    """Ranks of the graph that an argument belongs to; 0 where none is of a DistGraph."""
    found = [one.arcs.graph for one in args if isinstance(one, ArcIndex | ArcEnds)]
    return int(found[0].transport.comm.size) if found else 0


def _refuses(name: str, instead: str, where: Callable[..., bool] = lambda *_: True) -> Callable:
    """Refuses arcs of several ranks `where` its arguments say so."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if _num_ranks((*args, *kwargs.values())) > 1 and where(*args, *kwargs.values()):
            raise InputError(f"{UTILS}{name} cannot run on the edge_index of a DistGraph on several ranks: {instead}")
        return NotImplemented

    return refuse


def _dropout(name: str) -> Callable:
    """A random choice of arcs or vertices; without training, or with p = 0, there is none."""
    refuse = _refuses(name, DRAWS)

    def dropout(edge_index: Any, *args: Any, **kwargs: Any) -> Any:
        if not kwargs.get("training", True) or kwargs.get("p", args[0] if args else None) == 0:
            return NotImplemented
        return refuse(edge_index)

    return dropout


def _contains_self_loops(edge_index: Any) -> Any:
    if not isinstance(edge_index, ArcIndex):
        return NotImplemented
    arcs = edge_index.arcs
    return bool(_sums(edge_index, (arcs.ids("source") == arcs.ids("target")).sum().item())[0])


def _homophily(edge_index: Any, y: Any, batch: Any = None, method: str = "edge") -> Any:
    if not isinstance(edge_index, ArcIndex) or _num_ranks([edge_index]) == 1:
        return NotImplemented
    if batch is not None or method not in ("edge", "node"):
        return _refuses(f"homophily(method={method!r}{', batch' * (batch is not None)})", BEFORE)(edge_index)
    arcs, rows = edge_index.arcs, y.view(-1).double()
    alike = (arcs.spread(rows, "source") == arcs.spread(rows, "target")).double()
    values = alike if method == "edge" else arcs.mean(alike, edge_index.roles[1])
    total, count = _sums(edge_index, values.sum().item(), len(values))
    return float(total / count)


def _of_ids(subset: Any, *_: Any) -> bool:
    """Is a subset given by numbers, not by a mask?"""
    every = subset if isinstance(subset, tuple) else (subset,)
    return not all(isinstance(one, torch.Tensor) and one.dtype == torch.bool for one in every)


def _subgraph(name: str) -> Callable:
    return _refuses(name, PLACES, _of_ids)


MODULES = {
    "assortativity": "_assortativity",
    "homophily": "_homophily",
    "contains_self_loops": "loop",
    "subgraph": "_subgraph",
    "bipartite_subgraph": "_subgraph",
    "k_hop_subgraph": "_subgraph",
    **dict.fromkeys(("dropout_adj", "dropout_node", "dropout_edge", "dropout_path"), "dropout"),
}
WHOLE: dict[str, str] = {name: UTILS + module for name, module in MODULES.items()}  # name -> the module that has it
OURS: dict[str, Callable] = {
    "assortativity": _refuses("assortativity", BEFORE),
    "homophily": _homophily,
    "contains_self_loops": _contains_self_loops,
    "k_hop_subgraph": _refuses("k_hop_subgraph", BEFORE),
    **{name: _subgraph(name) for name in ("subgraph", "bipartite_subgraph")},
    **{name: _dropout(name) for name in MODULES if name.startswith("dropout")},
}
