"""Splits of edges as a part holds them: the pairs whose source it owns, each with its row in the whole split.

The arrays: partition/core/part_arrays.py; ids rise.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from distgnn.datasets.fields import EDGE_SPLITS, SPLITS, GraphFields
from distgnn.datasets.links.check import has_edge_labels, has_edge_splits

BLOCK = 1 << 22
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
        starts = range(0, len(pairs), BLOCK)
        blocks = (np.flatnonzero(owned[pairs[start : start + BLOCK, 0]]) + start for start in starts)
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
