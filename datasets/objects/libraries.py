"""Graphs of DGL and PyG, whose columns are asked for by name: neither is imported."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from distgnn.datasets.fields import SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import (
    DGL_NAMES,
    OF_EDGES,
    OF_NODES,
    PYG_NAMES,
    is_mask_name,
    leave_out,
    take_columns,
)
from distgnn.datasets.objects.arrays import Fields, from_arcs
from distgnn.datasets.objects.from_types import (
    by_name,
    ends_of_arcs,
    from_hetero,
    from_tables,
    from_typed_dgl,
    refuse_undirected,
)
from distgnn.datasets.objects.values import as_array, as_split, refuse_rows_of_edges, rows_of, sparse_matrix
from distgnn.errors import InputError


def from_dgl(graph: Any, directed: bool, fields: Fields, findings: Findings) -> Fields:
    """See `GraphData.from_dgl`."""
    if not graph.is_homogeneous:
        refuse_undirected(directed)
        return from_typed_dgl(graph, fields, findings)
    sources, targets = (column.numpy() for column in graph.edges(order="eid"))
    num_nodes = graph.num_nodes()
    found = vertex_columns(_frame(graph.ndata), DGL_NAMES, num_nodes, fields, findings)
    if int(graph.batch_size) > 1 and "graph_ids" not in found:
        sizes = graph.batch_num_nodes().numpy()
        found["graph_ids"] = np.repeat(np.arange(len(sizes)), sizes)
        findings.add("read", "graph_ids", "graph_ids ← the graphs of dgl.batch", len(sizes))
    of_edges = take_columns(_frame(graph.edata), OF_EDGES, DGL_NAMES, findings, fields)
    return from_arcs((sources, targets), num_nodes, directed, {"name": "dgl", **found, **of_edges}, fields, findings)


def _frame(columns: Any) -> dict[str, Any]:
    """Name -> column, without DGL's own: ids, and types where there is only one."""
    return {
        name: column
        for name, column in columns.items()
        if name != "_ID" and not (name == "_TYPE" and not bool((column > 0).any()))
    }


def vertex_columns(
    frame: dict[str, Any], usual: dict[str, str], num_nodes: int, fields: Fields, findings: Findings
) -> Fields:
    """The fields that columns of vertices give; masks are ids by then."""
    found = take_columns(frame, OF_NODES, usual, findings, fields)
    for split in SPLITS:
        if split in found:
            name = next(name for name in (usual.get(split), *OF_NODES[split]) if name in frame)
            values = found.pop(split)
            with findings.reading(split):
                found[split] = as_split(split, values, num_nodes, is_mask_name(str(name)))
    return found


# Read otherwise, or PyG's own: nothing of the graph is lost with them.
BOOKKEEPING = ("edge_index", "adj_t", "adj", "num_nodes", "ptr")
NODES = {field: names for field, names in OF_NODES.items() if field != "node_values"}
EDGES = OF_EDGES | {"edge_weight": (*OF_EDGES["edge_weight"], "value")}


def from_pyg(data: Any, directed: bool, fields: Fields, findings: Findings) -> Fields:
    """See `GraphData.from_pyg`."""
    if hasattr(data, "node_types"):
        refuse_undirected(directed)
        return from_hetero(data, fields, findings)
    if isinstance(data.to_dict().get("edge_index_dict"), Mapping):  # OGB's typed graphs as `Data`
        return from_tables(by_name(data.to_dict()), fields, findings, "pyg")
    sources, targets, weight = _arcs(data)
    frame = {name: value for name, value in data.to_dict().items() if value is not None and name not in BOOKKEEPING}
    num_nodes, frame = _count_nodes(data, sources, targets, frame, findings)
    # Columns of edges, and of vertices and all others: by name, else by the number of rows.
    node_names = {name for names in NODES.values() for name in names}
    of_edges: dict[str, Any] = {}
    edge_names = {name for names in EDGES.values() for name in names}
    for name in [name for name in frame if name in edge_names]:
        shape = getattr(frame[name], "shape", None)
        by_rows = shape is not None and len(shape) > 0 and shape[0] == len(sources) != num_nodes
        if name not in node_names or by_rows:
            of_edges[name] = frame[name]
    of_nodes = {name: value for name, value in frame.items() if name not in of_edges}
    if isinstance(of_nodes.get("name"), str):
        del of_nodes["name"]
    if weight is not None:
        of_edges["edge_weight"] = weight
    found = vertex_columns(of_nodes, PYG_NAMES, num_nodes, fields, findings)
    found |= take_columns(of_edges, EDGES, PYG_NAMES, findings, fields)
    one_number = "edge_feats" in found and as_array(found["edge_feats"], "edge_attr").ndim == 1
    if one_number and "edge_weight" not in found and "edge_weight" not in fields:
        found["edge_weight"] = found.pop("edge_feats")  # PyG's one number per edge: a weight
    named = frame.get("name")
    name = named if isinstance(named, str) and named else "pyg"
    return from_arcs((sources, targets), num_nodes, directed, {"name": name, **found}, fields, findings)


def _arcs(data: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Sources, targets, and the values of an adjacency matrix where they are not all 1."""
    for name in ("edge_index", "adj_t", "adj"):
        edges = getattr(data, name, None)
        matrix = sparse_matrix(edges)
        if edges is None or (matrix is None and name != "edge_index"):
            continue
        if matrix is not None and matrix.shape[0] != matrix.shape[1]:
            raise InputError(f"{name} has shape {list(matrix.shape)}: expected one row and column per vertex")
        return ends_of_arcs(edges, name)
    raise InputError("this PyG graph has no edge_index and no adj_t: no edges to read")


def _count_nodes(
    data: Any, sources: np.ndarray, targets: np.ndarray, frame: dict[str, Any], findings: Findings
) -> tuple[int, dict[str, Any]]:
    """N, and the columns without those that are about whole graphs of a batch."""
    num_graphs = int(data.num_graphs) if hasattr(data, "ptr") and getattr(data, "ptr", None) is not None else 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyG guesses N where nothing says it: so do we, below
        num_nodes = int(data.num_nodes or 0)
    if num_graphs != num_nodes:
        for name in [name for name in frame if name in OF_NODES["labels"]]:
            if num_graphs and rows_of("labels", frame[name]) == num_graphs:
                leave_out(findings, name, frame.pop(name), f"one row for each of {num_graphs} graphs, not per vertex")
    if data.to_dict().get("num_nodes") is not None:
        return num_nodes, frame
    columns = [(field, name) for field, names in NODES.items() for name in names if hasattr(frame.get(name), "shape")]
    found = {field: rows_of(field, frame[name]) for field, name in columns}
    rows = {count for count in found.values() if count is not None}
    largest = int(max(sources.max(initial=-1), targets.max(initial=-1))) + 1
    adjacency = sparse_matrix(getattr(data, "adj_t", None))
    if adjacency is not None:
        return int(adjacency.shape[0]), frame
    refuse_rows_of_edges(found, largest, len(sources))
    return (next(iter(rows)) if len(rows) == 1 and max(rows) >= largest else max(num_nodes, largest)), frame
