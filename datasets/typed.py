"""Typed graphs over their one vertex set: sections of types, relations, columns; checks, and views of single types.

Legend: T types, N vertices of all types, E edges of all relations, R relations. Vertices of a type have consecutive
ids, edges of a relation are consecutive, both in the order that the user gave.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from distgnn.datasets.checks import CHECKS, first_row
from distgnn.datasets.edge_list import EdgeList, input_edges
from distgnn.datasets.fields import SPLITS, GraphFields, Relation
from distgnn.errors import DistGNNError, InputError

# Column of a type, of a relation -> field of a graph of one type. Masks are ids there.
OF_TYPE = {"feats": "feats", "labels": "labels", "values": "node_values", "names": "node_names"}
OF_RELATION = {"weight": "edge_weight", "feat": "edge_feats"}
MASKS = {f"{split}_mask": split for split in SPLITS}


def starts(counts: Any) -> np.ndarray:
    """int64 [n + 1], where each section begins."""
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def type_ranges(graph: GraphFields) -> dict[str, tuple[int, int]]:
    """Type -> its first id and the one behind its last."""
    return dict(zip(graph.types, pairwise(starts(graph.type_counts).tolist()), strict=True))


def relation_starts(graph: GraphFields) -> np.ndarray:
    """int64 [R + 1], where the edges of each relation begin."""
    return np.searchsorted(np.asarray(graph.edge_types), np.arange(len(graph.relations) + 1)).astype(np.int64)


def shown(relation: Relation) -> str:
    return "___".join(relation)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Put a type or a relation before the error of a column of it."""
    try:
        yield
    except DistGNNError as error:
        if what in str(error):
            raise
        named = type(error)(f"{what}, {error}")
        named.count = error.count
        raise named from None


def of_type(graph: GraphFields, kind: str) -> GraphFields:
    """The columns of one type as a graph of its vertices without edges."""
    columns, (num_classes, class_names) = graph.typed.get(kind, {}), _classes(graph, kind)
    fields: dict[str, Any] = {field: columns[name] for name, field in OF_TYPE.items() if name in columns}
    fields |= {split: np.flatnonzero(columns[name]) for name, split in MASKS.items() if name in columns}
    own = {name.removeprefix(f"{kind}:"): path for name, path in graph.files.items() if name.startswith(f"{kind}:")}
    return GraphFields(
        f"{graph.name}, type {kind}",
        graph.type_counts[graph.types.index(kind)],
        np.zeros((0, 2), np.int64),
        True,
        num_label_classes=num_classes,
        class_names=class_names,
        findings=graph.findings,
        files=own,
        **fields,
    )


def _classes(graph: GraphFields, kind: str) -> tuple[int | None, tuple[str, ...]]:
    known = graph.type_classes.get(kind)
    return (len(known), known) if isinstance(known, tuple) else (known, ())


def with_type(graph: Any, kind: str, changed: GraphFields) -> Any:
    """A copy of a graph whose columns of one type are those of a graph as `of_type` gives it."""
    columns = {name: value for name, field in OF_TYPE.items() if (value := getattr(changed, field)) is not None}
    for name, split in MASKS.items():
        if (ids := getattr(changed, split)) is not None:
            columns[name] = np.zeros(changed.num_nodes, dtype=bool)
            columns[name][ids] = True
    made = replace(graph, typed={**graph.typed, kind: columns})
    set_views(made)
    return made


def set_views(graph: GraphFields) -> None:
    """Labels, values and splits over the one vertex set: labels and values only where one type alone has them."""
    for name in ("labels", "node_values", "num_label_classes", *SPLITS):
        setattr(graph, name, None)
    graph.class_names = ()
    graph.node_types = np.repeat(np.arange(len(graph.types), dtype=np.int16), graph.type_counts)
    ranges = type_ranges(graph)
    for name, field, unknown in (("labels", "labels", -1), ("values", "node_values", np.nan)):
        having = [kind for kind, columns in graph.typed.items() if name in columns]
        if len(having) == 1:
            rows, (begin, end) = graph.typed[having[0]][name], ranges[having[0]]
            dtype = np.promote_types(rows.dtype, np.int8) if name == "labels" else np.float32
            whole = np.full((graph.num_nodes, *rows.shape[1:]), unknown, dtype)
            whole[begin:end] = rows
            setattr(graph, field, whole)
            if name == "labels":
                graph.num_label_classes, graph.class_names = _classes(graph, having[0])
    for name, split in MASKS.items():
        found = [
            np.flatnonzero(columns[name]) + ranges[kind][0] for kind, columns in graph.typed.items() if name in columns
        ]
        if found:
            setattr(graph, split, np.sort(np.concatenate(found)))


def check_typed(graph: GraphFields) -> None:
    """Check types, relations and columns, naming type and relation; then make the views over the one vertex set."""
    _check_types(graph)
    _check_relations(graph)
    for kind in graph.types:
        with graph.findings.reading(kind):
            one = of_type(graph, kind)
            for name in MASKS.keys() & graph.typed.get(kind, {}).keys():
                mask = graph.typed[kind][name]
                if mask.dtype != bool or mask.shape != (one.num_nodes,):
                    found = f"{mask.dtype} {list(mask.shape)}"
                    one.fail(name, f"expected a mask of bools [{one.num_nodes}], found {found}")
            for field, check in CHECKS.items():
                if field not in ("edges", "edge_weight", "edge_feats", "edge_types"):
                    check(one)
    set_views(graph)


def _check_types(graph: GraphFields) -> None:
    if len(set(graph.types)) != len(graph.types) or not all(isinstance(kind, str) and kind for kind in graph.types):
        graph.fail("types", f"expected different names of types, found {graph.types!r}")
    counts = graph.type_counts
    if len(counts) != len(graph.types) or not all(isinstance(n, int | np.integer) and n >= 0 for n in counts):
        graph.fail(
            "type_counts", f"expected a number of vertices for each of {len(graph.types)} types, found {counts!r}"
        )
    if sum(counts) != graph.num_nodes:
        graph.fail("type_counts", f"the types have {sum(counts)} vertices, num_nodes is {graph.num_nodes}")
    unknown = next((kind for kind in graph.typed if kind not in graph.types), None)
    if unknown is not None:
        graph.fail("typed", f"columns of {unknown!r}, which is no type; types are {', '.join(graph.types)}")
    if not graph.directed:
        graph.fail("directed", "relations have sources and targets: a typed graph is directed")


def _check_relations(graph: GraphFields) -> None:
    numbers, ranges = np.asarray(graph.edge_types), type_ranges(graph)
    if len(set(graph.relations)) != len(graph.relations):
        graph.fail("relations", "a relation is there twice")
    known = numbers.shape == (graph.num_edges,) and numbers.dtype.kind in "iu"
    if not known or (numbers[1:] < numbers[:-1]).any() or (len(numbers) and numbers[-1] >= len(graph.relations)):
        graph.fail("edge_types", f"expected the relation of each of {graph.num_edges} edges, edges sorted by it")
    for relation, (begin, end) in zip(graph.relations, pairwise(relation_starts(graph).tolist()), strict=True):
        for kind in (relation[0], relation[2]):
            if kind not in ranges:
                graph.fail(f"relation {shown(relation)}", f"{kind!r} is no type; types are {', '.join(graph.types)}")
        key = f"{shown(relation)}:"
        one = GraphFields(f"{graph.name}, relation {key[:-1]}", graph.num_nodes, graph.edges[begin:end], True)
        one.files = {name.removeprefix(key): path for name, path in graph.files.items() if name.startswith(key)}
        for column, (end, kind) in enumerate((("source", relation[0]), ("target", relation[2]))):
            low, high = ranges[kind]
            row, bad = first_row(one.edges[:, column], partial(_outside, low, high))
            if row is not None:
                ids = f"ids run from 0 to {high - low - 1}" if high > low else "it has no vertices"
                value = int(one.edges[row, column]) - low
                one.fail("edges", f"row {row} has {end} {value}, beyond type {kind} ({ids})", bad)
        for name, field in OF_RELATION.items():
            setattr(one, field, graph.relation_columns.get(relation, {}).get(name))
            CHECKS[field](one)
    unknown = next((one for one in graph.relation_columns if one not in graph.relations), None)
    if unknown is not None:
        graph.fail("relation_columns", f"columns of {shown(unknown)}, which is no relation")


def _outside(low: int, high: int, block: np.ndarray) -> np.ndarray:
    return (block < low) | (block >= high)


def arc_relation_names(graph: GraphFields, edge_list: EdgeList) -> list[Relation]:
    """The relations of arcs of this edge list; reversed ones are called rev_NAME, as by PyG's ToUndirected.

    Raises: InputError where the graph has a relation of such a name already.
    """
    back = [(target, f"rev_{name}", source) for source, name, target in graph.relations]
    if edge_list.direction == "stored":
        return list(graph.relations)
    if edge_list.direction == "reversed":
        return back
    there = next((one for one in back if one in graph.relations), None)
    if there is not None:
        raise InputError(
            f"relation {shown(there)} is there already, and direction 'both' would add it: use direction 'stored', or "
            "take such relations out"
        )
    return [*graph.relations, *back]


def arc_column(graph: GraphFields, edge_list: EdgeList, number: int, name: str, arc_ids: np.ndarray) -> np.ndarray:
    """Rows of a column of relation `number` for arcs of it; reverse arcs have the rows of their edges."""
    first = number % len(graph.relations)
    rows = input_edges(edge_list, arc_ids) - relation_starts(graph)[first]
    return np.asarray(graph.relation_columns[graph.relations[first]][name][rows])
