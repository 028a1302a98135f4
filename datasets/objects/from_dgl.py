"""A graph from a DGLGraph, whose columns are asked for by name: `dgl` is not imported."""

from typing import Any

import numpy as np

from distgnn.datasets.fields import SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import DGL_NAMES, OF_EDGES, OF_NODES, is_mask_name, take_columns
from distgnn.datasets.objects.arrays import Fields, from_arcs
from distgnn.datasets.objects.from_types import from_typed_dgl, refuse_undirected
from distgnn.datasets.objects.values import as_split


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
