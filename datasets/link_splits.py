"""Splits of edges: checked at the border, and as a part holds them.

A part holds the pairs whose source it owns, each with its row in the whole split (partition/core/part_arrays.py).

Legend: N vertices, E edges of the graph, M pairs of a split, K negatives.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distgnn.datasets.fields import EDGE_SPLITS, HELD_OUT, SPLITS, GraphFields
from distgnn.datasets.pairs import BLOCK, are_edges, pair_keys, undirected_keys


def has_edge_splits(graph: GraphFields) -> bool:
    return any(getattr(graph, name) is not None for name in EDGE_SPLITS)


def has_edge_labels(graph: GraphFields) -> bool:
    """Are the edges of the splits labelled, so that they may be edges of the graph?"""
    return any(getattr(graph, f"{split}_edge_labels") is not None for split in SPLITS)


def check_edge_splits(graph: GraphFields) -> None:
    """Raise through `graph.fail` at the first array of a split of edges that is wrong."""
    if not has_edge_splits(graph):
        return
    for split in SPLITS:
        _check_pairs(graph, f"{split}_edges")
        _check_labels(graph, split)
    for split in HELD_OUT:
        _check_pairs(graph, f"{split}_negatives")
        name, pairs = f"{split}_negative_targets", getattr(graph, f"{split}_edges")
        targets = getattr(graph, name)
        if targets is not None:
            if pairs is None or targets.ndim != 2 or len(targets) != len(pairs) or targets.shape[1] < 1:
                rows = "no edges of this split" if pairs is None else f"{len(pairs)} edges"
                expected = f"[M, K], K vertices per row of {split}_edges ({rows})"
                graph.fail(name, f"expected shape {expected}, found {list(targets.shape)}")
            _check_ids(graph, name, targets)
        if graph.num_edges == 0 and pairs is not None:
            graph.fail(f"{split}_edges", "the graph itself has no edges: held-out edges need others that pass messages")
    if not has_edge_labels(graph):
        check_held_out(graph, either_way=not graph.directed)


def check_held_out(graph: GraphFields, either_way: bool) -> None:
    """Raise where an edge to be predicted is an edge of the graph; either_way: so is its reverse."""
    if not graph.held_out or has_edge_labels(graph):
        return
    make = undirected_keys if either_way else pair_keys
    for split in HELD_OUT:
        pairs = getattr(graph, f"{split}_edges")
        if pairs is None or not len(pairs):
            continue
        keys = make(np.asarray(pairs[:, 0]), np.asarray(pairs[:, 1]), graph.num_nodes)
        ordered = np.unique(keys)
        found = are_edges(ordered, graph.edges, graph.num_nodes, make)
        if found.any():
            row = int(np.argmax(np.isin(keys, ordered[found])))
            u, v = pairs[row]
            graph.fail(
                f"{split}_edges",
                f"row {row}, the edge {u} - {v}, is still an edge of the graph, which would pass messages along "
                'what is to be predicted: take it out of edges (or say "held_out": false, where links come again)',
            )


def _check_pairs(graph: GraphFields, name: str) -> None:
    pairs = getattr(graph, name)
    if pairs is None:
        return
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        graph.fail(name, f"expected shape [M, 2], one pair of vertices per row, found {list(pairs.shape)}")
    _check_ids(graph, name, pairs)


def _check_ids(graph: GraphFields, name: str, ids: np.ndarray) -> None:
    if ids.dtype.kind not in "iu":
        graph.fail(name, f"expected integer vertex ids, found {ids.dtype}; store them as int32 or int64")
    step = max(BLOCK // max(ids.shape[1], 1), 1)
    for start in range(0, len(ids), step):
        block = ids[start : start + step]
        bad = (block < 0) | (block >= graph.num_nodes)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            text = f"row {start + row} holds vertex {block[row, column]}; ids run from 0 to {graph.num_nodes - 1}"
            graph.fail(name, text)


def _check_labels(graph: GraphFields, split: str) -> None:
    name, pairs = f"{split}_edge_labels", getattr(graph, f"{split}_edges")
    labels = getattr(graph, name)
    if labels is None:
        if has_edge_labels(graph) and pairs is not None:
            graph.fail(f"{split}_edges", f"these edges have no labels ({name}), those of other splits have some")
        return
    if pairs is None:
        graph.fail(name, f"these labels have no edges ({split}_edges)")
    if labels.shape != (len(pairs),):
        graph.fail(name, f"expected shape [{len(pairs)}], one per row of {split}_edges, found {list(labels.shape)}")
    given = [getattr(graph, f"{one}_edge_labels") for one in SPLITS]
    first = next(one for one in given if one is not None)
    if labels.dtype.kind not in "fiu":
        graph.fail(name, f"expected whole numbers or floats, found {labels.dtype}")
    if (labels.dtype.kind == "f") != (first.dtype.kind == "f"):
        kinds = f"{labels.dtype} here, {first.dtype} in another split"
        graph.fail(name, f"{kinds}: edge labels are whole numbers (classes) in all splits, or floats (values) in all")
    bad = ~np.isfinite(labels) if labels.dtype.kind == "f" else labels < 0
    if bad.any():
        row = int(np.argmax(bad))
        graph.fail(name, f"row {row} holds {labels[row]}; expected a class from 0 on, or a finite value")


PAIRS_AT_ONCE = 1 << 22
Arrays = dict[str, np.ndarray]


def edge_splits(graph: GraphFields) -> Arrays:
    """All arrays of splits of edges; without `train_edges` all edges of the graph are for training. Empty for none."""
    if not has_edge_splits(graph):
        return {}
    found = {name: getattr(graph, name) for name in EDGE_SPLITS if getattr(graph, name) is not None}
    if "train_edges" not in found and not has_edge_labels(graph):
        found = {"train_edges": graph.edges} | found
    return found


def describe_edge_splits(graph: GraphFields) -> dict[str, Any]:
    """What the `graph` section of a manifest says of splits of edges; empty for none."""
    splits = edge_splits(graph)
    if not splits:
        return {}
    said: dict[str, Any] = {"edge_splits": {name: list(array.shape) for name, array in splits.items()}}
    said["held_out"] = bool(graph.held_out)
    labels = [array for name, array in splits.items() if name.endswith("_labels")]
    if labels:
        values = labels[0].dtype.kind == "f"
        said["edge_labels"] = "float32" if values else "int64"
        said["num_edge_classes"] = 0 if values else int(max(array.max(initial=-1) for array in labels)) + 1
    return said


def part_edge_splits(graph: GraphFields, owned_ids: np.ndarray) -> Arrays:
    """The arrays of the part that owns these vertices; empty for a graph without splits of edges."""
    splits = edge_splits(graph)
    if not splits:
        return {}
    owned = np.zeros(graph.num_nodes, dtype=bool)
    owned[owned_ids] = True

    def owned_rows(pairs: np.ndarray) -> np.ndarray:
        """Rows of pairs whose source is owned, int64; pairs may be mapped."""
        starts = range(0, len(pairs), PAIRS_AT_ONCE)
        blocks = (np.flatnonzero(owned[pairs[start : start + PAIRS_AT_ONCE, 0]]) + start for start in starts)
        return np.concatenate([np.zeros(0, dtype=np.int64), *blocks])

    found: Arrays = {}
    for split in SPLITS:
        if f"{split}_edges" in splits:
            rows = owned_rows(splits[f"{split}_edges"])
            found[f"{split}_edge_ids"] = rows
            for name in ("edges", "edge_labels", "negative_targets"):
                if f"{split}_{name}" in splits:
                    found[f"{split}_{name}"] = _stored(splits[f"{split}_{name}"][rows])
        if f"{split}_negatives" in splits:
            rows = owned_rows(splits[f"{split}_negatives"])
            found[f"{split}_negatives"] = _stored(splits[f"{split}_negatives"][rows])
            found[f"{split}_negative_ids"] = rows
    return found


def _stored(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=np.float32 if array.dtype.kind == "f" else np.int64)


def whole_edge_splits(parts: Sequence[Arrays], shapes: dict[str, list[int]]) -> Arrays:
    """The whole arrays, of these shapes, from all parts' arrays. Raises: ValueError where these make up none."""
    found: Arrays = {}
    for name, shape in shapes.items():
        ids = np.concatenate([part[ids_of(name)] for part in parts])
        order = np.argsort(ids, kind="stable")
        if len(ids) != shape[0] or not np.array_equal(ids[order], np.arange(len(ids))):
            raise ValueError(f"the parts do not make up {name}: {len(ids)} rows of {shape[0]}")
        found[name] = np.concatenate([part[name] for part in parts])[order]
    return found


def ids_of(name: str) -> str:
    """The array with the rows of the array `name` in its split."""
    split = name.partition("_")[0]
    return f"{split}_negative_ids" if name == f"{split}_negatives" else f"{split}_edge_ids"


def problem_of(arrays: Arrays, graph: dict[str, Any], owned_ids: np.ndarray, num_nodes: int) -> tuple[str, str] | None:
    """(name, what is wrong) of the first array of a part that is out of range; `graph`: the section of the manifest."""
    for name, shape in graph.get("edge_splits", {}).items():
        array, ids = arrays[name], arrays[ids_of(name)]
        if len(array) != len(ids):
            return name, f"{len(array)} rows for {len(ids)} ids"
        if len(ids) and (ids[0] < 0 or ids[-1] >= shape[0] or (np.diff(ids) <= 0).any()):
            return ids_of(name), f"rows must rise from 0 to {shape[0] - 1}"
        if name.endswith("_labels"):
            classes = graph.get("num_edge_classes", 0)
            if classes and array.size and (array.min() < 0 or array.max() >= classes):
                return name, f"labels must lie in 0 to {classes - 1}"
            continue
        if array.size and (array.min() < 0 or array.max() >= num_nodes):
            return name, f"ids must lie in 0 to {num_nodes - 1}"
        if not name.endswith("_targets") and not np.isin(array[:, 0], owned_ids).all():
            return name, "a pair whose source this part does not own"
    return None
