"""The fields of a graph from arrays, a table of edges, a sparse matrix or NetworkX: all readers of objects end here.

Legend: N vertices, E edges. Each reader returns field name -> value, and writes down in `findings` what it took,
renamed and left out; `GraphData.from_fields` makes and checks the graph.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from distgnn.datasets.fields import EDGE_SPLITS, SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import OF_EDGES, OF_NODES, PYG_NAMES, take_columns
from distgnn.datasets.objects.labels import as_labels
from distgnn.datasets.objects.values import (
    SHOWN,
    as_array,
    as_codes,
    as_float32,
    as_ids,
    as_numbers,
    as_rows,
    as_split,
    is_missing,
    name_list,
    refuse_rows_of_edges,
    rows_of,
    sparse_matrix,
)
from distgnn.datasets.pairs import halve, pair_keys, repeated_edges
from distgnn.errors import InputError

Fields = dict[str, Any]
PER_VERTEX = ("feats", "labels", "node_values", "node_types", "graph_ids", *SPLITS)
ENDS = (
    ("source", "target"), ("src", "dst"), ("u", "v"), ("from", "to"), ("head", "tail"), ("source_id", "target_id"),
    ("src_id", "dst_id"), ("row", "col"), ("i", "j"), ("start", "end"), ("source", "destination"), ("from_id", "to_id"),
    ("source_id", "destination_id"), ("FromNodeId", "ToNodeId"), (0, 1), ("0", "1"),
)  # fmt: skip
NAMES_OF = {"edge_types": "edge_type_names", "node_types": "node_type_names"}


def from_arrays(edges: Any, num_nodes: int | None, directed: bool, fields: Fields, findings: Findings) -> Fields:
    """See `GraphData.from_arrays`."""
    pairs = np.zeros((0, 2), np.int64)
    with findings.reading("edges"):
        found_pairs = edge_pairs(edges)
        if found_pairs.dtype.kind not in "iu":
            raise InputError(
                f"edges: expected integer vertex ids, found {found_pairs.dtype}; dg.renumber(edges) makes them of any "
                "ids"
            )
        pairs = found_pairs
    given = {key: value for key, value in fields.items() if value is not None}
    task = given.pop("task", None)
    if num_nodes is None:
        num_nodes = _count_nodes(pairs, given, findings)
    found: Fields = {"name": "graph", "num_nodes": num_nodes, "edges": pairs, "directed": directed}
    for key, value in given.items():
        with findings.reading(key):
            index = np.asarray(getattr(value, "index", None) if hasattr(value, "iloc") else None)
            if index.ndim and not np.array_equal(index, np.arange(len(index))):  # of a frame: it is not used
                text = f"{key}: rows are taken in the order of the frame, its index "
                text += f"({str(index[:1].tolist())[1:-1]}, …) is not used: sort_index() or reindex first"
                findings.add("caution", key, text)
            found |= read_field(key, value, num_nodes, findings, given.get("num_label_classes"), task)
    return found | {"findings": findings}


def from_arcs(
    ends: tuple[Any, Any], num_nodes: int, directed: bool, found: Fields, fields: Fields, findings: Findings
) -> Fields:
    """See `from_arrays`, of arcs: one edge of two opposite ones, if the graph is undirected. Args: found: columns."""
    if not directed:
        carried = {key: found[key] for key in OF_EDGES if key in found}
        kept, halved = halve(*ends, num_nodes, carried)
        ends, found = (ends[0][kept], ends[1][kept]), found | halved
    return from_arrays(ends, num_nodes, directed, {**found, **fields}, findings)


def read_field(
    key: str, value: Any, num_nodes: int, findings: Findings, num_classes: int | None = None, task: str | None = None
) -> Fields:
    """One field of arrays as `GraphData` holds it; labels may be several fields."""
    if key == "labels":
        return as_labels(value, findings, num_classes, task)
    if key in SPLITS:
        return {key: as_split(key, value, num_nodes)}
    if key in ("feats", "edge_feats"):
        rows = as_rows(key, value, findings)
        return {key: rows.toarray() if key == "edge_feats" and sparse_matrix(rows) is not None else rows}
    if key == "edge_weight":
        weight = as_float32(key, value, findings)
        return {key: weight[:, 0] if weight.ndim == 2 and weight.shape[1] == 1 else weight}
    if key == "node_values":
        return {key: as_float32(key, value, findings)}
    if key in ("edge_types", "node_types", "graph_ids"):
        codes, names = as_codes(key, value)
        if names and key in NAMES_OF:
            findings.add("renamed", key, f"{key} 0 to {len(names) - 1} ← {name_list(names)} ({NAMES_OF[key]})")
        return {key: codes} | ({NAMES_OF[key]: names} if names and key in NAMES_OF else {})
    if key == "node_names":
        return {key: as_array(value, key)}
    if key in EDGE_SPLITS:
        if not key.endswith("_labels"):
            ids = as_ids(key, value)
            is_index = key.endswith(("_edges", "_negatives")) and ids.ndim == 2 and len(ids) == 2 and ids.shape[1] != 2
            return {key: ids.T if is_index else ids}
        return {key: as_numbers(key, value)}
    return {key: value}


def _count_nodes(pairs: np.ndarray, given: Fields, findings: Findings) -> int:
    """N where it is not given: the rows of features, labels and masks where they agree, else the largest id + 1."""
    named = int(pairs.max(initial=-1)) + 1
    rows: dict[str, int | None] = {}
    for key in PER_VERTEX:
        if key in given:
            with findings.reading(key):
                rows[key] = rows_of(key, given[key])
    refuse_rows_of_edges(rows, named, len(pairs))
    counts = {count for count in rows.values() if count is not None}
    return counts.pop() if len(counts) == 1 and max(counts) > named else named


def edge_pairs(edges: Any) -> np.ndarray:
    """Edges as [E, 2]. [2, E] is turned, except [2, 2], which cannot be told from two edges and is left as it is."""
    if isinstance(edges, tuple) and len(edges) == 2:
        sources, targets = (_ids_or_names(column) for column in edges)
        if sources.shape != targets.shape or sources.ndim != 1:
            raise InputError(
                f"edges: sources {list(sources.shape)} and targets {list(targets.shape)} must be two equal lists"
            )
        edges = np.stack([sources, targets]).T
    edges = _ids_or_names(edges)
    if edges.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if edges.ndim == 2 and 2 not in edges.shape and 3 in edges.shape:
        third = "edges[:, 2]" if edges.shape[1] == 3 else "edges[2]"
        raise InputError(
            f"edges: expected shape [E, 2], found {list(edges.shape)}: a third column is no part of an edge; give it "
            f"as edge_weight={third}, or edge_types, or leave it out"
        )
    is_edge_index = edges.ndim == 2 and edges.shape[0] == 2 and edges.shape[1] != 2
    return edges.T if is_edge_index else edges


def _ids_or_names(edges: Any) -> np.ndarray:
    """Ids as whole numbers; texts stay, for `dg.renumber`."""
    array = as_array(edges, "edges")
    return array if array.dtype.kind in "USb" else as_ids("edges", array)


def is_frame(table: Any) -> bool:
    return hasattr(table, "columns") and hasattr(table, "__getitem__") and hasattr(table, "to_numpy")


def ends_of(columns: Sequence[Any]) -> tuple[Any, Any] | None:
    """The two columns whose names say that they are the ends of edges; None where there are none."""
    by_name = {str(name).strip().lower() if isinstance(name, str) else name: name for name in columns}
    for pair in ENDS:
        first, second = (end.lower() if isinstance(end, str) else end for end in pair)
        if first in by_name and second in by_name:
            return by_name[first], by_name[second]
    return None


def in_lower_case(frame: dict[str, Any]) -> dict[str, Any]:
    """The columns by names in lower case (`Weight` of Gephi's tables); one whose name is taken keeps its own."""
    return {low if (low := name.lower()) not in frame else name: column for name, column in frame.items()}


def edges_of_frame(table: Any, findings: Findings, decided: Any = ()) -> tuple[tuple[np.ndarray, np.ndarray], Fields]:
    """The ends of a table with one row per edge, and fields of further columns. Args: decided: as of `take_columns`."""
    columns = list(table.columns)
    ends = ends_of(columns)
    if len(set(map(str, columns))) != len(columns):
        raise InputError(f"edges: this table has two columns of one name ({', '.join(map(str, columns))})")
    if ends is None and len(columns) == 2:
        ends = columns[0], columns[1]
        findings.add("renamed", "edges", f"edges ← {columns[0]}, {columns[1]}", len(table))
    if ends is None:
        raise InputError(
            f"edges: which columns are the ends? this table has {', '.join(map(str, columns)) or 'none'}: call them "
            "source and target, or give (table[a], table[b])"
        )
    frame = in_lower_case({str(name): table[name] for name in columns if name not in ends})
    found = take_columns(frame, OF_EDGES, PYG_NAMES | {"edge_weight": "weight"}, findings, decided)
    return (as_array(table[ends[0]], "edges"), as_array(table[ends[1]], "edges")), found


def from_frame(table: Any, num_nodes: int | None, directed: bool, fields: Fields, findings: Findings) -> Fields:
    """The edges of a table with one row per edge."""
    ends, found = edges_of_frame(table, findings, fields)
    return from_arrays(ends, num_nodes, directed, {"name": "table", **found, **fields}, findings)


def from_matrix(adjacency: Any, directed: bool, weighted: bool | None, fields: Fields, findings: Findings) -> Fields:
    """See `GraphData.from_scipy`."""
    matrix = sparse_matrix(adjacency)
    if matrix is None or len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = f" {list(matrix.shape)}" if matrix is not None else ""
        raise InputError(f"expected a square scipy sparse matrix, found {type(adjacency).__name__}{shape}")
    entries, num_nodes = matrix.tocoo(), matrix.shape[0]
    sources, targets = entries.row.astype(np.int64), entries.col.astype(np.int64)
    zeros = int(np.count_nonzero(entries.data == 0))
    if zeros:
        findings.add("caution", "edges", f"{zeros} stored zeros are edges; eliminate_zeros() takes them out", zeros)
    again = len(repeated_edges(pair_keys(sources, targets, num_nodes)))
    if again:
        text = f"{again} entries are there twice and are parallel edges; sum_duplicates() makes one of them"
        findings.add("caution", "edges", text, again)
    if weighted is None and "edge_weight" not in fields and (entries.data[entries.data != 0] != 1).any():
        text = "the values, not taken as edge weights (take them with weighted=True)"
        findings.add("left out", "values", text, len(entries.data))
    found = {"name": "scipy"} | ({"edge_weight": entries.data} if weighted else {})
    return from_arcs((sources, targets), num_nodes, directed, found, fields, findings)


# NetworkX has no agreed names (x and y are often coordinates), so that a field names its attribute: feats="x".
NODE_FIELDS = ("feats", "labels", "node_types", "node_values", "graph_ids", *SPLITS)
EDGE_FIELDS = ("edge_weight", "edge_feats", "edge_types")


def from_networkx(graph: Any, weighted: bool | None, fields: Fields, findings: Findings) -> Fields:
    """See `GraphData.from_networkx`."""
    names = {key: name for key, name in fields.items() if isinstance(name, str) and key in NODE_FIELDS + EDGE_FIELDS}
    _name_the_rest(graph, fields, weighted, findings)
    found: Fields = {"name": str(graph.name or "networkx")}
    if weighted and "edge_weight" not in fields:
        edges = [(item[:2], item[-1]) for item in graph.edges(data="weight", default=1)]
        found["edge_weight"] = _column("edge_weight", "weight", edges)
    for key, name in names.items():
        with findings.reading(key):
            items = list(graph.nodes(data=name, default=None))
            if key in EDGE_FIELDS:
                items = [(item[:2], item[-1]) for item in graph.edges(data=name, default=None)]
            found[key] = _column(key, name, items)
    number = {node: place for place, node in enumerate(graph)}
    pairs = np.array([(number[u], number[v]) for u, v in graph.edges()], dtype=np.int64).reshape(-1, 2)
    found |= {key: value for key, value in fields.items() if key not in names}
    return from_arrays((pairs[:, 0], pairs[:, 1]), len(number), graph.is_directed(), found, findings)


def _column(key: str, name: str, items: list[tuple[Any, Any]]) -> Any:
    """The values of one attribute as an array. Raises: InputError where some have none, or they make no column."""
    missing = [item for item, value in items if is_missing(value)]
    if missing and (key != "labels" or len(missing) == len(items)):
        how_many = f" ({len(missing)} of {len(items)} have none)" if key != "labels" else ""
        raise InputError(
            f"{key}: {missing[0]!r} has no attribute {name!r}{how_many}; every one needs it, or give an array instead"
        )
    values = np.empty(len(items), dtype=object)
    for place, (_, value) in enumerate(items):
        values[place] = value
    try:
        column = as_array(values, f"{key}: the attribute {name!r}")
    except InputError as error:
        raise InputError(str(error).replace(": values of", " has values of")) from None
    if column.dtype.kind in "US" and key not in ("labels", "node_types", "edge_types"):
        raise InputError(f"{key}: the attribute {name!r} is text, as {str(values[0])[:SHOWN]!r}: make numbers of it")
    return values if key == "labels" else column  # whole numbers among which some are missing are floats in `column`


def _name_the_rest(graph: Any, fields: Fields, weighted: bool | None, findings: Findings) -> None:
    """Write down every attribute that nothing takes, with the argument that would."""
    for kind, items, known, usual in (
        ("", graph.nodes(data=True), NODE_FIELDS, OF_NODES),
        ("edge ", graph.edges(data=True), EDGE_FIELDS, OF_EDGES),
    ):
        taken = {fields[key] for key in known if isinstance(fields.get(key), str)}
        counts = Counter(name for item in items for name in item[-1])
        for name, count in counts.items():
            field = next((field for field, names in usual.items() if name in names and field in known), None)
            if name in taken or (field in fields and not isinstance(fields[str(field)], str)):
                continue
            if kind and name == "weight":
                if weighted is None:
                    findings.add("left out", "weight", "edge attribute weight (take it with weighted=True)", count)
                continue
            how = f" (take it with {field}={name!r})" if field and field not in fields else ""
            findings.add("left out", str(name), f"{kind}attribute {name}{how}", count)
