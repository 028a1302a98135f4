"""Reddit as DGL ships it, `reddit_data.npz` (feature, label, node_types) and `reddit_graph.npz` (scipy COO)."""

from pathlib import Path

import numpy as np

from distgnn.datasets.array_files import is_present, npz_shapes, read_npz
from distgnn.datasets.files.matrix import read_rows, square_entries
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
