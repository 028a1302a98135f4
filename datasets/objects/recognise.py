"""Graphs in memory as other libraries hold them, recognised by the name of their class: no library is imported."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.ogb import split_of_ogb
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.names.field_names import KEYWORDS, leave_out
from distgnn.datasets.objects.arrays import is_frame
from distgnn.datasets.objects.from_types import by_name
from distgnn.datasets.objects.values import sparse_matrix
from distgnn.errors import InputError

KNOWN = (
    "a GraphData, a dgl.DGLGraph, a PyG Data, a NetworkX graph, a square sparse matrix of scipy or torch, a table of "
    "edges (pandas, polars), edges as an array or tensor [E, 2] or [2, E], a tuple (edge_index, x, y), a dict of "
    "edge_index, x, y, …, or a dict of types and relations (GraphData.from_types)"
)
SAID = ("name", "task", "arc_order")  # words that are no files
EDGES = ("edge_index", "edges", "adjacency", "adj")
GRAPHS = {  # class of a graph -> its reader
    "dgl.DGLGraph": "from_dgl",
    "torch_geometric.Data": "from_pyg",
    "torch_geometric.HeteroData": "from_pyg",
    "networkx.Graph": "from_networkx",
}


def as_graph_data(graph: Any, findings: Findings | None = None, **fields: Any) -> GraphData:
    """A checked graph from an object of DGL, PyG, NetworkX, scipy, pandas, numpy or torch.

    Args:
        graph: a `GraphData` (returned as it is, checked), what `KNOWN` has, a dict of two tables (`edges`, and `nodes`
            with names of its columns `id`, `label` and `split`), a data set of PyG, DGL or OGB that is one graph, or a
            list of one. Columns in a dict, and tables, may be paths of files. OGB's data set has its split.
        findings: where what was found is written down; without it one Python warning says it.
        fields: fields of GraphData that replace or add to what the object holds, and `directed`. All but NetworkX
            graphs, which say it themselves, are taken as directed.
    Raises: InputError for any other object.
    """
    if isinstance(graph, GraphData):
        if fields:
            raise InputError("a GraphData is taken as it is: set its fields instead of giving them here")
        return (graph if findings is None else replace(graph, findings=findings)).check()
    found = Findings() if findings is None else findings
    if isinstance(graph, tuple):  # (edge_index, x) or (edge_index, x, y); two columns of ids are edges
        dims = [getattr(one, "ndim", 0) for one in graph]
        if len(dims) in (2, 3) and dims[:2] == [2, 2] and dims[2:] in ([], [1], [2]):
            graph, fields = graph[0], dict(zip(("x", "y"), graph[1:], strict=False)) | fields
    kinds = _kinds(graph)
    splits = hasattr(graph, "get_idx_split") or hasattr(graph, "get_edge_split")
    of_ogb = splits and hasattr(graph, "__len__") and hasattr(graph, "__getitem__")
    of_one = of_ogb or bool(kinds & {"torch_geometric.Dataset", "dgl.DGLDataset"})
    if of_one or _is_list_of_graphs(graph):
        if len(graph) != 1:
            what = f"{type(graph).__name__} has" if of_one else f"this {type(graph).__name__} has"
            raise InputError(f"{what} {len(graph)} graphs: give one of them, or all as one batch")
        fields = split_of_ogb(graph, fields) if of_ogb else fields
        graph = graph[0]
    if isinstance(graph, tuple) and len(graph) == 2 and (_kinds(graph[0]) & GRAPHS.keys() or _is_dict(graph[0])):
        graph, labels = graph  # as OGB's data sets give them
        of_one, fields = True, {"y": labels} | fields
    typed = _is_dict(graph) and any(isinstance(key, tuple) for key in graph)
    if typed or (_is_dict(graph) and isinstance(graph.get("edge_index_dict"), Mapping)):
        graph, typed = graph if typed else by_name(graph), True
    elif _is_dict(graph):
        given = {name: value for name, value in graph.items() if value is not None}
        for name in [name for name in given if of_one and name not in (*KEYWORDS, *EDGES, "num_nodes")]:
            leave_out(found, name, given.pop(name))
        graph, fields = _of_dict(given, fields, found)
    kinds = _kinds(graph)
    reader = next((getattr(GraphData, reader) for kind, reader in GRAPHS.items() if kind in kinds), None)
    if typed:
        reader = GraphData.from_types
    elif reader is None and sparse_matrix(graph) is not None:
        reader = GraphData.from_scipy
    elif reader is None:
        if not (is_frame(graph) or isinstance(graph, np.ndarray | list | tuple) or "torch.Tensor" in kinds):
            raise InputError(f"no graph can be made of a {type(graph).__name__}; {_advice(graph)}")
        reader = GraphData.from_arrays
    made = reader(graph, findings=found, **fields)
    if findings is None:
        found.warn(made.name, stacklevel=2)
    return made


def _is_list_of_graphs(one: Any) -> bool:
    return isinstance(one, list | tuple) and len(one) > 0 and all(_kinds(graph) & GRAPHS.keys() for graph in one)


def _is_dict(one: Any) -> bool:
    return isinstance(one, Mapping) and not hasattr(one, "nnz")  # scipy's DOK matrix is a dict too


def _kinds(one: Any) -> set[str]:
    """The classes of an object, each with its library."""
    return {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(one).__mro__}


def _of_dict(content: Mapping[str, Any], fields: dict[str, Any], findings: Findings) -> tuple[Any, dict[str, Any]]:
    """Edges and fields of a dict, those that are paths read."""
    from distgnn.datasets.files.kinds import read_column, read_edges
    from distgnn.datasets.files.node_table import read_two_tables

    found = [name for name in EDGES if name in content]
    if len(found) != 1:
        given = ", ".join(repr(name) for name in [*(found or content)][:9]) or "nothing"
        raise InputError(f"a graph as a dict has its edges under one of {', '.join(EDGES)}: this one has {given}")
    edges = content[found[0]]
    if content.get("nodes") is not None:
        content = {**content}
        edges, of_tables = read_two_tables(edges, content, findings)
        return edges, of_tables | {name: value for name, value in content.items() if name not in EDGES} | fields
    fields = {name: value for name, value in content.items() if name not in EDGES} | fields
    if isinstance(edges, str | Path):
        edges, of_edges = read_edges(edges, findings)
        fields = of_edges | fields
    paths = {name: file for name, file in fields.items() if isinstance(file, str | Path) and name not in SAID}
    return edges, fields | {name: read_column(name, file) for name, file in paths.items()}


def _advice(graph: Any) -> str:
    """What to give in place of an object that is no graph."""
    kinds = {kind.__name__ for kind in type(graph).__mro__}
    if kinds & {"DataLoader", "Sampler", "BaseSampler", "LightningDataModule"}:
        return "it gives batches, and here each step is on the whole graph: give the graph that it was made of"
    if "Module" in kinds:
        return "it is a model, and the graph comes first: fit(graph, model)"
    return f"give {KNOWN}"
