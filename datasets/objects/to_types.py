"""A typed graph as PyG's HeteroData or a typed DGLGraph: relations of arcs, and columns by these libraries' names."""

from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets.edge_list import EdgeList, arc_relations
from distgnn.datasets.fields import GraphFields, Relation
from distgnn.datasets.typed import MASKS, OF_RELATION, OF_TYPE, arc_column, arc_relation_names, type_ranges
from distgnn.errors import InputError


def to_hetero(graph: GraphFields, edge_list: EdgeList, data: Any, names: dict[str, str]) -> Any:
    """Fill an empty HeteroData."""
    import torch

    for kind, count in zip(graph.types, graph.type_counts, strict=True):
        columns = _of_type(graph, kind, names)
        for name, column in columns.items():
            data[kind][name] = column
        if names["feats"] not in columns:
            data[kind].num_nodes = int(count)
    for relation, (ends, columns) in _of_relations(graph, edge_list, names).items():
        data[relation].edge_index = torch.stack(ends)
        for name, column in columns.items():
            data[relation][name] = column
    return data


def to_typed_dgl(graph: GraphFields, edge_list: EdgeList, dgl: Any, names: dict[str, str]) -> Any:
    relations = _of_relations(graph, edge_list, names)
    counts = {kind: int(count) for kind, count in zip(graph.types, graph.type_counts, strict=True)}
    made = dgl.heterograph({relation: ends for relation, (ends, _) in relations.items()}, num_nodes_dict=counts)
    for kind in graph.types:
        made.nodes[kind].data.update(_of_type(graph, kind, names))
    for relation, (_, columns) in relations.items():
        made.edges[relation].data.update(columns)
    return made


def _of_type(graph: GraphFields, kind: str, names: dict[str, str]) -> dict[str, Any]:
    import torch

    found = {}
    for name, values in graph.typed.get(kind, {}).items():
        if name == "names":
            continue  # texts: neither library has them
        field = MASKS.get(name) or ("labels" if name == "values" else OF_TYPE[name])
        if field == "labels" and field in graph.typed[kind] and name == "values":
            raise InputError(f"type {kind} has labels and values, which are one column there: take one of them out")
        dense = values.toarray() if scipy.sparse.issparse(values) else np.asarray(values)
        found[names[field]] = torch.tensor(dense.astype(np.int64) if name == "labels" else _as_float(dense))
    return found


def _as_float(values: np.ndarray) -> np.ndarray:
    return values if values.dtype == bool else values.astype(np.float32)


def _of_relations(
    graph: GraphFields, edge_list: EdgeList, names: dict[str, str]
) -> dict[Relation, tuple[tuple[Any, Any], dict[str, Any]]]:
    """Relation -> (sources, targets) int64 in the ids of their types, and columns, in the order of arc ids."""
    import torch

    sources, targets, arc_ids = edge_list.arcs()
    numbers, first = arc_relations(graph, edge_list, arc_ids), type_ranges(graph)
    found: dict[Relation, Any] = {}
    for number, relation in enumerate(arc_relation_names(graph, edge_list)):
        mine = np.flatnonzero(numbers == number)
        ends = [
            torch.from_numpy(ids[mine].astype(np.int64) - first[kind][0])
            for ids, kind in ((sources, relation[0]), (targets, relation[2]))
        ]
        own = graph.relation_columns.get(graph.relations[number % len(graph.relations)], {})
        columns = {name: arc_column(graph, edge_list, number, name, arc_ids[mine]) for name in own}
        found[relation] = tuple(ends), {names[OF_RELATION[n]]: torch.tensor(_as_float(c)) for n, c in columns.items()}
    return found
