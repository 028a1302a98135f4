"""What of PyG asks for the arcs of the whole graph on one rank: exact over all ranks, or refused with what to write.

As PyG wrote them, utilities about all arcs would take one rank's arcs for the graph: wrong numbers, or ranks that wait
for each other. Those that are not here run on the tensors of `tensors.py`, where what a rank cannot know is refused.

A transform that changes columns runs on a cut graph (`graph/face/data_access.py`); one that changes arcs is refused,
and so is every transform of PyG that is not known to be one of columns.
"""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError
from distgnn.interop.pyg.tensors import ArcIndex, local_in

OF_COLUMNS = (  # transforms that give what they give on one process
    *("NormalizeFeatures", "RandomNodeSplit", "Constant", "IndexToMask", "MaskToIndex", "RemoveTrainingClasses"),
    *("ToDevice", "Compose", "ComposeFilters"),
)
BEFORE_THE_CUT = "transform the graph before it is cut, dg.GraphData.from_pyg(transform(data)), and partition it"
TRANSFORMS = {
    "ToUndirected": "cut it with direction='both' (distgnn partition --direction both)",
    "ToSparseTensor": "leave it out and give layers data.edge_index",
    "AddSelfLoops": "leave it out: layers add their own; or cut it with self_loops='add'",
    "RemoveSelfLoops": "cut it with self_loops='remove' (distgnn partition --self-loops remove)",
    "GCNNorm": "leave it out: GCNConv normalises by itself",
    "RandomLinkSplit": "cut it with link_split (distgnn partition --link-split 0.05,0.1) and take graph.edge_pairs",
}
BY_PAIRS = "draw pairs of ids, torch.randint(data.num_nodes, (2, count))"
PART_ONLY = "take it before the graph is cut, on the Data that dg.GraphData.from_pyg reads"
UTILS = {
    **dict.fromkeys(("negative_sampling", "batched_negative_sampling", "structured_negative_sampling"), BY_PAIRS),
    "to_undirected": "cut the graph with direction='both' (distgnn partition --direction both)",
    **dict.fromkeys(("coalesce", "sort_edge_index", "add_random_edge", "remove_isolated_nodes"), BEFORE_THE_CUT),
    **dict.fromkeys(("subgraph", "k_hop_subgraph", "bipartite_subgraph"), "mask rows, x[mask], or " + PART_ONLY),
    **dict.fromkeys(("dropout_node", "dropout_path"), "drop arcs with dropout_edge, or rows with a mask"),
    **dict.fromkeys(
        ("to_dense_adj", "to_scipy_sparse_matrix", "to_torch_coo_tensor", "to_torch_csr_tensor", "to_torch_csc_tensor"),
        "multiply by the adjacency with dg.ops.spmm(graph, x), or a layer with data.edge_index",
    ),
    **dict.fromkeys(("to_networkx", "to_networkit", "to_dgl", "get_ppr", "assortativity"), PART_ONLY),
    "is_undirected": "write data.is_undirected()",
    "contains_isolated_nodes": "write data.has_isolated_nodes()",
    "train_test_split_edges": TRANSFORMS["RandomLinkSplit"],
}


PLACE = "torch_geometric.utils."
BEFORE = "compute it on the whole graph before partitioning, in one process"


def _is_cut(value: Any) -> bool:
    """The edge_index or the face of a graph that is cut, or one end of its arcs?"""
    names = ("arcs",) if isinstance(value, torch.Tensor) else ("forward_arcs", "relations_of")
    return any(hasattr(value, name) for name in names)


def _refuses(name: str) -> Callable[..., Any]:
    """A function in front of PyG's `name` that takes no graph that is cut."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if any(map(_is_cut, (*args, *kwargs.values()))):
            found = _sorted_arcs(name, *args, **kwargs) if name in SORTS else None
            if found is not None:
                return found
            raise InputError(f"PyG's {name} cannot run on a graph that is cut: {UTILS[name]}")
        return NotImplemented

    return refuse


SORTS = ("to_undirected", "coalesce", "sort_edge_index")


def _sorted_arcs(name: str, edge_index: Any, edge_attr: Any = "none", *_: Any, **options: Any) -> Any:
    """What these give where all they do is to sort the arcs. Collective: yes."""
    whole = isinstance(edge_index, ArcIndex) and edge_index.arcs.is_whole
    if not whole or isinstance(edge_attr, torch.Tensor | list | tuple) or not options.keys() <= {"num_nodes", "reduce"}:
        return None
    data = _sorted(name, edge_index.arcs.graph.face)
    return data if data is None else (data.edge_index, None) if edge_attr is None else data.edge_index


def _sorted(name: str, data: Any) -> Any:
    """A graph, where a function or transform of arcs changes no more than their order; else None. Collective: yes."""
    if name in ("to_undirected", "ToUndirected") and not data.is_undirected():
        return None
    return None if name != "sort_edge_index" and data.has_doubles() else data.sort()


def _unchanged(name: str, data: Any) -> Any:
    """A graph that a transform of arcs would leave as it is, but for their order; None for others. Collective: yes."""
    if name == "RemoveSelfLoops":
        return None if data.has_self_loops() else copy.copy(data)
    return None if len(data.edge_attrs()) > 1 else _sorted(name, data)


def check_transform(self: Any, data: Any) -> Any:
    """In front of each transform of PyG: is it one of columns?"""
    name = type(self).__name__
    is_theirs = type(self).__module__.startswith("torch_geometric.") and name not in OF_COLUMNS
    if is_theirs and not isinstance(data, torch.Tensor) and _is_cut(data):
        known = name in ("ToUndirected", "RemoveSelfLoops", "RemoveDuplicatedEdges") and hasattr(data, "has_doubles")
        found = _unchanged(name, data) if known else None
        if found is not None:
            return found
        raise InputError(f"T.{name} cannot run on a graph that is cut: {TRANSFORMS.get(name, BEFORE_THE_CUT)}")
    return NotImplemented


def _sums(index: ArcIndex, *numbers: float) -> Any:
    return sum_over_ranks(index.arcs.graph.transport.comm, np.array(numbers, dtype=np.float64))


def _contains_self_loops(edge_index: Any) -> Any:
    if not isinstance(edge_index, ArcIndex):
        return NotImplemented
    arcs = edge_index.arcs
    return bool(_sums(edge_index, (arcs.ids("source") == arcs.ids("target")).sum().item())[0])


def _homophily(edge_index: Any, y: Any, batch: Any = None, method: str = "edge") -> Any:
    if not isinstance(edge_index, ArcIndex):
        return NotImplemented
    if batch is not None or method not in ("edge", "node"):
        asked = f"homophily(method={method!r}{', batch' * (batch is not None)})"
        raise InputError(f"{PLACE}{asked} cannot run on the edge_index of a DistGraph: {BEFORE}")
    arcs = edge_index.arcs
    rows = local_in(y, arcs, "source").view(-1).double()
    alike = (arcs.spread(rows, "source") == arcs.spread(rows, "target")).double()
    values = alike if method == "edge" else arcs.mean(alike, edge_index.roles[1])
    total, count = _sums(edge_index, values.sum().item(), len(values))
    return float(total / count)


FUNCTIONS: dict[str, tuple[str, Callable[..., Any]]] = {  # name -> (the module of PyG that has it, ours)
    **{name: ("torch_geometric.utils", _refuses(name)) for name in UTILS},
    "homophily": (f"{PLACE}_homophily", _homophily),
    "contains_self_loops": (f"{PLACE}loop", _contains_self_loops),
}
