"""One file as a graph, by the end of its name; every reader here says in one line what it understood."""

from pathlib import Path

from distgnn.datasets.array_files import is_present
from distgnn.datasets.files.columns import READERS as OF_EDGES_ALONE
from distgnn.datasets.files.columns import kind_of
from distgnn.datasets.files.edge_text import read_edge_text
from distgnn.datasets.files.saved import read_dgl, read_torch
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.text.table import TABLES
from distgnn.errors import InputError

READERS = OF_EDGES_ALONE | {".bin": read_dgl, ".pt": read_torch}
KNOWN = f"{', '.join(TABLES)}, .mtx, .graph (these also as .gz), KONECT's out.NAME, .npz, .bin (DGL), .pt (PyG)"


def read_file(path: Path, findings: Findings, renumber: bool = False) -> GraphData:
    """Read and check the graph of one file; renumber: ids are names, which `node_names` keeps, and vertices 0 … N-1."""
    kind = kind_of(path)
    if not kind:
        raise InputError(
            f"{path} is a file: give its folder, {path.parent}, which needs graph.json and the edges, or a file of a "
            f"kind that is read: {KNOWN}"
        )
    is_present(path)
    if kind in TABLES:
        return read_edge_text(path, findings, renumber)
    if renumber:
        raise InputError(f"{path}: renumber is for edge lists as text: these vertices have numbers from 0 already")
    return READERS[kind](path, findings)
