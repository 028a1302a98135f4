"""One file as a graph, by the end of its name; every reader here says in one line what it understood."""

from collections.abc import Callable
from pathlib import Path

from distgnn.datasets.array_files import is_present
from distgnn.datasets.files.edge_text import read_edge_text
from distgnn.datasets.files.matrix import read_arrays, read_market
from distgnn.datasets.files.metis import read_metis
from distgnn.datasets.files.saved import read_dgl, read_torch
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.text.table import TABLES
from distgnn.errors import InputError

READERS: dict[str, Callable[[Path, Findings], GraphData]] = {
    ".mtx": read_market,
    ".npz": read_arrays,
    ".graph": read_metis,
    ".bin": read_dgl,
    ".pt": read_torch,
}
PACKED = (*TABLES, ".mtx", ".graph")  # read as .gz too
KNOWN = f"{', '.join(TABLES)}, .mtx, .graph (these also as .gz), KONECT's out.NAME, .npz, .bin (DGL), .pt (PyG)"


def kind_of(path: Path) -> str:
    """The end of a file's name that says how it is read: one of `TABLES` or of `READERS`; "" for none of them."""
    if path.name.startswith("out.") and path.suffix != ".gz":  # KONECT's
        return ".txt"
    packed = path.suffix == ".gz"
    suffix = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    return suffix if suffix in (PACKED if packed else (*TABLES, *READERS)) else ""


def read_file(path: Path, findings: Findings, renumber: bool = False) -> GraphData:
    """Read and check the graph of one file.

    Args: renumber: ids are names: the vertices are 0 … N-1 in their order, and `node_names` keeps them.
    Raises: InputError for a kind of file that is not read; GraphFormatError for a damaged one, naming the line.
    """
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
