"""PyGInterface: what scripts for PyG ask of a `Data` object, on one rank's owned vertices and local arcs."""

import sys
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from distgnn.interop.pyg.tensors import ArcIndex

NORMS_OVER_VERTICES = (  # of torch_geometric.nn.norm, beside those that have a norm of torch inside
    *("GraphNorm", "PairNorm", "InstanceNorm", "LayerNorm", "MeanSubtractionNorm", "GraphSizeNorm"),
    "HeteroBatchNorm",
)

INSTEAD = {  # what a PyG Data or HeteroData has and a DistGraph cannot have, and what to do
    "adj_t": "give layers the graph or graph.edge_index, and edge_weight by itself",
    **dict.fromkeys(
        ("x_dict", "edge_index_dict", "edge_attr_dict", "metadata"),
        "this graph has one vertex set: dg.load of a HeteroData's parts has types, RGCNConv takes graph.edge_type",
    ),
}


def works_per_rank(module: torch.nn.Module) -> bool:
    """Is this a norm of PyG whose statistics would be over one rank's vertices?"""
    kind = type(module)
    if not kind.__module__.startswith("torch_geometric.nn.norm.") or kind.__name__ not in NORMS_OVER_VERTICES:
        return False
    return not (kind.__name__ == "LayerNorm" and getattr(module, "mode", "") == "node")


def register(graph: Any) -> None:
    """Tell PyG of a graph, if the process has loaded PyG; else the first use of its `edge_index` does."""
    if "torch_geometric.nn.conv" in sys.modules:
        from distgnn.interop.pyg import dispatch

        dispatch.register(graph)


def arc_index(graph: Any, rows: bool) -> "ArcIndex":
    """The `edge_index` of all arcs of a graph, kept; rows: its rows are of all ranks (`distgnn.rows`)."""
    from distgnn.interop.pyg import functions  # noqa: F401 - fills the table of functions
    from distgnn.interop.pyg.arc_set import ArcSet
    from distgnn.interop.pyg.dispatch import register
    from distgnn.interop.pyg.tensors import ArcIndex

    key = "edge_index", rows
    if key not in graph.kept_arcs:
        register(graph)
        graph.kept_arcs[key] = ArcIndex.of(ArcSet(graph, rows=rows))
    return graph.kept_arcs[key]


class PyGInterface:
    """The columns of `torch_geometric.data.Data` under PyG's names, as a base class of DistGraph.

    x [O, D], y [O] or [O, C] (labels, or values of a regression), train_mask, val_mask, test_mask [O], edge_weight [A],
    edge_attr [A, De], edge_type [A] and node_type [O] are this rank's share; `edge_index` stands for the arcs of all
    ranks.
    """

    feats: Any
    labels: Any
    node_values: Any
    valid_mask: Any
    edata: Any
    node_types: Any

    @property
    def edge_index(self) -> "ArcIndex":
        """What PyG's layers and models take for `edge_index`: see `interop/pyg/tensors.py`."""
        return arc_index(self, rows=False)

    @cached_property
    def kept_arcs(self) -> dict[Any, Any]:
        """Sets of arcs and normalisations that layers ask for again and again."""
        return {}

    @property
    def x(self) -> Any:
        return self.feats

    @property
    def y(self) -> Any:
        """Labels of owned vertices; without any, the values that a regression predicts."""
        return self.node_values if self.labels is None else self.labels

    @property
    def val_mask(self) -> torch.Tensor:
        return self.valid_mask

    @property
    def edge_attr(self) -> torch.Tensor | None:
        return self.edata.get("feat")

    @property
    def edge_type(self) -> torch.Tensor | None:
        return self.edata.get("etype")

    @property
    def node_type(self) -> torch.Tensor | None:
        return self.node_types
