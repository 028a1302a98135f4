"""Planetoid's citation graphs (cora, citeseer, pubmed) as published: eight files `ind.NAME.*`.

ind.cora.allx   pickled scipy CSR [A, D]: features of the first A vertices      ind.cora.ally   pickled [A, C] one-hot
ind.cora.tx     pickled scipy CSR [T, D]: features of the test vertices         ind.cora.ty     pickled [T, C]
ind.cora.x, .y  the training vertices, the first rows of allx and ally          ind.cora.graph  pickled {id: [id, …]}
ind.cora.test.index   text: the vertex of each row of tx

A pickle can run any program when it is read. These are read by an unpickler that makes numpy arrays, dicts and lists,
and refuses every other name; a scipy matrix becomes a bare object whose arrays are checked before a matrix is made.
Nor may one ask for more memory than its size allows: its instructions are looked through before they are run.
"""

import copyreg
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets.array_files import check_file, damaged, is_present
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.foreign_arrays import NUMPY_NAMES, Names, PickledArray, load_pickle
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.objects.values import check_compressed
from distgnn.errors import GraphFormatError

NAMES = ("cora", "citeseer", "pubmed")
PICKLES = ("x", "y", "tx", "ty", "allx", "ally", "graph")
FILES = (*PICKLES, "test.index")
NUM_VALID = 500  # of the published split: the vertices after the training ones


class _Matrix:
    """Stands for scipy's CSR class: it takes the attributes of the pickle and runs nothing of scipy."""


_COPYREG: Any = copyreg  # its part for objects is not public
ALLOWED: Names = {
    **NUMPY_NAMES,
    ("collections", "defaultdict"): defaultdict,
    **dict.fromkeys([(f"scipy.sparse.{name}", "csr_matrix") for name in ("csr", "_csr")], _Matrix),
    **dict.fromkeys([(name, "_reconstructor") for name in ("copy_reg", "copyreg")], _COPYREG._reconstructor),
    **{(name, kind.__name__): kind for name in ("__builtin__", "builtins") for kind in (object, list)},
}


def _unpickle(path: Path) -> Any:
    check_file(path)
    try:
        return load_pickle(path.read_bytes(), ALLOWED)
    except Exception as error:  # a damaged pickle raises nearly anything
        raise damaged(path, error) from error


def _matrix(path: Path) -> scipy.sparse.csr_matrix:
    found = _unpickle(path)
    try:
        values = vars(found)
        shape = values["_shape"] if "_shape" in values else values["shape"]
        parts = [values[name] for name in ("data", "indices", "indptr")]
        # A list of the same list many times over would become an array of any size.
        if not all(isinstance(part, PickledArray) and part.array.ndim == 1 for part in parts):
            raise ValueError("a matrix must have arrays of numbers")
        arrays = tuple(part.array for part in parts)
        matrix = scipy.sparse.csr_matrix(arrays, shape=tuple(int(size) for size in shape))
        check_compressed(matrix)
        return matrix.astype(np.float32)
    except Exception as error:
        raise damaged(path, error) from error


def _labels(path: Path, num_rows: int) -> np.ndarray:
    """int64 [rows] from one-hot rows; -1 for a row of zeros."""
    found = _unpickle(path)
    rows = found.array if isinstance(found, PickledArray) else np.empty(0)
    if rows.ndim != 2 or rows.dtype.kind not in "iuf" or len(rows) != num_rows:
        raise GraphFormatError(f"{path}: expected one-hot labels of {num_rows} vertices")
    return np.where(rows.any(axis=1), rows.argmax(axis=1), -1)


def planetoid_name(folder: Path) -> str | None:
    """NAME of the files `ind.NAME.graph` in a folder; None where there are none."""
    return next((name for name in NAMES if is_present(folder / f"ind.{name}.graph")), None)


def read_planetoid(folder: Path, findings: Findings | None = None) -> GraphData:
    """Read and check Planetoid's files as an undirected graph with the published split.

    Returns: GraphData with sparse features as published (binary; pubmed: TF-IDF); duplicate edges and self-loops of the
        adjacency lists are left out, as PyG's Planetoid does. Vertices of citeseer that no file has get rows of zeros.
    """
    name = planetoid_name(folder)
    files = {kind: folder / f"ind.{name}.{kind}" for kind in FILES}
    known, test_feats = _matrix(files["allx"]), _matrix(files["tx"])
    if known.shape[1] != test_feats.shape[1]:
        raise GraphFormatError(f"{files['tx']}: {test_feats.shape[1]} columns, allx has {known.shape[1]}")
    num_train = _matrix(files["x"]).shape[0]
    known_labels, test_labels = _labels(files["ally"], known.shape[0]), _labels(files["ty"], test_feats.shape[0])
    path, num_known, num_test = files["test.index"], known.shape[0], test_feats.shape[0]
    check_file(path)
    try:
        test = np.array([int(line) for line in path.read_text().split()], np.int64)
    except (ValueError, OverflowError) as error:
        raise damaged(path, error) from error
    whole = len(test) == num_test > 0 and len(np.unique(test)) == num_test and test.min() >= num_known
    if not whole or test.max() >= num_known + 2 * num_test:
        raise GraphFormatError(f"{path}: expected {num_test} different vertices from {num_known} on")
    num_nodes = int(test.max()) + 1
    # Row i of tx is vertex test[i]: a permutation that also leaves the rows of unnamed vertices empty.
    ones = np.ones(len(test), np.float32)
    place = scipy.sparse.csr_matrix((ones, (test - known.shape[0], np.arange(len(test)))))
    feats = scipy.sparse.vstack([known, place @ test_feats], format="csr")
    labels = np.full(num_nodes, -1, np.int64)
    labels[: len(known_labels)], labels[test] = known_labels, test_labels
    graph = GraphData(str(name), num_nodes, _read_edges(files["graph"], num_nodes), False, feats, labels)
    graph.train, graph.valid = np.arange(num_train), np.arange(num_train, min(num_train + NUM_VALID, known.shape[0]))
    graph.test = np.sort(test)
    graph.findings = Findings() if findings is None else findings
    graph.files = {"edges": files["graph"], "feats": files["allx"], "labels": files["ally"]}
    graph.notes["source"] = "Planetoid's files, split as published"
    return graph.check()


def _read_edges(path: Path, num_nodes: int) -> np.ndarray:
    """[E, 2]: each pair of the adjacency lists once, without self-loops."""
    lists = _unpickle(path)
    try:
        if sum(len(others) for others in lists.values()) > path.stat().st_size:
            raise ValueError("it holds one list many times over")
        rows = [(u, v) for u, others in lists.items() for v in others]
        if not all(type(u) is type(v) is int for u, v in rows):
            raise ValueError("a vertex is no whole number")
        pairs = np.array(rows, np.int64).reshape(-1, 2)
    except Exception as error:
        raise damaged(path, error) from error
    if pairs.size and (pairs.min() < 0 or pairs.max() >= num_nodes):
        raise GraphFormatError(f"{path}: a vertex is not from 0 to {num_nodes - 1}")
    return np.unique(np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1), axis=0)
