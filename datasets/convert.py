"""The fields of a graph from arrays, DGL, PyG, NetworkX and scipy, and a graph to DGL and PyG.

None of these libraries is imported to read its objects: they are asked for their arrays.
Each `from_…` returns field name -> value; `GraphData.from_fields` makes and checks the graph.
"""

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets.arc_data import arc_feats, arc_relations
from distgnn.datasets.edge_list import EdgeList, make_edge_list
from distgnn.datasets.fields import ARRAYS, SPLITS, GraphFields
from distgnn.datasets.names.attributes import read_attributes, warn_of_the_rest, warn_of_values
from distgnn.datasets.pairs import halve_symmetric
from distgnn.datasets.tidy import mask_hint, tidy_labels, tidy_split
from distgnn.errors import InputError
from distgnn.interop.dgl.import_dgl import import_dgl
from distgnn.interop.pyg.import_pyg import import_pyg

Fields = dict[str, Any]
# Field -> what the vertices of DGL's and PyG's graphs call it.
DGL_COLUMNS = {"feats": "feat", "labels": "label", "train": "train_mask", "valid": "val_mask", "test": "test_mask"}
PYG_COLUMNS = DGL_COLUMNS | {"feats": "x", "labels": "y", "node_types": "node_type"}


def as_array(values: Any) -> np.ndarray:
    """A numpy array of a list, an array or a torch tensor (bfloat16, which numpy lacks, becomes float32)."""
    if not hasattr(values, "detach"):
        return np.asarray(values)
    tensor = values.detach().cpu()
    return np.asarray((tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy())


def from_arrays(edges: Any, num_nodes: int | None, directed: bool, fields: Fields) -> Fields:
    """See `GraphData.from_arrays`."""
    edges = edge_pairs(edges)
    if edges.dtype.kind not in "iuf":
        raise InputError(
            f"edges: expected integer vertex ids, found {edges.dtype}; dg.renumber(edges) makes them of any ids"
        )
    if num_nodes is None:
        num_nodes = int(edges.max(initial=-1)) + 1
    found = {key: value for key, value in fields.items() if value is not None}
    if "labels" in found:
        found["labels"] = tidy_labels(as_array(found["labels"]), Path("labels"))
    for key in SPLITS:
        if key in found:
            found[key] = _split_ids(key, as_array(found[key]), num_nodes)
    for key in ARRAYS:
        if key in found:
            found[key] = as_array(found[key])
    if "feats" in found:
        feats = found["feats"]
        found["feats"] = scipy.sparse.csr_matrix(feats) if scipy.sparse.issparse(feats) else as_array(feats)
    return {"name": "graph", **found, "num_nodes": num_nodes, "edges": edges, "directed": directed}


def edge_pairs(edges: Any) -> np.ndarray:
    """Edges as [E, 2]. [2, E] is turned, except [2, 2], which cannot be told from two edges and is left as it is."""
    if isinstance(edges, tuple) and len(edges) == 2:
        sources, targets = (as_array(column) for column in edges)
        if sources.shape != targets.shape or sources.ndim != 1:
            raise InputError(
                f"edges: sources {list(sources.shape)} and targets {list(targets.shape)} must be two equal lists"
            )
        edges = np.stack([sources, targets]).T
    edges = as_array(edges)
    if edges.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    is_edge_index = edges.ndim == 2 and edges.shape[0] == 2 and edges.shape[1] != 2
    return edges.T if is_edge_index else edges


def _split_ids(name: str, ids: np.ndarray, num_nodes: int) -> np.ndarray:
    if ids.dtype == bool:
        if ids.shape != (num_nodes,):
            hint = mask_hint(ids, num_nodes)
            raise InputError(f"{name}: a mask must have shape [{num_nodes}], found {list(ids.shape)}{hint}")
        return np.flatnonzero(ids)
    return tidy_split(ids)


def from_dgl(graph: Any, directed: bool, fields: Fields) -> Fields:
    """See `GraphData.from_dgl`."""
    if not graph.is_homogeneous:
        raise InputError("this DGL graph has several vertex or edge types; convert it with dgl.to_homogeneous first")
    sources, targets = (column.numpy() for column in graph.edges(order="eid"))
    found: Fields = {}
    for key, column in DGL_COLUMNS.items():
        if column in graph.ndata:
            values = as_array(graph.ndata[column])
            found[key] = values.astype(bool) if column.endswith("_mask") else values
    _rename_values(found)
    found |= _types_and_edge_data(graph, directed)
    num_nodes = graph.num_nodes()
    kept = slice(None) if directed else halve_symmetric(sources, targets, num_nodes)
    return from_arrays((sources[kept], targets[kept]), num_nodes, directed, {"name": "dgl", **found, **fields})


def _types_and_edge_data(graph: Any, directed: bool) -> Fields:
    """Types of vertices, and of a directed graph what arcs carry; also types that `dgl.to_homogeneous` left."""
    columns: list[tuple[str, Any, tuple[str, ...]]] = [("node_types", graph.ndata, ("ntype", "_TYPE"))]
    if directed:
        columns += [("edge_types", graph.edata, ("etype", "_TYPE"))]
        columns += [("edge_feats", graph.edata, ("feat",)), ("edge_weight", graph.edata, ("weight",))]
    found: Fields = {}
    for key, frame, names in columns:
        name = next((name for name in names if name in frame), None)
        if name is not None and (name != "_TYPE" or bool((frame[name] > 0).any())):  # one type only: no types
            found[key] = as_array(frame[name])
    return found


def from_pyg(data: Any, directed: bool, fields: Fields) -> Fields:
    """See `GraphData.from_pyg`."""
    if hasattr(data, "node_types") and data.edge_types:
        data = _one_vertex_set(data)
    if getattr(data, "edge_index", None) is None or hasattr(data, "node_types"):
        raise InputError("this PyG graph has no edge_index (a transform may have made it an adj_t: give that to scipy)")
    index = as_array(data.edge_index)
    if index.ndim != 2 or len(index) != 2:
        raise InputError(f"edge_index has shape {list(index.shape)}: expected [2, M], sources and targets")
    sources, targets = index
    columns = dict(PYG_COLUMNS)
    if directed:
        columns |= {"edge_types": "edge_type", "edge_weight": "edge_weight", "edge_feats": "edge_attr"}
    found: Fields = {}
    for key, column in columns.items():
        values = getattr(data, column, None)
        if values is not None:
            found[key] = as_array(values)
    _rename_values(found)
    if "edge_feats" in found and found["edge_feats"].ndim == 1:  # PyG's one number per edge: a weight
        found.setdefault("edge_weight", found["edge_feats"])
        del found["edge_feats"]
    num_nodes = int(data.num_nodes)
    kept = slice(None) if directed else halve_symmetric(sources, targets, num_nodes)
    return from_arrays((sources[kept], targets[kept]), num_nodes, directed, {"name": "pyg", **found, **fields})


def _rename_values(found: Fields) -> None:
    """Labels with fractions are `node_values`."""
    if "labels" in found and not _are_classes(found["labels"]):
        found["node_values"] = found.pop("labels")


def _are_classes(labels: np.ndarray) -> bool:
    """Are these whole numbers, or NaN for none? Other floats are values of a regression."""
    return labels.dtype.kind != "f" or not np.any(np.isfinite(labels) & (labels != np.rint(labels)))


def _one_vertex_set(data: Any) -> Any:
    """A HeteroData as one vertex set with types: zeros where a type has no features, no label where it has none."""
    _check_relations(data)
    widths = sorted({store.x.shape[1] for store in data.node_stores if getattr(store, "x", None) is not None})
    if len(widths) > 1:
        raise InputError(f"this HeteroData has features of widths {widths}: bring its vertex types to one width first")
    merged = data.to_homogeneous()
    if getattr(merged, "x", None) is not None:
        merged.x = merged.x.nan_to_num(nan=0.0)
    if getattr(merged, "y", None) is not None and merged.y.is_floating_point() and _are_classes(as_array(merged.y)):
        merged.y = merged.y.nan_to_num(nan=-1.0).long()
    return merged


def _check_relations(data: Any) -> None:
    """Raise InputError where a relation ends at a vertex type that is not there, or has not what others have."""
    for relation in data.edge_types:
        for name in {relation[0], relation[2]} - set(data.node_types):
            raise InputError(
                f"relation {relation} of this HeteroData ends at {name!r}, of which nothing is known: set "
                f"data[{name!r}].num_nodes, or give it features"
            )
    for column in ("edge_weight", "edge_attr"):
        without = [relation for relation in data.edge_types if getattr(data[relation], column, None) is None]
        if without and len(without) < len(data.edge_types):
            raise InputError(
                f"relation {without[0]} of this HeteroData has no {column} and others have: give it to all or to none"
            )


def from_networkx(graph: Any, weighted: bool | None, fields: Fields) -> Fields:
    """See `GraphData.from_networkx`."""
    warn_of_the_rest(graph, fields, weighted)
    fields = read_attributes(graph, fields)
    number = {node: place for place, node in enumerate(graph)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    found: Fields = {"name": str(graph.name or "networkx")}
    if weighted:
        found["edge_weight"] = np.array([weight for *_, weight in graph.edges(data="weight", default=1)], np.float32)
    return from_arrays((pairs[:, 0], pairs[:, 1]), len(number), graph.is_directed(), {**found, **fields})


def from_scipy(adjacency: Any, directed: bool, weighted: bool | None, fields: Fields) -> Fields:
    """See `GraphData.from_scipy`."""
    if not scipy.sparse.issparse(adjacency) or adjacency.shape[0] != adjacency.shape[1]:
        raise InputError(f"expected a square scipy sparse matrix, found {type(adjacency).__name__}")
    matrix = adjacency.tocoo()
    num_nodes = matrix.shape[0]
    kept = slice(None) if directed else halve_symmetric(matrix.row, matrix.col, num_nodes)
    warn_of_values(matrix, fields, weighted)
    fields = {"name": "scipy", **fields}
    if weighted:
        if not directed and (adjacency != adjacency.T).nnz:
            raise InputError("the weights are not symmetric; load the matrix with directed=True")
        fields["edge_weight"] = matrix.data[kept].astype(np.float32)
    return from_arrays((matrix.row[kept], matrix.col[kept]), num_nodes, directed, fields)


def to_dgl(graph: GraphFields, edge_list: EdgeList | None) -> Any:
    """See `GraphData.to_dgl`."""
    dgl = import_dgl()

    arcs, of_vertices, of_arcs = _columns(graph, edge_list)
    result = dgl.graph(arcs, num_nodes=int(graph.num_nodes))
    names = {"edge_weight": "weight", "edge_feats": "feat", "edge_types": "etype"}
    result.edata.update({names[key]: column for key, column in of_arcs.items()})
    names = DGL_COLUMNS | {"node_types": "ntype"}
    result.ndata.update({names[key]: column for key, column in of_vertices.items()})
    return result


def to_pyg(graph: GraphFields, edge_list: EdgeList | None) -> Any:
    """See `GraphData.to_pyg`."""
    torch_geometric = import_pyg()
    import torch

    arcs, of_vertices, of_arcs = _columns(graph, edge_list)
    names = PYG_COLUMNS | {"edge_weight": "edge_weight", "edge_feats": "edge_attr", "edge_types": "edge_type"}
    columns = {names[key]: column for key, column in (of_vertices | of_arcs).items()}
    return torch_geometric.data.Data(edge_index=torch.stack(arcs).long(), num_nodes=int(graph.num_nodes), **columns)


def _columns(graph: GraphFields, edge_list: EdgeList | None) -> tuple[tuple, dict[str, Any], dict[str, Any]]:
    """(sources and targets of arcs, columns of vertices, columns of arcs) as tensors, columns by name of the field."""
    import torch

    edge_list = edge_list or make_edge_list(graph, "stored", "keep")
    sources, targets, arc_ids = edge_list.arcs()
    of_vertices: dict[str, Any] = {}
    of_arcs: dict[str, Any] = {}
    if edge_list.edge_weight is not None and len(arc_ids):
        of_arcs["edge_weight"] = torch.tensor(edge_list.edge_weight[arc_ids % edge_list.num_rows])
    if graph.edge_feats is not None:
        of_arcs["edge_feats"] = torch.from_numpy(arc_feats(graph, edge_list, arc_ids))
    if graph.edge_types is not None:
        of_arcs["edge_types"] = torch.from_numpy(arc_relations(graph, edge_list, arc_ids)).long()
    if graph.node_types is not None:
        of_vertices["node_types"] = torch.tensor(np.asarray(graph.node_types, dtype=np.int64))
    if graph.feats is not None:
        dense = graph.feats.toarray() if scipy.sparse.issparse(graph.feats) else graph.feats
        of_vertices["feats"] = torch.tensor(np.asarray(dense, dtype=np.float32))
    if graph.labels is not None:
        of_vertices["labels"] = torch.tensor(np.asarray(graph.labels, dtype=np.int64))
    elif graph.node_values is not None:
        of_vertices["labels"] = torch.tensor(np.asarray(graph.node_values, dtype=np.float32))
    of_vertices |= {name: torch.from_numpy(mask) for name, mask in graph.split_masks().items()}
    return (torch.tensor(sources), torch.tensor(targets)), of_vertices, of_arcs
