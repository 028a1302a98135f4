"""PyGInterface: what scripts for PyG ask of a `Data` object, on one rank's owned vertices and local arcs."""

import sys
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distgnn.interop.pyg.tensors import ArcIndex

INSTEAD = {  # what a PyG Data or HeteroData has and a DistGraph cannot have, and what to do
    "edge_index": "layers of PyG take rows of all ranks, load the graph without plain_tensors=True",
    "adj_t": "give layers the graph or graph.edge_index, and edge_weight by itself",
    **dict.fromkeys(
        ("x_dict", "edge_index_dict", "edge_attr_dict", "metadata"),
        "this graph has one vertex set: dg.load of a HeteroData's parts has types, RGCNConv takes graph.edge_type",
    ),
}


def register(graph: Any) -> None:
    """Tell PyG of a graph, if the process has loaded PyG; else the first use of its `edge_index` does."""
    if "torch_geometric.nn.conv" in sys.modules:
        from distgnn.interop.pyg import dispatch

        dispatch.register(graph)


def arc_index(graph: Any) -> "ArcIndex":
    """The `edge_index` of all arcs of a graph, kept."""
    from distgnn.interop.pyg import functions  # noqa: F401 - fills the table of functions
    from distgnn.interop.pyg.arc_set import ArcSet
    from distgnn.interop.pyg.dispatch import register
    from distgnn.interop.pyg.tensors import ArcIndex

    if "edge_index" not in graph.kept_arcs:
        register(graph)
        graph.kept_arcs["edge_index"] = ArcIndex.of(ArcSet(graph))
    return graph.kept_arcs["edge_index"]


class PyGInterface:
    """The columns of `torch_geometric.data.Data` under PyG's names, as a base class of DistGraph.

    x [O, D], y [O] or [O, C] (labels, or values of a regression), train_mask, val_mask, test_mask [O], edge_weight [A],
    edge_attr [A, De], edge_type [A] and node_type [O] are this rank's share; `edge_index` is of rows of all ranks only.
    """

    feats: Any
    labels: Any
    node_values: Any

    @cached_property
    def kept_arcs(self) -> dict[Any, Any]:
        """Sets of arcs and normalisations that layers ask for again and again."""
        return {}

    @property
    def y(self) -> Any:
        """Labels of owned vertices; without any, the values that a regression predicts."""
        return self.node_values if self.labels is None else self.labels

    x: Any = property(attrgetter("feats"))
    val_mask: Any = property(attrgetter("valid_mask"))
    node_type: Any = property(attrgetter("node_types"))
    edge_attr: Any = property(lambda graph: graph.edata.get("feat"))
    edge_type: Any = property(lambda graph: graph.edata.get("etype"))
