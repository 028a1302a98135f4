"""What of PyG asks for the arcs of the whole graph on one rank, and what to write instead.

A transform that changes columns runs on a cut graph (`graph/face/data_access.py`); one that changes arcs is refused,
and so is every transform of PyG that is not known to be one of columns.
"""

import functools
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import torch

from distgnn.errors import InputError

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
BY_PAIRS = "take pairs from dg.negative_edges(graph, count)"
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


def _is_cut(value: Any) -> bool:
    """The edge_index or the face of a graph that is cut, or one end of its arcs?"""
    return hasattr(value, "arcs" if isinstance(value, torch.Tensor) else "forward_arcs")


def refuses(name: str) -> Callable[..., Any]:
    """A function in front of PyG's `name` that takes no graph that is cut."""

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if any(map(_is_cut, (*args, *kwargs.values()))):
            raise InputError(f"PyG's {name} cannot run on a graph that is cut: {UTILS[name]}")
        return NotImplemented

    return refuse


@functools.cache
def put_in_front() -> None:
    """Ask each transform of PyG, before it runs on a graph that is cut, whether it is one of columns."""
    transforms = sys.modules.get("torch_geometric.transforms")
    if transforms is None:
        return
    kind: Any = transforms.BaseTransform
    call = kind.__call__

    @functools.wraps(call)
    def checked(self: Any, data: Any) -> Any:
        if not isinstance(data, torch.Tensor) and _is_cut(data):
            _check(self)
        return call(self, data)

    kind.__call__ = checked


def _check(transform: Any) -> None:
    kind = type(transform)
    if kind.__module__.startswith("torch_geometric.") and kind.__name__ not in OF_COLUMNS:
        _refuse_transform(kind.__name__)


def _refuse_transform(name: str) -> NoReturn:
    raise InputError(f"T.{name} cannot run on a graph that is cut: {TRANSFORMS.get(name, BEFORE_THE_CUT)}")
