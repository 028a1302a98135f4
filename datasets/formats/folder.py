"""The plain graph folder: how users bring a graph of their own.

    my-graph/
        graph.json            {"name": "my-graph", "num_nodes": 5, "directed": false}
        edges.npy             [E, 2] int; undirected: each edge once     (or edges.csv, edges.txt, also .gz)
        feats.npy             [N, D] float32        optional             (or feats.npz, scipy CSR)
        labels.npy            [N] int, -1 = none, or [N, C] 0/1          optional
        edge_weight.npy       [E] float32           optional
        edge_feats.npy        [E, De] float32       optional
        edge_types.npy        [E] int from 0        optional: the relation of each row
        node_types.npy        [N] int from 0        optional
        node_values.npy       [N] or [N, T] float   optional: what a regression predicts; NaN = none
        graph_ids.npy         [N] int from 0        optional: which of many small graphs a vertex is in
        node_names.npy        [N] texts or int      optional: what the vertices were called
        train.npy valid.npy test.npy                vertex ids, optional
        train_edges.npy valid_edges.npy test_edges.npy      [M, 2] int, optional: splits of edges (tasks edge and link)
        train_edge_labels.npy …                     [M] int or float, optional: what is predicted of those edges
        valid_negatives.npy test_negatives.npy      [K, 2] int, optional: pairs that are no edges
        valid_negative_targets.npy …                [M, K] int, optional: such pairs with the source of each edge

graph.json may also hold `num_classes`, `edge_type_names` and `node_type_names` (lists), `held_out` (false where links
to be predicted may also be edges), and anything else as notes. Large arrays are mapped, not read.
"""

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse

from distgnn.datasets.array_files import damaged, is_present, read_json, read_npy, read_npz
from distgnn.datasets.checks import check_size
from distgnn.datasets.fields import ARRAYS, SPLITS, TYPE_NAMES
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.folder_writer import EDGE_FILES
from distgnn.datasets.formats.unread import refuse_unread
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.objects.values import as_labels, as_split
from distgnn.datasets.text.table import read_table
from distgnn.errors import GraphFormatError, InputError


def is_graph_folder(folder: Path) -> bool:
    """Whether a folder looks like one of ours."""
    return (folder / "graph.json").is_file() or any((folder / name).is_file() for name in EDGE_FILES)


def read_folder(folder: Path, findings: Findings | None = None) -> GraphData:
    """Read and check a plain graph folder; what was found is in the graph's `findings`.

    Raises: InputError for missing files, GraphFormatError for damaged or wrong ones.
    """
    header_path = folder / "graph.json"
    if not is_present(header_path):
        raise InputError(f'{header_path}: no such file; write {{"name": ..., "num_nodes": N, "directed": false}} there')
    header = read_json(header_path)
    num_nodes, directed, num_classes = _read_header(header_path, header)
    files = {"num_nodes": header_path}
    fields: dict[str, Any] = {key: _read_names(header_path, header, key) for key in TYPE_NAMES}
    findings = Findings() if findings is None else findings
    for name in ("labels", *ARRAYS, *SPLITS):
        path = folder / f"{name}.npy"
        if is_present(path):
            files[name] = path
            with findings.reading(name):
                fields |= _as_field(name, read_npy(path), path, (num_nodes, num_classes), findings)
    with findings.reading("feats"):
        fields["feats"] = _read_feats(folder, files)
    edges = np.zeros((0, 2), dtype=np.int64)
    with findings.reading("edges"):
        edges = _read_edges(folder, files)
        _caution_of_metis(files["edges"], edges, findings)
    with findings.reading("files"):
        refuse_unread(folder, files, findings)
    num_classes = fields.pop("num_label_classes", num_classes)
    known = ("name", "num_nodes", "directed", "num_classes", "held_out", *TYPE_NAMES)
    notes = {key: value for key, value in header.items() if key not in known}
    name = str(header.get("name") or folder.name)
    held_out = header.get("held_out", True) is not False
    more: dict[str, Any] = {"notes": notes, "files": files, "held_out": held_out, "findings": findings}
    graph = GraphData(name, num_nodes, edges, directed, **more, **fields)
    graph.num_label_classes = num_classes
    return graph.check()


def _as_field(name: str, array: np.ndarray, path: Path, sizes: tuple[int, int | None], findings: Findings) -> Any:
    """Labels and splits in the form that `GraphData` holds, other arrays as they are (mapped); errors name the file."""
    try:
        if name == "labels" and array.dtype.kind in "biufUS":
            found = as_labels(array, findings, sizes[1])
            if "node_values" in found:
                raise InputError(
                    "labels must be whole numbers, or NaN for none; values of a regression are node_values.npy"
                )
            return found
        if name in SPLITS and array.dtype.kind in "biuf":
            return {name: as_split(name, array, sizes[0])}
    except InputError as error:
        wrong = GraphFormatError(f"{path}: {str(error).removeprefix(f'{name}: ')}")
        wrong.count = error.count
        raise wrong from None
    return {name: array}


def _caution_of_metis(path: Path, edges: np.ndarray, findings: Findings) -> None:
    """METIS's first line holds N and M, and a line for each vertex follows: a table where each has two neighbours."""
    if path.suffix != ".npy" and len(edges) > 3 and edges[0].tolist() == [len(edges) - 1, len(edges) - 1]:
        findings.add(
            "caution", "edges", f"{path.name} looks like a METIS file (its first line is N and M, then a line for each "
            "vertex), and is read as one edge per line", len(edges),
        )  # fmt: skip


def _read_header(path: Path, header: dict[str, Any]) -> tuple[int, bool, int | None]:
    def fail(key: str, expected: str) -> NoReturn:
        found = repr(header[key]) if key in header else "nothing"
        raise GraphFormatError(f"{path}: {key!r} must be {expected}, found {found}")

    def whole(value: Any) -> bool:
        return isinstance(value, int) and not isinstance(value, bool)

    if not whole(header.get("num_nodes")):
        fail("num_nodes", "the number of vertices")
    if not isinstance(header.get("directed"), bool):
        fail("directed", "true or false")
    num_classes = header.get("num_classes")
    if num_classes is not None and (not whole(num_classes) or num_classes < 1):
        fail("num_classes", "a whole number of at least 1")
    return header["num_nodes"], header["directed"], num_classes


def _read_names(path: Path, header: dict[str, Any], key: str) -> tuple[str, ...]:
    names = header.get(key, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise GraphFormatError(f"{path}: {key!r} must be a list of names, found {names!r}")
    return tuple(names)


def _read_edges(folder: Path, files: dict[str, Path]) -> np.ndarray:
    found = [folder / name for name in EDGE_FILES if is_present(folder / name)]
    if not found:
        raise InputError(f"{folder}: no edges; expected one of {', '.join(EDGE_FILES)}")
    if len(found) > 1:
        names = " and ".join(path.name for path in found)
        raise GraphFormatError(f"{folder}: holds {names}; keep one of them")
    files["edges"] = found[0]
    if found[0].suffix == ".npy":
        edges = read_npy(found[0])
        return edges.astype(np.int64).reshape(0, 2) if edges.size == 0 else edges
    return read_table(found[0], np.int64, columns=2)


def _read_feats(folder: Path, files: dict[str, Path]) -> Any:
    dense, sparse = folder / "feats.npy", folder / "feats.npz"
    if is_present(dense) and is_present(sparse):
        raise GraphFormatError(f"{folder}: holds feats.npy and feats.npz; keep one of them")
    if is_present(dense):
        files["feats"] = dense
        return read_npy(dense)
    if is_present(sparse):
        files["feats"] = sparse
        return read_csr(sparse)
    return None


def read_csr(path: Path) -> scipy.sparse.csr_matrix:
    """A scipy sparse matrix as scipy.sparse.save_npz writes it (CSR, or COO turned into it), checked."""
    arrays = read_npz(path, ("format", "shape", "data"))
    kind = arrays["format"].tolist()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    parts = {"csr": ("indices", "indptr"), "coo": ("row", "col")}.get(kind)
    if parts is None or any(name not in arrays for name in parts):
        raise GraphFormatError(f"{path}: expected a sparse matrix in CSR form, found {kind!r}")
    try:
        shape = tuple(int(size) for size in arrays["shape"])
        if any(size < 0 for size in shape) or len(shape) != 2:
            raise ValueError(f"a matrix cannot have the shape {shape}")
        if kind == "coo":
            check_size(shape[0], len(arrays["data"]), lambda text: _refuse(path, text))
            return scipy.sparse.coo_matrix((arrays["data"], (arrays["row"], arrays["col"])), shape=shape).tocsr()
        matrix = scipy.sparse.csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape, copy=False)
        matrix.check_format(full_check=True)
    except (ValueError, IndexError, TypeError) as error:
        raise damaged(path, error) from error
    return matrix


def _refuse(path: Path, text: str) -> NoReturn:
    raise GraphFormatError(f"{path}: {text}")
