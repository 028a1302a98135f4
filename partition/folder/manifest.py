"""What `partition.json` says of a graph and its cut, and the clock of the phases.

Shapes: P parts, n vertices. A name that is a text is UTF-8 with zeros behind, uint8 [n, width]; numbers are int64 [n].
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from distgnn.datasets import GraphData
from distgnn.datasets.edge_list import EdgeList, num_relations
from distgnn.datasets.link_splits import describe_edge_splits
from distgnn.datasets.typed import arc_relation_names, of_type
from distgnn.errors import InputError
from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.part_arrays import COUNTS
from distgnn.partition.folder.manifest_file import FORMAT_VERSION

WITHOUT_ANY = ("num_edge_feats", "num_relations", "num_node_types")  # said as 0 where there are none
NUMBERS = ("feats", "values", "weight", "feat")  # columns of types and relations that parts have as float32
RARE = tuple(name for name in COUNTS if name not in WITHOUT_ANY)
NAMES_AT_ONCE = 1 << 20
Progress = Callable[[str, int, int], None]


class Manifest(dict[str, Any]):
    """The contents of `partition.json`; prints as one line, as they may be tens of kilobytes."""

    def __repr__(self) -> str:
        shown = ("num_parts", "num_nodes", "num_edges", "method", "replication_factor", "edge_balance")
        words = [f"{name}={self[name]!r}" for name in shown if name in self]
        return f"Manifest({self.get('name')!r}, {', '.join(words)}, {len(self)} keys)"


def check_size(edge_list: EdgeList, num_parts: int, name: str) -> None:
    """Refuse more parts than arcs: some rank would have nothing to do at all."""
    if edge_list.num_arcs == 0:
        raise InputError(f"graph {name!r} has no edges: there is nothing to cut")
    if num_parts > edge_list.num_arcs:
        raise InputError(f"{num_parts} parts are more than the {edge_list.num_arcs} arcs of graph {name!r}")


class Clock:
    """Seconds per phase, and the caller's progress report."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress or (lambda phase, done, total: None)
        self._began: dict[str, float] = {}
        self._phase, self._total, self._done = "", 0, 0

    def start(self, phase: str, total: int) -> None:
        """A phase of `total` steps begins; the one before it is over."""
        # A phase that did not report its end is shown as complete when the next one begins.
        if self._began and self._done < self._total:
            self.step(self._total)
        self._began[phase] = time.perf_counter()
        self._phase, self._total, self._done = phase, total, 0
        self._progress(phase, 0, total)

    def step(self, done: int, total: int | None = None) -> None:
        """`done` steps of this phase are done (of another total, if one is given)."""
        self._total, self._done = total or self._total, done
        self._progress(self._phase, done, self._total)

    def seconds(self) -> dict[str, float]:
        # A phase ends where the next begins.
        times = [*self._began.values(), time.perf_counter()]
        return {phase: round(times[i + 1] - times[i], 3) for i, phase in enumerate(self._began)}


def describe_cut(graph: GraphData, edge_list: EdgeList, book: PartitionBook, section: dict[str, Any]) -> dict[str, Any]:
    """What the manifest says of a cut; section: of `describe_graph`."""
    measures = ("replication_factor", "edge_balance", "owned_balance", "copies_balance")
    return {
        "format_version": FORMAT_VERSION,
        "name": graph.name,
        "num_parts": book.num_parts,
        "num_nodes": int(graph.num_nodes),
        # num_edges: of the input; num_list_edges: of the edge list, after merging, with self-loops added or removed.
        "num_edges": len(graph.edges),
        "num_list_edges": len(edge_list.src),
        "num_arcs": int(edge_list.num_arcs),
        "direction": edge_list.direction,
        "self_loops": edge_list.self_loops,
        "edge_report": {key: int(value) for key, value in edge_list.report.items()},
        **{name: round(getattr(book, name), 6) for name in measures},
        "capacities": None if book.cut.capacities is None else [float(speed) for speed in book.cut.capacities],
        "exchange_rows": book.exchange_rows,
        "max_rank_rows": book.max_rank_rows,
        "pair_rows": book.pair_rows.tolist(),
        "graph": section,
    }


def describe_graph(graph: GraphData, edge_list: EdgeList, clusters: bool = False) -> dict[str, Any]:
    """The `graph` section of the manifest: widths, kinds, labelled vertices per split, and splits of edges if any."""
    counts = {split: int(mask.sum()) for split, mask in graph.split_masks().items()}
    # What few graphs have: names of classes, and weights that some models cannot divide by.
    rare: dict[str, Any] = {"class_names": list(graph.class_names)} if graph.class_names else {}
    rare |= {"flat_values": True} if graph.node_values is not None and graph.node_values.ndim == 1 else {}
    rare |= {} if graph.node_names is None else {"name_bytes": name_bytes(graph.node_names)}
    rare |= {} if graph.arc_order == "listed" else {"arc_order": graph.arc_order}
    bad = 0 if edge_list.edge_weight is None else int(np.count_nonzero(edge_list.edge_weight <= 0))
    rare |= {"nonpositive_weights": bad} if bad else {}
    return {
        "num_feats": int(graph.num_feats),
        "num_classes": int(graph.num_classes),
        "labels": graph.labels is not None,
        "multilabel": bool(graph.multilabel),
        "sparse_feats": hasattr(graph.feats, "tocsr"),
        "edge_weight": edge_list.edge_weight is not None,
        "directed": bool(graph.directed),
        "num_edge_feats": graph.num_edge_feats,
        "num_relations": num_relations(graph, edge_list),
        "num_node_types": graph.num_node_types,
        **counts,
        **{name: count for name in RARE if (count := getattr(graph, name))},
        **rare,
        **_describe_types(graph, edge_list),
        **describe_edge_splits(graph),
        **({"clusters": True} if clusters else {}),
    }


def _describe_types(graph: GraphData, edge_list: EdgeList) -> dict[str, Any]:
    """Types, relations of arcs, and their columns (see `part_arrays`); empty for a graph without types."""
    if not graph.types:
        return {}
    columns = {
        kind: {name: _kind(name, values) for name, values in graph.typed.get(kind, {}).items()} for kind in graph.types
    }
    classes = {
        kind: list(known)
        if isinstance(known := graph.type_classes.get(kind, 0), tuple)
        else of_type(graph, kind).num_classes
        for kind in graph.types
        if "labels" in columns[kind]
    }
    of_relations = [
        {name: _kind(name, values) for name, values in graph.relation_columns.get(relation, {}).items()}
        for relation in graph.relations
    ]
    relations = arc_relation_names(graph, edge_list)
    return {
        "types": list(graph.types),
        "type_counts": [int(count) for count in graph.type_counts],
        "relations": [list(relation) for relation in relations],
        "typed": columns,
        "type_classes": classes,
        "relation_columns": of_relations * (len(relations) // max(len(of_relations), 1)),
    }


def _kind(name: str, values: Any) -> list[Any]:
    """How a part stores a column: its dtype and widths, or "csr" and the width, or "text" and its bytes."""
    if hasattr(values, "tocsr"):
        return ["csr", int(values.shape[1])]
    if values.dtype.kind in "US":
        return ["text", name_bytes(values)]
    dtype = values.dtype.name if name.endswith("mask") or (name == "labels" and values.ndim == 2) else "int64"
    return ["float32" if name in NUMBERS else dtype, *map(int, values.shape[1:])]


def name_bytes(names: np.ndarray) -> int:
    """The width of texts: bytes of the longest; 0 for whole numbers."""
    if names.dtype.kind != "U":
        return 0
    blocks = (np.char.encode(names[i : i + NAMES_AT_ONCE], "utf-8") for i in range(0, len(names), NAMES_AT_ONCE))
    return max((block.dtype.itemsize for block in blocks), default=1)


def name_rows(names: np.ndarray, width: int) -> np.ndarray:
    """Names [n] as rows. Raises: InputError for a number that int64 does not hold."""
    if width:
        return np.char.encode(names, "utf-8").astype(f"S{width}").view(np.uint8).reshape(-1, width)
    if names.dtype.kind == "u" and names.size and int(names.max()) >= 1 << 63:
        raise InputError(f"node_names: {names.max()} is beyond 63 bits: give texts, names.astype(str)")
    return names.astype(np.int64)


def names_of(rows: np.ndarray) -> np.ndarray:
    if rows.ndim == 1:
        return rows
    return np.char.decode(np.ascontiguousarray(rows).view(f"S{rows.shape[1]}").reshape(-1), "utf-8")
