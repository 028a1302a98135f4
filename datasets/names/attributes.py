"""Attributes of a NetworkX graph: which become fields, and a warning for those, or values of a matrix, that are left.

NetworkX has no agreed names (`x` and `y` are often coordinates), so that a field names its attribute: `feats="x"`.
"""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from distgnn.datasets.fields import SPLITS
from distgnn.errors import InputError

OF_NODES = ("feats", "labels", "node_types", *SPLITS)
OF_EDGES = ("edge_weight", "edge_feats", "edge_types")
# Attribute -> the field that it probably is: as PyG and DGL call it.
USUAL = {
    "x": "feats",
    "feat": "feats",
    "y": "labels",
    "label": "labels",
    "train_mask": "train",
    "val_mask": "valid",
    "test_mask": "test",
}


def read_attributes(graph: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields, those whose value is the name of an attribute replaced by its column.

    Raises: InputError where a vertex or an edge lacks the attribute, or its values make no array.
    """
    found = dict(fields)
    for key, name in fields.items():
        if isinstance(name, str) and key in OF_NODES:
            found[key] = _column(key, name, graph.nodes(data=name, default=None))
        elif isinstance(name, str) and key in OF_EDGES:
            found[key] = _column(key, name, ((item[:2], item[-1]) for item in graph.edges(data=name, default=None)))
    return found


def _column(key: str, name: str, items: Iterable[tuple[Any, Any]]) -> np.ndarray:
    values = []
    for item, value in items:
        if value is None:
            raise InputError(f"{key}: {item!r} has no attribute {name!r}; every one needs it, or give an array instead")
        values.append(np.asarray(value))
    try:
        column = np.array(values)
    except ValueError:
        raise InputError(f"{key}: the attribute {name!r} has values of different lengths") from None
    return column[:, None] if key.endswith("feats") and column.ndim == 1 else column


def warn_of_the_rest(graph: Any, given: Iterable[str], weighted: bool | None) -> None:
    """Warn once of attributes that look like fields and are not taken; `given`: fields that the user has decided on."""
    decided = set(given)
    _, first = next(iter(graph.nodes(data=True)), (None, {}))
    left = [f"{USUAL[name]}={name!r}" for name in first if name in USUAL and USUAL[name] not in decided]
    if weighted is None and "edge_weight" not in decided:
        left += ["weighted=True"] if any("weight" in data for *_, data in graph.edges(data=True)) else []
    if left:
        _warn(
            f"attributes of this NetworkX graph are not taken; take them with GraphData.from_networkx(graph, "
            f"{', '.join(left)}); None, or weighted=False, leaves them out without this warning"
        )


def warn_of_values(matrix: Any, given: Iterable[str], weighted: bool | None) -> None:
    """Warn once where a scipy matrix has values besides 1 and nothing says whether they are weights."""
    if weighted is None and "edge_weight" not in set(given) and (matrix.data != 1).any():
        _warn(
            "the values of this scipy matrix are not taken as edge weights; take them with "
            "GraphData.from_scipy(matrix, weighted=True); weighted=False leaves them out without this warning"
        )


def _warn(text: str) -> None:
    warnings.warn(text, stacklevel=5)  # at the line that calls `GraphData.from_…`
