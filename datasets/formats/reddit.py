"""Reddit as DGL ships it: `reddit_data.npz` (feature, label, node_types) and `reddit_graph.npz` (scipy COO)."""

from pathlib import Path

import numpy as np

from distgnn.datasets.array_files import is_present, npz_shapes, read_npz
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.folder import read_csr
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.pairs import halve_symmetric
from distgnn.datasets.tidy import tidy_labels
from distgnn.errors import GraphFormatError, InputError

# node_types in reddit_data.npz
TRAIN, VALID, TEST = 1, 2, 3


def is_reddit_folder(folder: Path) -> bool:
    """Whether a folder holds DGL's Reddit files."""
    return is_present(folder / "reddit_data.npz") or is_present(folder / "reddit_graph.npz")


def check_reddit(folder: Path) -> None:
    """Raise GraphFormatError where a download lacks an array, or its arrays are not of one graph."""
    sizes: dict[str, tuple[int, ...]] = {}
    for file, names in (
        ("reddit_data.npz", ("feature", "label", "node_types")),
        ("reddit_graph.npz", ("row", "col", "shape")),
    ):
        sizes |= {name: shape for name, shape in npz_shapes(folder / file, names).items()}
    rows = {name: sizes[name][:1] for name in ("feature", "label", "node_types")}
    if len(set(rows.values())) > 1 or len(sizes["feature"]) != 2 or sizes["row"] != sizes["col"]:
        raise GraphFormatError(f"{folder.name}: the arrays of reddit are not of one graph ({sizes}); download it again")


def read_reddit(folder: Path, findings: Findings | None = None) -> GraphData:
    """Read and check Reddit as an undirected graph: the file holds both arcs of each edge, one is kept.

    Raises: InputError for a missing file, GraphFormatError for a damaged one or one that is not symmetric.
    """
    graph_path, data_path = folder / "reddit_graph.npz", folder / "reddit_data.npz"
    adjacency = read_csr(graph_path).tocoo()
    data = read_npz(data_path, ("feature", "label", "node_types"))
    if adjacency.shape[0] != adjacency.shape[1]:
        raise GraphFormatError(f"{graph_path}: expected a square matrix, found {list(adjacency.shape)}")
    num_nodes = adjacency.shape[0]
    try:
        rows = halve_symmetric(adjacency.row, adjacency.col, num_nodes)
    except InputError as error:
        raise GraphFormatError(f"{graph_path}: {error}") from error
    edges = np.stack([adjacency.row[rows], adjacency.col[rows]]).T
    types = data["node_types"]
    if types.shape != (num_nodes,):
        raise GraphFormatError(f"{data_path}: node_types must have shape [{num_nodes}], found {list(types.shape)}")
    split = [np.flatnonzero(types == kind) for kind in (TRAIN, VALID, TEST)]
    graph = GraphData("reddit", num_nodes, edges, False, data["feature"], tidy_labels(data["label"], data_path))
    graph.train, graph.valid, graph.test = split
    graph.num_label_classes = 41
    graph.findings = Findings() if findings is None else findings
    graph.files = {"edges": graph_path, "feats": data_path, "labels": data_path}
    graph.notes["source"] = "DGL's Reddit files"
    return graph.check()
