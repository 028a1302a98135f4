"""Graphs in memory as other libraries hold them, recognised by the name of their class: no library is imported."""

from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets.graph_data import GraphData
from distgnn.errors import InputError

KNOWN = (
    "a GraphData, a dgl.DGLGraph, a PyG Data, a NetworkX graph, a square scipy sparse matrix, or edges as an array or "
    "tensor [E, 2] or [2, E]"
)


def as_graph_data(graph: Any, **fields: Any) -> GraphData:
    """A checked graph from an object of DGL, PyG, NetworkX, scipy, numpy or torch.

    Args:
        graph: a `GraphData` (returned as it is, checked), `dgl.DGLGraph`, PyG `Data`, NetworkX graph, square scipy
            sparse matrix (`weighted=True` takes its values), or edges as `GraphData.from_arrays` takes them.
        fields: fields of GraphData that replace or add to what the object holds, and `directed`. All but NetworkX
            graphs, which say it themselves, are taken as directed: an undirected graph that stores both arcs of each
            edge gives the same messages that way.
    Raises: InputError for any other object.
    """
    if isinstance(graph, GraphData):
        if fields:
            raise InputError("a GraphData is taken as it is: set its fields instead of giving them here")
        return graph.check()
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(graph).__mro__}
    if "dgl.DGLGraph" in kinds:
        return GraphData.from_dgl(graph, **fields)
    if kinds & {"torch_geometric.Data", "torch_geometric.HeteroData"}:
        return GraphData.from_pyg(graph, **fields)
    if "networkx.Graph" in kinds:
        return GraphData.from_networkx(graph, **fields)
    if scipy.sparse.issparse(graph):
        return GraphData.from_scipy(graph, **fields)
    if isinstance(graph, np.ndarray | list | tuple) or "torch.Tensor" in kinds:
        return GraphData.from_arrays(graph, **fields)
    raise InputError(f"no graph can be made of a {type(graph).__name__}; give {KNOWN}")
