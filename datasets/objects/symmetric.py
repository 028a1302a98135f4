"""One edge of each pair of opposite arcs, with what the arcs carry.

Legend: E arcs.
"""

from typing import Any

import numpy as np

from distgnn.datasets.objects.values import as_array, in_rows
from distgnn.datasets.pairs import halve_symmetric, pair_keys
from distgnn.errors import InputError

ROUNDING = 1e-6  # relative: what sums in another order, or float32, make of one number


def halve(sources: Any, targets: Any, num_nodes: int, columns: dict[str, Any]) -> tuple[np.ndarray, dict[str, Any]]:
    """Numbers of the arcs that stay (source <= target), and their columns.

    Args: columns: field -> [E] or [E, D].
    Raises: InputError where some arc has no opposite, or two opposite arcs carry different values: beyond rounding,
        where they are floats.
    """
    kept = halve_symmetric(sources, targets, num_nodes)
    up, down = np.flatnonzero(sources < targets), np.flatnonzero(sources > targets)
    keys = pair_keys(sources[up], targets[up], num_nodes), pair_keys(targets[down], sources[down], num_nodes)
    halved = {}
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


def _order(keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """By pair, and by value where a pair has several arcs."""
    if values.dtype.kind not in "biuf":
        return np.argsort(keys, kind="stable")
    return np.lexsort([*values.reshape(len(keys), -1).T[::-1], keys]) if values.size else np.zeros(len(keys), np.int64)
