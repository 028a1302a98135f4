"""A graph as DGL's and PyG's objects."""

from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets.arc_data import arc_feats, arc_relations
from distgnn.datasets.edge_list import EdgeList, make_edge_list
from distgnn.datasets.fields import GraphFields
from distgnn.datasets.names.field_names import DGL_NAMES, PYG_NAMES
from distgnn.system.other_libraries import import_dgl, import_pyg


def to_dgl(graph: GraphFields, edge_list: EdgeList | None) -> Any:
    """See `GraphData.to_dgl`."""
    dgl = import_dgl()

    arcs, of_vertices, of_arcs = _columns(graph, edge_list)
    result = dgl.graph(arcs, num_nodes=int(graph.num_nodes))
    result.edata.update({DGL_NAMES[key]: column for key, column in of_arcs.items()})
    result.ndata.update({DGL_NAMES[key]: column for key, column in of_vertices.items()})
    return result


def to_pyg(graph: GraphFields, edge_list: EdgeList | None) -> Any:
    """See `GraphData.to_pyg`."""
    torch_geometric = import_pyg()
    import torch

    arcs, of_vertices, of_arcs = _columns(graph, edge_list)
    columns = {PYG_NAMES[key]: column for key, column in (of_vertices | of_arcs).items()}
    return torch_geometric.data.Data(edge_index=torch.stack(arcs).long(), num_nodes=int(graph.num_nodes), **columns)


def _columns(graph: GraphFields, edge_list: EdgeList | None) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """(sources and targets of arcs, columns of vertices, columns of arcs) as tensors, columns by name of the field."""
    import torch

    edge_list = edge_list or make_edge_list(graph, "stored", "keep")
    sources, targets, arc_ids = edge_list.arcs()
    of_vertices: dict[str, Any] = {}
    of_arcs: dict[str, Any] = {}
    if edge_list.edge_weight is not None and len(arc_ids):
        of_arcs["edge_weight"] = torch.tensor(edge_list.edge_weight[arc_ids % edge_list.num_edges])
    if graph.edge_feats is not None:
        of_arcs["edge_feats"] = torch.from_numpy(arc_feats(graph, edge_list, arc_ids))
    if graph.edge_types is not None:
        of_arcs["edge_types"] = torch.from_numpy(arc_relations(graph, edge_list, arc_ids)).long()
    values = (graph.node_values, np.float32) if graph.labels is None else (graph.labels, np.int64)
    dense = graph.feats.toarray() if scipy.sparse.issparse(graph.feats) else graph.feats
    columns = {"node_types": (graph.node_types, np.int64), "feats": (dense, np.float32), "labels": values}
    for name, (column, dtype) in columns.items():
        if column is not None:
            of_vertices[name] = torch.tensor(np.asarray(column, dtype=dtype))
    of_vertices |= {name: torch.from_numpy(mask) for name, mask in graph.split_masks().items()}
    return (torch.tensor(sources), torch.tensor(targets)), of_vertices, of_arcs
