"""Labels of files in the one form that `GraphData` holds, and a hint where ids of a split are a mask."""

from pathlib import Path

import numpy as np

from distgnn.errors import GraphFormatError


def tidy_labels(labels: np.ndarray, path: Path) -> np.ndarray:
    """Labels as int64 [N] or int8 [N, C]: NaN becomes -1 (none), one column becomes a list."""
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.dtype.kind == "f":
        whole = np.where(np.isnan(labels), -1, labels)
        if not np.array_equal(whole, np.floor(whole)):
            raise GraphFormatError(f"{path}: labels must be whole numbers, or NaN for none")
        labels = whole
    elif labels.dtype.kind not in "iub":
        raise GraphFormatError(f"{path}: expected integer labels, found {labels.dtype}")
    if labels.ndim == 2 and labels.dtype.itemsize == 1 and labels.dtype.kind in "iu":
        return labels
    if labels.ndim == 2:
        in_range = labels.size == 0 or (labels.min() >= -1 and labels.max() <= 1)
        return labels.astype(np.int8 if in_range else np.int64)
    return labels.astype(np.int64)


def mask_hint(ids: np.ndarray, num_nodes: int) -> str:
    """What to do, if the ids of a split are masks instead; else nothing. Ids of N > 2 vertices are never all 0 or 1."""
    if ids.ndim == 2 and ids.shape[0] == num_nodes and ids.shape[1] > 1:
        return "; of several masks choose one column: mask[:, 0]"
    if ids.shape != (num_nodes,) or num_nodes <= 2 or ids.dtype.kind not in "iufb" or ((ids != 0) & (ids != 1)).any():
        return ""
    return "; it looks like a mask: give it as bool (mask.bool(), mask.astype(bool)), in a file as np.flatnonzero(mask)"
