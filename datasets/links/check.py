"""Check splits of edges at the border, and that held-out edges pass no messages.

Legend: N vertices, E edges of the graph, M pairs of a split, K negatives.
"""

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
