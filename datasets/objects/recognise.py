"""Graphs in memory as other libraries hold them, recognised by the name of their class: no library is imported."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.objects.from_frame import is_frame
from distgnn.datasets.objects.values import sparse_matrix
from distgnn.errors import InputError

KNOWN = (
    "a GraphData, a dgl.DGLGraph, a PyG Data, a NetworkX graph, a square sparse matrix of scipy or torch, a table of "
    "edges (pandas, polars), or edges as an array or tensor [E, 2] or [2, E]"
)


def as_graph_data(graph: Any, findings: Findings | None = None, **fields: Any) -> GraphData:
    """A checked graph from an object of DGL, PyG, NetworkX, scipy, pandas, numpy or torch.

    Args:
        graph: a `GraphData` (returned as it is, checked), `dgl.DGLGraph`, PyG `Data`, NetworkX graph, square sparse
            matrix of scipy or torch (`weighted=True` takes its values), a table with the columns source and target, or
            edges as `GraphData.from_arrays` takes them.
        findings: where what was found is written down; without it one Python warning says it.
        fields: fields of GraphData that replace or add to what the object holds, and `directed`. All but NetworkX
            graphs, which say it themselves, are taken as directed: an undirected graph that stores both arcs of each
            edge gives the same messages that way.
    Raises: InputError for any other object.
    """
    if isinstance(graph, GraphData):
        if fields:
            raise InputError("a GraphData is taken as it is: set its fields instead of giving them here")
        return (graph if findings is None else replace(graph, findings=findings)).check()
    found = Findings() if findings is None else findings
    made = _reader(graph)(graph, findings=found, **fields)
    if findings is None:
        found.warn(made.name, stacklevel=2)
    return made


def _reader(graph: Any) -> Callable[..., GraphData]:
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(graph).__mro__}
    if "dgl.DGLGraph" in kinds:
        return GraphData.from_dgl
    if kinds & {"torch_geometric.Data", "torch_geometric.HeteroData"}:
        return GraphData.from_pyg
    if "networkx.Graph" in kinds:
        return GraphData.from_networkx
    if sparse_matrix(graph) is not None:
        return GraphData.from_scipy
    if is_frame(graph) or isinstance(graph, np.ndarray | list | tuple) or "torch.Tensor" in kinds:
        return GraphData.from_arrays
    raise InputError(f"no graph can be made of a {type(graph).__name__}; give {KNOWN}")
