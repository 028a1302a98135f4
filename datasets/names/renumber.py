"""Vertices that have names, or sparse numbers, become the vertices 0 … N-1.

Legend: E edges, N vertices.
"""

import warnings
from typing import Any

import numpy as np

from distgnn.datasets.objects.arrays import edge_pairs
from distgnn.datasets.objects.values import as_array, refuse_missing
from distgnn.errors import GraphWarning, InputError

NO_NAMES = ("nan", "NaN", "None", "<NA>", "NaT")  # what astype(str) makes of missing values


def renumber(edges: Any, ids: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Edges between 0 … N-1 of edges between any ids: names, or numbers with gaps.

    Args:
        edges: [E, 2], [2, E] or a pair (sources, targets), of texts or whole numbers.
        ids: [N] the ids of all vertices, each once, in the order that features and labels have; vertex i is `ids[i]`.
            Without it the ids that some edge holds, sorted.
    Returns: edges int64 [E, 2], ids [N]: row i of features and of predictions is the vertex `ids[i]`.
    Raises: InputError for ids that cannot be sorted or are given twice, and for an edge to an id that is not in `ids`.
    Notes: one sort of the edges (or of the ids). Texts that numpy and pandas make of no value ("nan", "None") are
        warned of.

    Example:
        >>> edges, names = dg.renumber([["ann", "bob"], ["bob", "eve"]])
        >>> edges
        array([[0, 1],
               [1, 2]])
        >>> names
        array(['ann', 'bob', 'eve'], dtype='<U3')
    """
    pairs = _comparable("edges", edge_pairs(edges))
    if pairs.dtype.kind == "U" and np.isin(pairs, NO_NAMES).any():
        place = np.argwhere(np.isin(pairs, NO_NAMES))[0]
        called = str(pairs[tuple(place)])
        text = f"edges: row {place[0]} holds a vertex called {called!r}: was it no value before astype(str)?"
        warnings.warn(text, GraphWarning, stacklevel=2)
    if ids is None:
        known, places = np.unique(pairs, return_inverse=True)
        return places.reshape(pairs.shape).astype(np.int64, copy=False), known
    known = _comparable("ids", as_array(ids))
    if known.ndim != 1:
        raise InputError(f"ids: expected a list, one id per vertex, found shape {list(known.shape)}")
    mixed = (known.dtype.kind == "U") != (pairs.dtype.kind == "U")
    if len(pairs) and (mixed or np.result_type(known, pairs).kind == "f"):  # int64 and uint64 meet as floats
        raise InputError(f"edges hold {pairs.dtype} and ids {known.dtype}: give both as texts, or as int64")
    return _places(pairs, known), known


def _comparable(name: str, values: np.ndarray) -> np.ndarray:
    """Texts as numpy's texts, numbers as they are; anything else cannot be told apart for sure."""
    if values.dtype == object:
        refuse_missing(name, values, "{} has no name (None or NaN): take such rows out, or name them")
        if all(isinstance(value, str) for value in values.flat):
            values = values.astype(str)
    if values.dtype.kind not in "Uiu":
        raise InputError(
            f"{name}: expected texts or whole numbers, found {values.dtype}; {name}.astype(str) makes texts"
        )
    return values


def _places(pairs: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The place of each id of the edges in `known`."""
    ordered = np.sort(known)
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(again):
        raise InputError(f"ids: {ordered[again[0]].item()!r} is there twice; name each vertex once")
    places, missing = places_of(pairs, known)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise InputError(f"edges: row {row} holds {pairs[row, column].item()!r}, which is not in ids")
    return places


def places_of(values: np.ndarray, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of each value in `known`, int64, and which of them are not there."""
    order = np.argsort(known, kind="stable")
    ordered = known[order]
    places = np.searchsorted(ordered, values)
    missing = np.ones(values.shape, dtype=bool)
    inside = places < len(ordered)
    missing[inside] = ordered[places[inside]] != values[inside]
    places[missing] = 0
    return (order[places] if len(order) else places).astype(np.int64, copy=False), missing
