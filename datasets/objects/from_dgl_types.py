"""A DGLGraph of several vertex or edge types as one vertex set with types, in the order of `ntypes` and of relations.

A vertex type without features has zeros, one without labels unknown ones (-1, or no class of several), one without a
mask no vertex in that split. `dgl` is not imported.
"""

from typing import Any

import numpy as np

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import DGL_NAMES, OF_EDGES, OF_NODES
from distgnn.datasets.objects.arrays import Fields
from distgnn.datasets.objects.columns import is_mask_name, take_columns
from distgnn.datasets.objects.values import as_array, as_split
from distgnn.errors import InputError

BOOKKEEPING = ("_ID", "_TYPE")
SPLITS = ("train", "valid", "test")


def from_types(graph: Any, fields: Fields, findings: Findings) -> tuple[np.ndarray, np.ndarray, int, Fields]:
    """Sources, targets, number of vertices, and the fields that columns and types give."""
    counts = [int(graph.num_nodes(kind)) for kind in graph.ntypes]
    first = dict(zip(graph.ntypes, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
    relations = list(graph.canonical_etypes)
    ends = [[column.numpy() for column in graph.edges(order="eid", etype=one)] for one in relations]
    none = [np.zeros(0, np.int64)]
    sources = np.concatenate([u + first[one[0]] for one, (u, _) in zip(relations, ends, strict=True)] or none)
    targets = np.concatenate([v + first[one[2]] for one, (_, v) in zip(relations, ends, strict=True)] or none)
    found = _of_vertices(graph, counts, fields, findings)
    found |= _of_arcs(graph, relations, fields, findings)
    if len(graph.ntypes) > 1:
        found["node_types"] = np.repeat(np.arange(len(counts)), counts)
        found["node_type_names"] = tuple(graph.ntypes)
    if len(relations) > 1:
        found["edge_types"] = np.repeat(np.arange(len(relations)), [len(u) for u, _ in ends])
        found["edge_type_names"] = tuple("___".join(one) for one in relations)
    return sources, targets, sum(counts), found


def _of_vertices(graph: Any, counts: list[int], fields: Fields, findings: Findings) -> Fields:
    per_type: list[Fields] = []
    for kind, count in zip(graph.ntypes, counts, strict=True):
        frame = {name: as_array(value, name) for name, value in _frame(graph.nodes[kind].data).items()}
        columns = take_columns(frame, OF_NODES, DGL_NAMES, findings, fields)
        for split in columns.keys() & set(SPLITS):
            name = next(name for name in (DGL_NAMES[split], *OF_NODES[split]) if name in frame)
            mask = np.zeros(count, bool)
            mask[as_split(split, columns[split], count, is_mask_name(name))] = True
            columns[split] = mask
        per_type.append(columns)
    return {name: _joined(graph, name, per_type, counts) for name in OF_NODES if any(name in one for one in per_type)}


def _joined(graph: Any, name: str, per_type: list[Fields], counts: list[int]) -> np.ndarray:
    """A column of all types."""
    given = {kind: one[name] for kind, one in zip(graph.ntypes, per_type, strict=True) if name in one}
    shapes = {kind: list(column.shape[1:]) for kind, column in given.items()}
    (kind, shape), *others = shapes.items()
    for other, its in others:
        if its != shape:
            raise InputError(
                f"{name} of this DGL graph has rows of shape {shape} for {kind!r} and {its} for {other!r}: bring its "
                "vertex types to one width first"
            )
    like = next(iter(given.values()))
    unknown = -1 if name == "labels" and not shape else 0
    if unknown and like.dtype.kind not in "iu":
        like = like.astype(np.float64)  # whole numbers become classes, and NaN none
        unknown = np.nan  # type: ignore[assignment]
    missing = {
        kind: np.full((count, *shape), unknown, like.dtype) for kind, count in zip(graph.ntypes, counts, strict=True)
    }
    return np.concatenate([given.get(kind, missing[kind]) for kind in graph.ntypes])


def _of_arcs(graph: Any, relations: list[Any], fields: Fields, findings: Findings) -> Fields:
    found = [take_columns(_frame(graph.edges[one].data), OF_EDGES, DGL_NAMES, findings, fields) for one in relations]
    joined: Fields = {}
    for name in ("edge_weight", "edge_feats"):
        without = [one for one, columns in zip(relations, found, strict=True) if name not in columns]
        if not found or len(without) == len(relations):
            continue
        if without:
            raise InputError(
                f"relation {without[0]} of this DGL graph has no {name} and others have: give it to all or to none"
            )
        columns = [as_array(each[name], name) for each in found]
        shapes = {one: list(column.shape[1:]) for one, column in zip(relations, columns, strict=True)}
        if len({str(shape) for shape in shapes.values()}) > 1:
            raise InputError(f"{name} of this DGL graph has rows of several shapes: {shapes}: bring them to one first")
        joined[name] = np.concatenate(columns)
    return joined


def _frame(columns: Any) -> dict[str, Any]:
    return {name: column for name, column in columns.items() if name not in BOOKKEEPING}
