"""Reddit as DGL ships it, and GraphSAINT's folders.

GraphSAINT's `adj_full.npz`, `feats.npy`, `class_map.json` and `role.json` are read; `adj_train.npz` is not needed.
class_map.json: {"0": 3, …} one class each, or {"0": [0, 1, …], …} several; role.json: {"tr": [ids], "va": …, "te": …}
"""

from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.array_files import damaged, is_present, npz_shapes, read_json, read_npy, read_npz
from distgnn.datasets.files.matrix import read_rows, square_entries
from distgnn.datasets.files.understood import make_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.objects.labels import tidy_labels
from distgnn.datasets.pairs import halve
from distgnn.errors import GraphFormatError, InputError

COLUMNS = ("feature", "label", "node_types")  # of reddit_data.npz


def is_reddit_folder(folder: Path) -> bool:
    return is_present(folder / "reddit_data.npz") or is_present(folder / "reddit_graph.npz")


def check_reddit(folder: Path) -> None:
    """Raise GraphFormatError where a download lacks an array, or its arrays are not of one graph."""
    sizes = npz_shapes(folder / "reddit_data.npz", COLUMNS)
    rows = {shape[:1] for shape in sizes.values()}
    sizes |= npz_shapes(folder / "reddit_graph.npz", ("row", "col", "shape"))
    if len(rows) > 1 or len(sizes["feature"]) != 2 or sizes["row"] != sizes["col"]:
        raise GraphFormatError(f"{folder.name}: the arrays of reddit are not of one graph ({sizes}); download it again")


def read_reddit(folder: Path, findings: Findings | None = None) -> GraphData:
    """Read and check Reddit as an undirected graph: the file holds both arcs of each edge, one is kept."""
    graph_path, data_path = folder / "reddit_graph.npz", folder / "reddit_data.npz"
    adjacency = square_entries(graph_path, read_rows(graph_path, as_csr=True))
    data = read_npz(data_path, COLUMNS)
    num_nodes = adjacency.shape[0]
    try:
        rows, halved = halve(adjacency.row, adjacency.col, num_nodes, {})
    except InputError as error:
        raise GraphFormatError(f"{graph_path}: {error}") from error
    edges = np.stack([adjacency.row[rows], adjacency.col[rows]]).T
    types = data["node_types"]
    if types.shape != (num_nodes,):
        raise GraphFormatError(f"{data_path}: node_types must have shape [{num_nodes}], found {list(types.shape)}")
    graph = GraphData("reddit", num_nodes, edges, False, data["feature"], tidy_labels(data["label"], data_path))
    graph.train, graph.valid, graph.test = (np.flatnonzero(types == kind) for kind in (1, 2, 3))
    graph.num_label_classes, graph.arc_order = 41, halved["arc_order"]
    graph.findings = Findings() if findings is None else findings
    graph.files = {"edges": graph_path, "feats": data_path, "labels": data_path}
    graph.notes["source"] = "DGL's Reddit files"
    return graph.check()


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
