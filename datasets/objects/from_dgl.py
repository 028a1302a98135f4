"""A graph from a DGLGraph, whose columns are asked for by name: `dgl` is not imported.

One of several vertex or edge types becomes one vertex set with types, in the order of `ntypes` and of relations. A
vertex type without features has zeros, one without labels unknown ones (-1, or no class of several), one without a mask
no vertex in that split.
"""

from typing import Any

import numpy as np

from distgnn.datasets.fields import SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import DGL_NAMES, OF_EDGES, OF_NODES, is_mask_name, take_columns
from distgnn.datasets.objects.arrays import Fields, from_arrays
from distgnn.datasets.objects.values import as_array, as_split
from distgnn.datasets.pairs import halve
from distgnn.errors import InputError


def from_dgl(graph: Any, directed: bool, fields: Fields, findings: Findings) -> Fields:
    """See `GraphData.from_dgl`."""
    if not graph.is_homogeneous:
        sources, targets, num_nodes, found = _from_types(graph, fields, findings)
        return finish("dgl", sources, targets, num_nodes, directed, found, fields, findings)
    sources, targets = (column.numpy() for column in graph.edges(order="eid"))
    num_nodes = graph.num_nodes()
    found = vertex_columns(_frame(graph.ndata), DGL_NAMES, num_nodes, fields, findings)
    if int(graph.batch_size) > 1 and "graph_ids" not in found:
        sizes = graph.batch_num_nodes().numpy()
        found["graph_ids"] = np.repeat(np.arange(len(sizes)), sizes)
        findings.add("read", "graph_ids", "graph_ids ← the graphs of dgl.batch", len(sizes))
    of_edges = take_columns(_frame(graph.edata), OF_EDGES, DGL_NAMES, findings, fields)
    return finish("dgl", sources, targets, num_nodes, directed, found | of_edges, fields, findings)


def _frame(columns: Any, typed: bool = False) -> dict[str, Any]:
    """Name -> column, without DGL's own: ids, and types where there is only one, or where they are read otherwise."""
    return {
        name: column
        for name, column in columns.items()
        if name != "_ID" and not (name == "_TYPE" and (typed or not bool((column > 0).any())))
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


def finish(
    name: str,
    sources: np.ndarray,
    targets: np.ndarray,
    num_nodes: int,
    directed: bool,
    found: Fields,
    fields: Fields,
    findings: Findings,
) -> Fields:
    """The fields of a graph whose arcs and columns are known: one edge of two opposite arcs, if it is undirected."""
    if not directed:
        carried = {key: found.pop(key) for key in OF_EDGES if key in found}
        kept, halved = halve(sources, targets, num_nodes, carried)
        sources, targets, found = sources[kept], targets[kept], found | halved
    return from_arrays((sources, targets), num_nodes, directed, {"name": name, **found, **fields}, findings)


def _from_types(graph: Any, fields: Fields, findings: Findings) -> tuple[np.ndarray, np.ndarray, int, Fields]:
    """Sources, targets, number of vertices, and the fields that columns and types give."""
    counts = [int(graph.num_nodes(kind)) for kind in graph.ntypes]
    first = dict(zip(graph.ntypes, np.cumsum([0, *counts[:-1]]).tolist(), strict=True))
    relations = list(graph.canonical_etypes)
    ends = [[column.numpy() for column in graph.edges(order="eid", etype=one)] for one in relations]
    none = [np.zeros(0, np.int64)]
    sources = np.concatenate([u + first[one[0]] for one, (u, _) in zip(relations, ends, strict=True)] or none)
    targets = np.concatenate([v + first[one[2]] for one, (_, v) in zip(relations, ends, strict=True)] or none)
    per_type: list[Fields] = []
    for kind, count in zip(graph.ntypes, counts, strict=True):
        frame = {name: as_array(value, name) for name, value in _frame(graph.nodes[kind].data, True).items()}
        columns = vertex_columns(frame, DGL_NAMES, count, fields, findings)
        for split in columns.keys() & set(SPLITS):
            mask = np.zeros(count, bool)
            mask[columns[split]] = True
            columns[split] = mask
        per_type.append(columns)
    names = [name for name in OF_NODES if any(name in one for one in per_type)]
    found: dict[str, Any] = {name: _joined(graph, name, per_type, counts) for name in names}
    found |= _of_arcs(graph, relations, fields, findings)
    if len(graph.ntypes) > 1:
        found["node_types"] = np.repeat(np.arange(len(counts)), counts)
        found["node_type_names"] = tuple(graph.ntypes)
    if len(relations) > 1:
        found["edge_types"] = np.repeat(np.arange(len(relations)), [len(u) for u, _ in ends])
        found["edge_type_names"] = tuple("___".join(one) for one in relations)
    return sources, targets, sum(counts), found


def _joined(graph: Any, name: str, per_type: list[Fields], counts: list[int]) -> np.ndarray:
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
    found = [
        take_columns(_frame(graph.edges[one].data, True), OF_EDGES, DGL_NAMES, findings, fields) for one in relations
    ]
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
