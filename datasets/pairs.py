"""Pairs of vertices as single numbers: which edges repeat, are merged, or have an opposite.

Legend: N vertices, E edges. A key is source · N + target, int64 (N < 3e9). Sorting values is several times faster than
sorting positions, so positions are looked at only where something repeats.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from distgnn.datasets.fields import GraphFields
from distgnn.datasets.objects.values import as_array, in_rows
from distgnn.errors import InputError

BLOCK = 1 << 22
ROUNDING = 1e-6  # relative: what sums in another order, or float32, make of one number


def pair_keys(sources: np.ndarray, targets: np.ndarray, num_nodes: int) -> np.ndarray:
    """[E] keys of ordered pairs."""
    keys = sources.astype(np.int64)
    keys *= num_nodes
    keys += targets
    return keys


def undirected_keys(sources: np.ndarray, targets: np.ndarray, num_nodes: int) -> np.ndarray:
    """[E] keys of pairs without order."""
    keys = np.empty(len(sources), dtype=np.int64)
    for start in range(0, len(keys), BLOCK):
        ends = sources[start : start + BLOCK], targets[start : start + BLOCK]
        keys[start : start + BLOCK] = pair_keys(np.minimum(*ends), np.maximum(*ends), num_nodes)
    return keys


def are_edges(
    ordered: np.ndarray, edges: np.ndarray, num_nodes: int, make: Callable[..., Any] = pair_keys
) -> np.ndarray:
    """[K] bool: which of some keys, sorted, are edges; edges [E, 2] may be mapped and are looked at block by block."""
    found = np.zeros(len(ordered), dtype=bool)
    for start in range(0, len(edges), BLOCK):
        block = np.asarray(edges[start : start + BLOCK])
        of_edges = make(block[:, 0], block[:, 1], num_nodes)
        place = np.minimum(np.searchsorted(ordered, of_edges), len(ordered) - 1)
        found[place[ordered[place] == of_edges]] = True
    return found


def count_pairs(sources: np.ndarray, targets: np.ndarray, num_nodes: int, directed: bool) -> tuple[int, int]:
    """Edges beyond the first of each pair, and (directed) pairs of vertices with arcs both ways."""
    make = pair_keys if directed else undirected_keys
    keys = make(sources, targets, num_nodes)
    keys.sort()
    if not directed:
        return int(np.count_nonzero(keys[1:] == keys[:-1])), 0
    unique = keys[np.concatenate([[True], keys[1:] != keys[:-1]])] if len(keys) else keys
    duplicates = len(keys) - len(unique)
    del keys
    keys = undirected_keys(unique // num_nodes, unique % num_nodes, num_nodes)
    keys.sort()
    return duplicates, int(np.count_nonzero(keys[1:] == keys[:-1]))


def repeated_edges(keys: np.ndarray) -> np.ndarray:
    """Sorted numbers of the edges whose key some earlier row has.

    Notes: one sort of the values (16 bytes per edge); then only edges that share a slot of a hash table with a repeated
        key are looked at closely.
    """
    ordered = np.sort(keys)
    repeated = ordered[1:][ordered[1:] == ordered[:-1]]
    del ordered
    if len(repeated) == 0:
        return np.zeros(0, dtype=np.int64)
    bits = min(max(len(repeated).bit_length() + 3, 10), 30)
    table = np.zeros(1 << bits, dtype=bool)
    table[_slots(repeated, bits)] = True
    blocks = range(0, len(keys), BLOCK)
    found = [np.flatnonzero(table[_slots(keys[start : start + BLOCK], bits)]) + start for start in blocks]
    edges = np.concatenate(found)
    edges = edges[np.argsort(keys[edges], kind="stable")]
    again = keys[edges[1:]] == keys[edges[:-1]]
    return np.sort(edges[1:][again])


def _slots(keys: np.ndarray, bits: int) -> np.ndarray:
    """Multiplicative hashing to `bits` bits."""
    return (keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(64 - bits)


def halve(sources: Any, targets: Any, num_nodes: int, columns: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """Numbers of the arcs that stay, one of each pair of opposite ones, their columns and `arc_order`.

    Args: columns: field -> [E] or [E, D].
    Raises: InputError for an arc without an opposite, and for two that do not carry the same.
    """
    up, down = np.flatnonzero(sources < targets), np.flatnonzero(sources > targets)

    def pairs() -> list[np.ndarray]:
        return [pair_keys(sources[up], targets[up], num_nodes), pair_keys(targets[down], sources[down], num_nodes)]

    keys = pairs()
    for key in keys:  # in place, and made again for columns: a copy would be the peak of reading a large graph
        key.sort()
    if not np.array_equal(keys[0], keys[1]):
        raise InputError("the graph is not symmetric: some arc has no opposite; load it with directed=True")
    keys = pairs() if columns else []
    order, half = _arc_order(sources, targets), len(sources) // 2
    kept = np.arange(half) if order == "listed" else np.flatnonzero(sources <= targets)
    halved: dict[str, Any] = {"arc_order": order}
    for name, values in columns.items():
        column = as_array(values, name)
        if column.ndim == 0 or len(column) != len(sources):
            raise InputError(f"{name}: expected {len(sources)} rows, one per arc, found shape {list(column.shape)}")
        first, second = (column[rows[_order(key, column[rows])]] for rows, key in zip((up, down), keys, strict=True))
        if first.dtype.kind == "f":
            largest = np.abs(first[np.isfinite(first)]).max(initial=0)
            with np.errstate(invalid="ignore"):
                equal = np.isclose(first, second, rtol=ROUNDING, atol=1e-12 * float(largest), equal_nan=True)
        else:
            equal = np.asarray(first == second)
        same = ~in_rows(~equal)
        if not same.all():
            arc = int(up[_order(keys[0], column[up])][int(np.argmin(same))])
            what = "the weights" if name == "edge_weight" else name
            raise InputError(
                f"{what} are not symmetric: the arcs {sources[arc]} -> {targets[arc]} "
                f"and back differ ({np.count_nonzero(~same)} pairs do): load the graph with directed=True"
            )
        halved[name] = column[kept]
    return kept, halved


def _arc_order(sources: np.ndarray, targets: np.ndarray) -> str:
    """See `GraphFields.arc_order`: "listed" is half of the arcs, then their opposites; loops would be there twice."""
    half = len(sources) // 2
    turned = np.array_equal(sources[:half], targets[half:]) and np.array_equal(targets[:half], sources[half:])
    if turned and not (sources[:half] == targets[:half]).any():
        return "listed"
    for start in range(0, len(sources), BLOCK):
        first, second = (ends[start : start + BLOCK + 1] for ends in (sources, targets))
        if not ((first[1:] > first[:-1]) | ((first[1:] == first[:-1]) & (second[1:] >= second[:-1]))).all():
            return "other"
    return "sorted"


def _order(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """By pair, and by value where a pair has several arcs."""
    if values.dtype.kind not in "biuf":
        return np.argsort(keys, kind="stable")
    return np.lexsort([*values.reshape(len(keys), -1).T[::-1], keys]) if values.size else np.zeros(len(keys), np.int64)


Graph = TypeVar("Graph", bound=GraphFields)


def merge_edges(graph: Graph, how: str) -> Graph:
    """A copy of the graph in which no edge is there twice, in the order of the first ones.

    Args: how: "sum", "mean" or "max", of weights and features. The sum of edges without weights is their number.
    Notes: edges of different types stay apart; of an undirected graph u, v and v, u are one edge.
    """
    sources, targets = np.asarray(graph.edges).T
    keys = (pair_keys if graph.directed else undirected_keys)(sources, targets, graph.num_nodes)
    if graph.edge_types is not None:
        keys = np.unique(keys, return_inverse=True)[1] * graph.num_edge_types + np.asarray(graph.edge_types, np.int64)
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    places, kept = np.argsort(order)[places], first[order]
    counts = np.bincount(places, minlength=len(kept)).astype(np.float64)

    def merged(column: np.ndarray) -> np.ndarray:
        values = np.asarray(column, np.float64).reshape(len(places), -1)
        made = np.full((len(kept), values.shape[1]), -np.inf)
        if how == "max":
            np.maximum.at(made, places, values)
        else:
            for place, of_column in enumerate(values.T):
                made[:, place] = np.bincount(places, of_column, len(kept))
            made /= counts[:, None] if how == "mean" else 1
        return made.reshape(len(kept), *column.shape[1:]).astype(np.float32)

    weight = graph.edge_weight
    if weight is not None:
        weight = merged(weight)
    elif how == "sum" and len(kept) < len(places):
        weight = counts.astype(np.float32)
    feats = None if graph.edge_feats is None else merged(graph.edge_feats)
    types = None if graph.edge_types is None else graph.edge_types[kept]
    return replace(graph, edges=graph.edges[kept], edge_weight=weight, edge_feats=feats, edge_types=types)
