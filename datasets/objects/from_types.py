"""The fields of a typed graph from tables of types and relations: HeteroData, typed DGL graphs and dicts end here.

Legend: a table has columns by name; `num_nodes` of a type; `edge_index` [2, E] (or `adj_t`) of a relation.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from distgnn.datasets.fields import SPLITS, Relation
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
from distgnn.datasets.objects.arrays import Fields, edge_pairs, read_field
from distgnn.datasets.objects.values import as_array, as_ids, as_split, rows_of, sparse_matrix
from distgnn.datasets.typed import MASKS, OF_RELATION, OF_TYPE, naming, shown, starts
from distgnn.errors import InputError

COLUMNS = {name: OF_NODES[name] for name in ("feats", "labels", *SPLITS, "node_values")} | {
    "node_names": ("node_names",)
}
EDGE_COLUMNS = {name: OF_EDGES[name] for name in ("edge_weight", "edge_feats")}
EDGES = ("edge_index", "edges", "adj_t", "adj")
OF_GRAPH = ("name", "notes", "type_classes", "task")  # fields that are no columns


def refuse_undirected(directed: bool) -> None:
    if not directed:
        raise InputError(
            "relations of a typed graph have sources and targets: leave directed=False out; direction 'both' sends "
            "messages back along relations rev_NAME"
        )


def from_hetero(data: Any, fields: Fields, findings: Findings) -> Fields:
    """Of a PyG `HeteroData`."""
    tables: dict[Any, dict[str, Any]] = {}
    for kind in data.node_types:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyG guesses the number of vertices where nothing says it
            count = data[kind].num_nodes
        tables[kind] = {**data[kind].to_dict(), "num_nodes": count}
    tables |= {relation: data[relation].to_dict() for relation in data.edge_types}
    for name, value in data.to_dict().get("_global_store", {}).items():
        leave_out(findings, name, value, "of no type")
    return from_tables(tables, fields, findings, "pyg")


def from_typed_dgl(graph: Any, fields: Fields, findings: Findings) -> Fields:
    """Of a DGLGraph of several types or relations."""
    tables: dict[Any, dict[str, Any]] = {}
    for kind in graph.ntypes:
        tables[kind] = {**_frame(graph.nodes[kind].data), "num_nodes": graph.num_nodes(kind)}
    if int(graph.batch_size) > 1:
        leave_out(findings, "batch", None, f"which of {int(graph.batch_size)} graphs a vertex is in")
    for relation in graph.canonical_etypes:
        ends = graph.edges(order="eid", etype=relation)
        tables[relation] = {**_frame(graph.edges[relation].data), "edges": ends}
    return from_tables(tables, fields, findings, "dgl", DGL_NAMES)


def _frame(columns: Any) -> Fields:
    return {name: column for name, column in columns.items() if name not in ("_ID", "_TYPE")}  # DGL's own


def by_name(content: Mapping[str, Any]) -> dict[Any, Any]:
    """Tables of columns that hold one entry per type or relation: `x_dict`, `edge_index_dict`, …, as OGB has them."""
    tables: dict[Any, dict[str, Any]] = {}
    for name, columns in content.items():
        if isinstance(columns, Mapping):
            for key, column in columns.items():
                tables.setdefault(key, {})[name.removesuffix("_dict")] = column
    for relation in [key for key in tables if isinstance(key, tuple)]:
        for kind in (relation[0], relation[2]):
            tables.setdefault(kind, {})
    return tables


def from_tables(
    tables: Mapping[Any, Any], fields: Fields, findings: Findings, name: str = "typed", usual: Any = PYG_NAMES
) -> Fields:
    """See `GraphData.from_types`.

    Args: tables: type -> table, or its number of vertices; (source type, name, target type) -> table, or edges.
        usual: names of columns in this library; a field may be a dict by type or relation, None leaves it out.
    """
    tables = {key: dict(table) if isinstance(table, Mapping) else table for key, table in tables.items()}
    decided = _put_fields(tables, fields)
    kinds = [key for key in tables if not isinstance(key, tuple)]
    relations = [key for key in tables if isinstance(key, tuple)]
    for relation in relations:
        _check_relation(relation, kinds)
    if not relations:
        raise InputError("this typed graph has no relation: no edges to read")
    known = fields.get("type_classes", {})
    found: Fields = {"typed": {}, "relation_columns": {}, "type_classes": {}}
    counts = {}
    for kind in kinds:
        table = tables[kind] if isinstance(tables[kind], Mapping) else {"num_nodes": tables[kind]}
        with naming(f"type {kind}"), _told(findings, kind) as said:
            counts[kind] = _count(kind, table, [one for one in relations if kind in (one[0], one[2])])
            columns, classes = _of_type(
                table, counts[kind], usual, decided, (known.get(kind), fields.get("task")), said
            )
        found["typed"] |= {kind: columns} if columns else {}
        found["type_classes"] |= {kind: classes} if classes else {}
    first = dict(zip(kinds, starts(list(counts.values()))[:-1].tolist(), strict=True))
    pairs = []
    for relation in relations:
        table = tables[relation] if isinstance(tables[relation], Mapping) else {"edge_index": tables[relation]}
        with naming(f"relation {shown(relation)}"), _told(findings, shown(relation)) as said:
            ends, columns = _of_relation(table, usual, decided, said)
        found["relation_columns"] |= {relation: columns} if columns else {}
        ends += [first[relation[0]], first[relation[2]]]
        pairs.append(ends)
    sizes = [len(ends) for ends in pairs]
    found |= {
        "name": name,
        "types": tuple(kinds),
        "type_counts": tuple(counts.values()),
        "relations": tuple(relations),
        "num_nodes": sum(counts.values()),
        "edges": np.concatenate(pairs),
        "edge_types": np.repeat(np.arange(len(sizes), dtype=np.int16), sizes),
        "directed": True,
        "findings": findings,
    }
    return found | {key: fields[key] for key in ("name", "notes") if key in fields}


def _put_fields(tables: dict[Any, Any], fields: Fields) -> set[str]:
    """Put fields that the user gives by type or relation into the tables; returns those that decide a column."""
    for field, value in fields.items():
        if isinstance(value, Mapping) and field not in OF_GRAPH:
            for key, column in value.items():
                if key not in tables:
                    raise InputError(f"{field} of {key!r}, which this graph does not have; it has {_list(tables)}")
                synonyms = (COLUMNS | EDGE_COLUMNS).get(field, ())
                tables[key] = {name: one for name, one in tables[key].items() if name not in synonyms} | {field: column}
        elif field not in OF_GRAPH and value is not None:
            raise InputError(f"{field}: give a dict of columns by type, as {{{next(iter(tables), 'type')!r}: column}}")
    return {field for field, value in fields.items() if value is None}


def _list(tables: Mapping[Any, Any]) -> str:
    return ", ".join(shown(key) if isinstance(key, tuple) else str(key) for key in tables)


def _check_relation(relation: Any, kinds: list[str]) -> None:
    if len(relation) != 3 or not all(isinstance(word, str) for word in relation):
        raise InputError(f"{relation!r} is no relation: give (type of the sources, name, type of the targets)")
    for kind in (relation[0], relation[2]):
        if kind not in kinds:
            raise InputError(
                f"relation {shown(relation)} ends at {kind!r}, of which nothing is known: give its number of vertices "
                f"(num_nodes), or features; types are {', '.join(kinds)}"
            )


@contextmanager
def _told(findings: Findings, key: str) -> Iterator[Findings]:
    """Findings of one type or relation; written down with its name when the block ends."""
    said = Findings()
    yield said
    for one in said:
        between = ": " if one.severity in ("caution", "note") else "."
        findings.add(one.severity, f"{key}.{one.field}", f"{key}{between}{one.text}", one.count)


def _count(kind: str, table: Mapping[str, Any], relations: list[Relation]) -> int:
    """Vertices of a type: `num_nodes`, or the rows of its columns."""
    count = table.get("num_nodes")
    if count is None:
        for field, names in COLUMNS.items():
            rows = [rows_of(field, table[name]) for name in names if table.get(name) is not None]
            count = next((one for one in rows if one is not None), None)
            if count is not None:
                return count
        ends = f"relation {shown(relations[0])} ends there: " if relations else ""
        raise InputError(f"type {kind}: nothing says how many vertices it has; {ends}give num_nodes, or features")
    array = as_array(count, "num_nodes")
    if array.size != 1 or array.dtype.kind not in "iu" or array.reshape(-1)[0] < 0:
        raise InputError(f"num_nodes must be a whole number, found {count!r}")
    return int(array.reshape(-1)[0])


def _of_type(
    table: Mapping[str, Any], count: int, usual: Mapping[str, str], decided: set[str], known: Any, said: Findings
) -> tuple[Fields, Any]:
    """Columns of a type, and its classes where they are known. Args: known: classes that the user names, the task."""
    classes, task = known
    num_classes = len(classes) if isinstance(classes, tuple) else classes
    frame = {name: column for name, column in table.items() if column is not None and name != "num_nodes"}
    usual = {**usual, **{field: field for field in COLUMNS if field in frame}}  # our own names are no guess
    taken = take_columns(frame, COLUMNS, usual, said, decided)
    read: Fields = {}
    columns: Fields = {}
    for field, value in taken.items():
        if field not in SPLITS:
            read |= read_field(field, value, count, said, num_classes, task)
            continue
        name = next(name for name in (usual.get(field), *COLUMNS[field]) if name in frame)
        mask = np.zeros(count, dtype=bool)
        ids = as_split(field, value, count, is_mask_name(str(name)))
        if ids.size and (ids.min() < 0 or ids.max() >= count):
            wrong = ids[(ids < 0) | (ids >= count)][0]
            raise InputError(f"{field}: vertex {wrong} is beyond the type (ids run from 0 to {count - 1})")
        again = len(ids) - len(np.unique(ids))
        if again:
            raise InputError(f"{field}: {again} vertices are there twice; name each vertex once")
        mask[ids] = True
        columns[f"{field}_mask"] = mask
    columns |= {name: read[field] for name, field in OF_TYPE.items() if field in read}
    order = (*OF_TYPE, *MASKS)
    columns = {name: columns[name] for name in order if name in columns}
    return columns, classes or read.get("class_names")


def _of_relation(
    table: Mapping[str, Any], usual: Mapping[str, str], decided: set[str], said: Findings
) -> tuple[np.ndarray, Fields]:
    """Edges int64 [E, 2] in the ids of their types, and columns."""
    frame = {name: column for name, column in table.items() if column is not None}
    given = [name for name in EDGES if name in frame]
    if not given:
        raise InputError(f"no edges: give one of {', '.join(EDGES)}")
    sources, targets, weight = ends_of_arcs(frame[given[0]], given[0])
    for name in given:
        del frame[name]
    usual = {**usual, **{field: field for field in EDGE_COLUMNS if field in frame}}
    taken = take_columns(frame, EDGE_COLUMNS, usual, said, decided)
    if weight is not None and "edge_weight" not in taken:
        taken["edge_weight"] = weight
    if "edge_feats" in taken and as_array(taken["edge_feats"], "edge_attr").ndim == 1 and "edge_weight" not in taken:
        taken["edge_weight"] = taken.pop("edge_feats")  # PyG's one number per edge: a weight
    read: Fields = {}
    for field, value in taken.items():
        read |= read_field(field, value, 0, said)
    edges = np.stack([sources, targets], 1).astype(np.int64, copy=False)
    return edges, {name: read[field] for name, field in OF_RELATION.items() if field in read}


def ends_of_arcs(edges: Any, name: str) -> tuple[np.ndarray, np.ndarray, Any]:
    """Sources, targets, and the entries of a matrix where they are not all 1: rows of `adj_t` are targets."""
    matrix = sparse_matrix(edges)
    if matrix is not None:
        entries = matrix.tocoo()
        ends = (entries.col, entries.row) if name == "adj_t" else (entries.row, entries.col)
        return *ends, (entries.data if (entries.data != 1).any() else None)
    if name == "edge_index" and not isinstance(edges, tuple):  # [2, 2] can be told here
        pairs = as_ids(name, edges)
        if pairs.ndim != 2 or len(pairs) != 2:
            raise InputError(f"edge_index has shape {list(pairs.shape)}: expected [2, E], sources and targets")
        pairs = pairs.T
    else:
        pairs = edge_pairs(edges)
    if pairs.dtype.kind not in "iu" or pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(f"expected integer ids [2, E], found {pairs.dtype} {list(pairs.shape)}")
    return pairs[:, 0], pairs[:, 1], None
