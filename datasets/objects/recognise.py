"""Graphs in memory as other libraries hold them, recognised by the name of their class: no library is imported."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.objects.from_frame import is_frame
from distgnn.datasets.objects.values import sparse_matrix
from distgnn.errors import InputError

KNOWN = (
    "a GraphData, a dgl.DGLGraph, a PyG Data, a NetworkX graph, a square sparse matrix of scipy or torch, a table of "
    "edges (pandas, polars), edges as an array or tensor [E, 2] or [2, E], a tuple (edge_index, x, y), or a dict of "
    "edge_index, x, y, …"
)


def as_graph_data(graph: Any, findings: Findings | None = None, **fields: Any) -> GraphData:
    """A checked graph from an object of DGL, PyG, NetworkX, scipy, pandas, numpy or torch.

    Args:
        graph: a `GraphData` (returned as it is, checked), `dgl.DGLGraph`, PyG `Data`, NetworkX graph, square sparse
            matrix of scipy or torch (`weighted=True` takes its values), a table with the columns source and target, or
            edges as `GraphData.from_arrays` takes them; a dict of edges (`edge_index`, `edges` or `adjacency`) and
            fields (`x`, `y`, `train_mask`, …), each an array or the path of a file; a tuple (edge_index, x, y) or
            (edge_index, x); a data set of PyG or DGL that is one graph, or a list of one graph.
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
    if isinstance(graph, Mapping) and not hasattr(graph, "nnz"):  # scipy's DOK matrix is a dict too
        graph, fields = _with_files(_edges_of(graph), _fields_of(graph) | fields, found)
    elif _is_index_and_columns(graph):
        graph, fields = graph[0], dict(zip(("x", "y"), graph[1:], strict=False)) | fields
    graph = _only_graph(graph)
    made = _reader(graph)(graph, findings=found, **fields)
    if findings is None:
        found.warn(made.name, stacklevel=2)
    return made


EDGES = ("edge_index", "edges", "adjacency", "adj")


def _edges_of(content: Mapping[str, Any]) -> Any:
    found = [name for name in EDGES if name in content]
    if len(found) != 1:
        given = ", ".join(repr(name) for name in [*(found or content)][:9]) or "nothing"
        raise InputError(f"a graph as a dict has its edges under one of {', '.join(EDGES)}: this one has {given}")
    return content[found[0]]


def _fields_of(content: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in content.items() if name not in EDGES}


def _with_files(edges: Any, fields: dict[str, Any], findings: Findings) -> tuple[Any, dict[str, Any]]:
    """Edges and fields, those that are paths read."""
    from distgnn.datasets.files.columns import WORDS, read_column, read_edges

    if isinstance(edges, str | Path):
        edges, found = read_edges(edges, findings)
        fields = found | fields
    paths = {name: file for name, file in fields.items() if isinstance(file, str | Path) and name not in WORDS}
    return edges, fields | {name: read_column(name, file) for name, file in paths.items()}


def _is_index_and_columns(graph: Any) -> bool:
    """Is this (edge_index, x) or (edge_index, x, y), as arrays or tensors? Two columns of ids are edges."""
    kinds = [getattr(one, "ndim", 0) for one in graph] if isinstance(graph, tuple) else []
    return len(kinds) in (2, 3) and kinds[:2] == [2, 2] and kinds[2:] in ([], [1], [2])


def _only_graph(graph: Any) -> Any:
    """The graph of a data set or of a list that has one; anything else as it is."""
    if isinstance(graph, list) and graph and _is_graph_object(graph[0]):
        if len(graph) != 1:
            raise InputError(f"this list has {len(graph)} graphs: give one of them, or all as one batch")
        return graph[0]
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(graph).__mro__}
    if not kinds & {"torch_geometric.Dataset", "dgl.DGLDataset"}:
        return graph
    if len(graph) != 1:
        raise InputError(f"{type(graph).__name__} has {len(graph)} graphs: give one of them, or all as one batch")
    return graph[0]


def _advice(graph: Any) -> str:
    """What to give in place of an object that is no graph."""
    kinds = {kind.__name__ for kind in type(graph).__mro__}
    if kinds & {"DataLoader", "Sampler", "BaseSampler", "LightningDataModule"}:
        return "it gives batches, and here each step is on the whole graph: give the graph that it was made of"
    if "Module" in kinds:
        return "it is a model, and the graph comes first: fit(graph, model)"
    return f"give {KNOWN}"


def _is_graph_object(one: Any) -> bool:
    """Is this an object of PyG's, DGL's or NetworkX's, no list of ids?"""
    kinds = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(one).__mro__}
    return bool(kinds & {"dgl.DGLGraph", "torch_geometric.Data", "torch_geometric.HeteroData", "networkx.Graph"})


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
    raise InputError(f"no graph can be made of a {type(graph).__name__}; {_advice(graph)}")
