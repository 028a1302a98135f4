"""One file by the end of its name: the edges of a graph, or a column of one.

A dict of a graph's fields may name files, which are read as arrays:
`{"edge_index": "edges.txt", "x": "x.npy", "y": "y.csv"}`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.array_files import check_file, read_npy, read_npz
from distgnn.datasets.files.edge_text import read_edge_text, text_ends
from distgnn.datasets.files.matrix import read_arrays, read_market, read_metis, read_rows
from distgnn.datasets.files.parquet import read_edge_parquet, read_parquet
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.foreign_arrays import read_torch_arrays
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.names.field_names import OF_EDGES
from distgnn.datasets.objects.arrays import edges_of_frame
from distgnn.datasets.text_table import TABLES, id_column, read_table, text_rows
from distgnn.errors import InputError

# Of files that have edges alone, as tables and .npy have.
READERS: dict[str, Callable[[Path, Findings], GraphData]] = {
    ".mtx": read_market,
    ".npz": read_arrays,
    ".graph": read_metis,
}
SAVED = (".bin", ".pt")  # whole graphs, of DGL and PyG
PARQUET = ".parquet"
PACKED = (*TABLES, ".mtx", ".graph")  # read as .gz too


def kind_of(path: Path) -> str:
    """The end of a file's name that says how it is read: of a table, a matrix or what was saved; "" for none."""
    if path.name.startswith("out."):  # KONECT's, also packed
        return ".txt"
    packed = path.suffix == ".gz"
    suffix = Path(path.stem).suffix.lower() if packed else path.suffix.lower()
    return suffix if suffix in (PACKED if packed else (*TABLES, *READERS, *SAVED, PARQUET)) else ""


def read_edges(file: str | Path, findings: Findings) -> tuple[Any, dict[str, Any]]:
    """Edges as `GraphData.from_arrays` takes them, and what else the file says of them."""
    path = Path(file)
    check_file(path)
    if path.suffix == ".npy":
        return read_npy(path), {}
    kind = kind_of(path)
    if kind not in (*TABLES, *READERS, PARQUET):
        known = ", ".join((".npy", *TABLES, *READERS, PARQUET))
        raise InputError(f"edges: {path} is of no kind that has edges alone: {known}; others are graphs by themselves")
    reader = read_edge_text if kind in TABLES else read_edge_parquet if kind == PARQUET else None
    graph = READERS[kind](path, findings) if reader is None else reader(path, findings, False)
    columns = {name: getattr(graph, name) for name in OF_EDGES}
    found = {name: column for name, column in columns.items() if column is not None}
    return graph.edges, found | {"directed": graph.directed, "arc_order": graph.arc_order}


def read_pairs(file: str | Path) -> np.ndarray:
    """Pairs [M, 2] of ids or names in the order of the file, as they are; a `.npy` is mapped."""
    path = Path(file)
    if path.suffix == ".npy":
        return read_npy(path)
    if kind_of(path) == PARQUET:
        return np.stack(edges_of_frame(read_parquet(path), Findings())[0], 1)
    if kind_of(path) not in TABLES:
        raise InputError(f"pairs: {path} is of no kind that is read: .npy, {', '.join(TABLES)}, {PARQUET}")
    return text_ends(path)


def read_column(name: str, file: str | Path) -> Any:
    """The rows of a file, one for each vertex in the order of ids (or for each edge in the order of edges)."""
    path = Path(file)
    check_file(path)
    if path.suffix == ".npy":
        return read_npy(path)
    if path.suffix == ".npz":
        arrays = read_npz(path)
        return read_rows(path) if "format" in arrays and "shape" in arrays else _only(path, name, arrays)
    if path.suffix == ".pt":
        return _only(path, name, read_torch_arrays(path))
    if kind_of(path) in TABLES:
        table, ids = read_table(path, np.float64), id_column(path)
        if ids is not None and table.shape[1] > 1:
            if not np.array_equal(table[:, 0], np.arange(len(table))):
                raise InputError(f"{name}: {path}: its column {ids or 1} is not 0, 1, 2, …: sort the rows by it")
            table = table[:, 1:]
        whole = np.array_equal(table, np.rint(table)) and not any(b"." in line for _, line in text_rows(path))
        table = table.astype(np.int64) if whole else table
        return table[:, 0] if table.shape[1] == 1 else table
    known = f".npy, .npz, .pt, {', '.join(TABLES)} (these also as .gz)"
    raise InputError(f"{name}: {path} is of no kind that is read: {known}")


def _only(path: Path, name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """The one array of a file, or the one of this name."""
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    if name in arrays:
        return arrays[name]
    raise InputError(f"{name}: {path} has the arrays {', '.join(sorted(arrays)) or 'none'}: expected one, or {name}")
