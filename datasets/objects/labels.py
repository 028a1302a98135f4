"""Labels as users have them, as classes from 0, -1 for none: what is changed is said.

Legend: N vertices, C classes.
"""

from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.objects.values import as_array, as_float32, fail_at, in_rows, is_missing, name_list
from distgnn.errors import GraphFormatError, InputError

FEWEST_GAPPED = 8  # classes up to here stay as they are, whatever gaps they have


def as_labels(
    values: Any, findings: Findings, num_classes: int | None = None, task: str | None = None
) -> dict[str, np.ndarray | Any]:
    """The fields that labels give: `labels` (and `class_names`, where texts or numbers with gaps were mapped), or
    `node_values`, in the shape that they have.

    Whole numbers are classes. Floats are values, but for several 0 and 1 of a vertex, which are labels.

    Args:
        num_classes: where it is known, whole numbers are classes and stay as they are. task: `regression` takes all
            numbers as values, another all whole numbers as classes.
    """
    array = as_array(values, "labels")
    if _are_values(array, values, task or (None if num_classes is None else "node")):
        values = array.astype(np.int8) if array.dtype == bool else as_float32("labels", array, findings)
        return {"node_values": values}
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.dtype == object or array.dtype.kind in "US":
        if array.ndim != 1:
            raise InputError(f"labels: expected one text per vertex, found shape {list(array.shape)}")
        none = np.array([is_missing(value) or str(value) == "" for value in array], dtype=bool)
        names, codes = np.unique(array[~none].astype(str), return_inverse=True)
        labels = np.full(len(array), -1, np.int64)  # no text, or an empty one, is no label
        labels[~none] = codes
        return _named(labels, names, findings)
    if array.dtype.kind not in "biuf":
        raise InputError(f"labels: expected integer labels, texts or numbers, found {array.dtype}")
    if array.dtype.kind == "f":
        known = array[~np.isnan(array)]
        infinite = in_rows(np.isinf(array)) if array.ndim else np.zeros(0, bool)
        if infinite.any():
            fail_at("labels", infinite, "{} is infinite; NaN or -1 says that there is no label")
        if known.size and np.abs(known).max() >= 2.0**53:
            fail_at("labels", np.abs(array) >= 2.0**53, "{} is no whole number that float64 holds")
        array = np.where(np.isnan(array), -1, array).astype(np.int64)
    if array.ndim == 2:
        in_range = array.size == 0 or (array.min() >= -1 and array.max() <= 1)
        return {"labels": array.astype(np.int8 if in_range else np.int64, copy=False)}
    if array.dtype == np.uint64 and array.size and int(array.max()) >= 1 << 63:
        fail_at("labels", array >= np.uint64(1 << 63), "{} holds a label of 64 bits")
    array = array.astype(np.int64, copy=False)
    return {"labels": array} if num_classes is not None else close_gaps(array, findings)


def _are_values(array: np.ndarray, given: Any, task: str | None) -> bool:
    """Whether labels are what a regression predicts."""
    if array.dtype.kind not in "biuf" or task == "regression":
        return array.dtype.kind in "biuf"
    if array.dtype.kind != "f" or np.isinf(array).any():
        return False
    known = array[~np.isnan(array)]
    if (known != np.rint(known)).any():
        return True
    several = array.ndim == 2 and array.shape[1] > 1 and bool((np.abs(known) <= 1).all())
    return not (task or several or _were_whole(given))


def _were_whole(given: Any) -> bool:
    """Whether these floats are whole numbers among which some were missing."""
    column = given.to_numpy() if hasattr(given, "to_numpy") else given
    if not isinstance(column, list | tuple) and getattr(getattr(column, "dtype", None), "kind", "") != "O":
        return "int" in str(getattr(given, "dtype", "")).lower()
    objects = np.asarray(column, dtype=object).reshape(-1)
    return all(is_missing(one) or isinstance(one, int | np.integer) for one in objects)


def close_gaps(labels: np.ndarray, findings: Findings) -> dict[str, Any]:
    """Labels whose numbers are mostly gaps (fewer than half of 0 to the largest occur) as classes without gaps."""
    top = int(labels.max(initial=-1))
    if top < FEWEST_GAPPED or labels.ndim != 1 or labels.min() < -1:
        return {"labels": labels}
    values, codes = np.unique(labels, return_inverse=True)
    classes = values[values >= 0]
    if 2 * len(classes) > top:
        return {"labels": labels}
    return _named((codes - (len(values) - len(classes))).clip(-1).astype(np.int64), classes, findings)


def _named(labels: np.ndarray, classes: np.ndarray, findings: Findings) -> dict[str, Any]:
    text = f"classes 0 to {len(classes) - 1} ← labels {name_list(classes)} (class_names)"
    findings.add("renamed", "labels", text, len(classes))
    return {"labels": labels, "class_names": tuple(str(value) for value in classes)}


def tidy_labels(labels: np.ndarray, path: Path) -> np.ndarray:
    """Labels of a file as int64 [N] or int8 [N, C]: NaN becomes -1 (none), one column becomes a list."""
    if labels.dtype.kind not in "biuf":
        raise GraphFormatError(f"{path}: expected integer labels, found {labels.dtype}")
    try:
        found = as_labels(labels, Findings(), num_classes=0)
    except InputError as error:
        raise GraphFormatError(f"{path}: {error}") from None
    if "labels" not in found:
        raise GraphFormatError(f"{path}: labels must be whole numbers, or NaN for none")
    return found["labels"]
