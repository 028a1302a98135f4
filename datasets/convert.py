"""GraphData from arrays, DGL and scipy, and to DGL."""

from pathlib import Path

import numpy as np
import scipy.sparse

from distgnn.datasets.arc_data import arc_feats, arc_relations
from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.formats.folder import tidy_labels, tidy_split
from distgnn.datasets.graph_data import SPLITS, GraphData
from distgnn.datasets.pairs import halve_symmetric
from distgnn.errors import InputError
from distgnn.interop.dgl.import_dgl import import_dgl


def from_arrays(edges, num_nodes: int | None, directed: bool, fields: dict) -> GraphData:
    """See `GraphData.from_arrays`."""
    if isinstance(edges, tuple) and len(edges) == 2:
        sources, targets = (np.asarray(column) for column in edges)
        if sources.shape != targets.shape or sources.ndim != 1:
            raise InputError(
                f"edges: sources {list(sources.shape)} and targets {list(targets.shape)} must be two equal lists"
            )
        edges = np.stack([sources, targets]).T
    edges = np.asarray(edges)
    if edges.size == 0:
        edges = np.zeros((0, 2), dtype=np.int64)
    if num_nodes is None:
        num_nodes = int(edges.max(initial=-1)) + 1
    fields = dict(fields)
    name = fields.pop("name", "graph")
    if fields.get("labels") is not None:
        fields["labels"] = tidy_labels(np.asarray(fields["labels"]), Path("labels"))
    for key in SPLITS:
        if fields.get(key) is not None:
            fields[key] = _split_ids(key, np.asarray(fields[key]), num_nodes)
    for key in ("edge_weight", "edge_feats", "edge_types", "node_types"):
        if fields.get(key) is not None:
            fields[key] = np.asarray(fields[key])
    feats = fields.get("feats")
    if feats is not None:
        fields["feats"] = scipy.sparse.csr_matrix(feats) if scipy.sparse.issparse(feats) else np.asarray(feats)
    try:
        return GraphData(name, num_nodes, edges, directed, **fields).check()
    except TypeError as error:
        raise InputError(f"unknown field of a graph: {error}") from error


def _split_ids(name: str, ids: np.ndarray, num_nodes: int) -> np.ndarray:
    if ids.dtype == bool:
        if ids.shape != (num_nodes,):
            raise InputError(f"{name}: a mask must have shape [{num_nodes}], found {list(ids.shape)}")
        return np.flatnonzero(ids)
    return tidy_split(ids)


def from_dgl(graph, directed: bool, fields: dict) -> GraphData:
    """See `GraphData.from_dgl`."""
    if not graph.is_homogeneous:
        raise InputError("this DGL graph has several vertex or edge types; convert it with dgl.to_homogeneous first")
    sources, targets = (column.numpy() for column in graph.edges(order="eid"))
    taken = {"feats": "feat", "labels": "label", "train": "train_mask", "valid": "val_mask", "test": "test_mask"}
    found = {}
    for key, column in taken.items():
        if column in graph.ndata:
            values = graph.ndata[column].detach().numpy()
            found[key] = values.astype(bool) if column.endswith("_mask") else values
    found |= _types_and_edge_data(graph, directed)
    num_nodes = graph.num_nodes()
    rows = slice(None) if directed else halve_symmetric(sources, targets, num_nodes)
    return from_arrays((sources[rows], targets[rows]), num_nodes, directed, {"name": "dgl", **found, **fields})


def _types_and_edge_data(graph, directed: bool) -> dict[str, np.ndarray]:
    """Types of vertices, and of a directed graph what arcs carry; also types that `dgl.to_homogeneous` left."""
    columns = [("node_types", graph.ndata, ("ntype", "_TYPE"))]
    if directed:
        columns += [("edge_types", graph.edata, ("etype", "_TYPE"))]
        columns += [("edge_feats", graph.edata, ("feat",)), ("edge_weight", graph.edata, ("weight",))]
    found = {}
    for key, frame, names in columns:
        name = next((name for name in names if name in frame), None)
        if name is not None and (name != "_TYPE" or bool((frame[name] > 0).any())):  # one type only: no types
            found[key] = frame[name].detach().numpy()
    return found


def from_scipy(adjacency, directed: bool, weighted: bool, fields: dict) -> GraphData:
    """See `GraphData.from_scipy`."""
    if not scipy.sparse.issparse(adjacency) or adjacency.shape[0] != adjacency.shape[1]:
        raise InputError(f"expected a square scipy sparse matrix, found {type(adjacency).__name__}")
    matrix = adjacency.tocoo()
    num_nodes = matrix.shape[0]
    rows = slice(None) if directed else halve_symmetric(matrix.row, matrix.col, num_nodes)
    fields = {"name": "scipy", **fields}
    if weighted:
        if not directed and (adjacency != adjacency.T).nnz:
            raise InputError("the weights are not symmetric; load the matrix with directed=True")
        fields["edge_weight"] = matrix.data[rows].astype(np.float32)
    return from_arrays((matrix.row[rows], matrix.col[rows]), num_nodes, directed, fields)


def to_dgl(graph: GraphData, edge_list: EdgeList | None):
    """See `GraphData.to_dgl`."""
    dgl = import_dgl()
    import torch

    edge_list = edge_list or graph.edge_list()
    sources, targets, arc_ids = edge_list.arcs()
    result = dgl.graph((torch.tensor(sources), torch.tensor(targets)), num_nodes=int(graph.num_nodes))
    if edge_list.edge_weight is not None and len(arc_ids):
        result.edata["weight"] = torch.tensor(edge_list.edge_weight[arc_ids % edge_list.num_rows])
    if graph.edge_feats is not None:
        result.edata["feat"] = torch.from_numpy(arc_feats(graph, edge_list, arc_ids))
    if graph.edge_types is not None:
        result.edata["etype"] = torch.from_numpy(arc_relations(graph, edge_list, arc_ids)).long()
    if graph.node_types is not None:
        result.ndata["ntype"] = torch.tensor(np.asarray(graph.node_types, dtype=np.int64))
    if graph.feats is not None:
        dense = graph.feats.toarray() if scipy.sparse.issparse(graph.feats) else graph.feats
        result.ndata["feat"] = torch.tensor(np.asarray(dense, dtype=np.float32))
    if graph.labels is not None:
        result.ndata["label"] = torch.tensor(np.asarray(graph.labels, dtype=np.int64))
    for name, mask in graph.split_masks().items():
        result.ndata[{"train": "train_mask", "valid": "val_mask", "test": "test_mask"}[name]] = torch.from_numpy(mask)
    return result
