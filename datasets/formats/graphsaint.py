"""GraphSAINT's folders: `adj_full.npz`, `feats.npy`, `class_map.json`, `role.json`; `adj_train.npz` is not needed.

class_map.json: {"0": 3, …} one class each, or {"0": [0, 1, …], …} several; role.json: {"tr": [ids], "va": …, "te": …}
"""

from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.array_files import damaged, is_present, read_json, read_npy
from distgnn.datasets.files.matrix import read_rows, square_entries
from distgnn.datasets.files.understood import make_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.errors import GraphFormatError

ROLES = {"train": "tr", "valid": "va", "test": "te"}


def is_saint_folder(folder: Path) -> bool:
    return is_present(folder / "adj_full.npz") and is_present(folder / "role.json")


def read_saint(folder: Path, findings: Findings) -> GraphData:
    """Read and check GraphSAINT's files; values of the matrix, which are all 1 there, are not read."""
    matrix = square_entries(folder / "adj_full.npz", read_rows(folder / "adj_full.npz"))
    num_nodes = matrix.shape[0]
    roles = read_json(folder / "role.json")
    fields: dict[str, Any] = {"labels": _labels(folder / "class_map.json", num_nodes)}
    for name, role in ROLES.items():
        ids = roles.get(role)
        if not isinstance(ids, list) or not all(isinstance(one, int) and abs(one) < 1 << 63 for one in ids):
            raise GraphFormatError(f"{folder / 'role.json'}: {role!r} must be a list of vertices ({name})")
        fields[name] = np.array(ids, np.int64)
    if is_present(folder / "feats.npy"):
        fields["feats"] = read_npy(folder / "feats.npy")
    if is_present(folder / "adj_train.npz"):
        findings.add("not needed", "adj_train.npz", "adj_train.npz")
    return make_graph(folder, (matrix.row.astype(np.int64), matrix.col.astype(np.int64)), num_nodes, findings, fields)


def _labels(path: Path, num_nodes: int) -> np.ndarray:
    classes = read_json(path)
    try:
        ids = np.array([int(name) for name in classes], np.int64)
        values = np.array(list(classes.values()))
    except (ValueError, OverflowError) as error:
        raise damaged(path, error) from error
    if values.dtype.kind not in "iu" or values.ndim not in (1, 2):
        raise GraphFormatError(f"{path}: expected a class, or as many 0 and 1 each, for each vertex")
    outside = (ids < 0) | (ids >= num_nodes)
    if outside.any():
        raise GraphFormatError(f"{path}: vertex {ids[np.argmax(outside)]}: adj_full.npz has {num_nodes} vertices")
    labels = np.full((num_nodes, *values.shape[1:]), -1, np.int64)
    labels[ids] = values
    return labels
