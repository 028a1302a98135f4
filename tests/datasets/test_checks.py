"""Every way a plain graph folder can be wrong: one line that names the file and says what to do."""

import json

import numpy as np
import pytest
import scipy.sparse

from distgnn.datasets import checks, load_graph
from distgnn.errors import DistGNNError, GraphWarning


def put_bytes(name: str, content: bytes):
    return lambda folder: (folder / name).write_bytes(content)


def renamed(name: str, other: str):
    return lambda folder: (folder / name).rename(folder / other)


def header(**changes):
    """Change keys of graph.json; None removes one."""

    def change(folder):
        content = {**json.loads((folder / "graph.json").read_text()), **changes}
        content = {key: value for key, value in content.items() if value is not None}
        (folder / "graph.json").write_text(json.dumps(content))

    return change


def put_csr(**changes):
    """Replace the dense features by a damaged sparse matrix."""

    def change(folder):
        (folder / "feats.npy").unlink()
        matrix = scipy.sparse.identity(6, dtype=np.float32, format="csr")
        arrays = {name: getattr(matrix, name) for name in ("data", "indices", "indptr", "shape")}
        arrays = {**arrays, "format": b"csr", **changes}
        np.savez(folder / "feats.npz", **{name: value for name, value in arrays.items() if value is not None})

    return change


def text_edges(name: str, content: bytes):
    def change(folder):
        (folder / "edges.npy").unlink()
        (folder / name).write_bytes(content)

    return change


def half_labels(folder):
    for name in ("labels", "node_values"):
        np.save(folder / f"{name}.npy", [0.5] * 6)


FILES = {
    "header-missing": (renamed("graph.json", "x"), r"graph\.json: no such file; write"),
    "header-not-json": (put_bytes("graph.json", b"{"), r"graph\.json: damaged"),
    "header-a-list": (put_bytes("graph.json", b"[1]"), r"graph\.json: expected a JSON object, found list"),
    "num-nodes-missing": (header(num_nodes=None), r"graph\.json: 'num_nodes' must be the number of vertices, found no"),
    "num-nodes-text": (header(num_nodes="6"), r"'num_nodes' must be the number of vertices, found '6'"),
    "no-vertices": (header(num_nodes=0), r"graph\.json: the graph has 0 vertices; at least one is needed"),
    "negative-vertices": (header(num_nodes=-3), r"graph\.json: the graph has -3 vertices"),
    "too-many-vertices": (header(num_nodes=10**15), r"graph\.json: .* at most 3000000000 can be handled"),
    "directed-missing": (header(directed=None), r"'directed' must be true or false, found nothing"),
    "directed-number": (header(directed=1), r"'directed' must be true or false, found 1"),
    "no-classes": (header(num_classes=0), r"'num_classes' must be a whole number of at least 1"),
    "edges-missing": (renamed("edges.npy", "x"), r"no edges; expected one of edges\.npy, edges\.csv"),
    "edges-twice": (put_bytes("edges.csv", b"0,1\n"), r"holds edges\.npy and edges\.csv; keep one"),
    "edges-cut-short": (
        lambda folder: (folder / "edges.npy").write_bytes((folder / "edges.npy").read_bytes()[:-30]),
        r"edges\.npy: damaged",
    ),
    "text-out-of-range": (
        text_edges("edges.csv", b"from,to\n# a note\n0,1\n\n0,6"),
        r"edges\.csv: line 5 holds .*outside the graph, 6 .*dg\.renumber",
    ),
    "text-no-gzip": (text_edges("edges.csv.gz", b"0,1\n"), r"edges\.csv\.gz: damaged"),
    "feats-twice": (put_bytes("feats.npz", b"PK"), r"holds feats\.npy and feats\.npz; keep one"),
    "sparse-nan": (put_csr(data=np.array([1, 1, 1, np.nan, 1, 1])), r"feats\.npz: row 3 holds a value that is NaN"),
    "sparse-column": (put_csr(indices=np.array([0, 1, 2, 3, 4, 6])), r"feats\.npz: damaged"),
    "sparse-pointers": (put_csr(indptr=np.array([0, 1, 2])), r"feats\.npz: damaged"),
    "sparse-order": (put_csr(indptr=np.array([0, 3, 2, 3, 4, 5, 6])), r"feats\.npz: damaged"),
    "sparse-no-end": (put_csr(indptr=np.array([0, 1 << 40, 2, 3, 4, 5, 0])), r"feats\.npz: damaged"),
    "sparse-shape": (put_csr(shape=np.array([7, 6])), r"feats\.npz"),
    "sparse-format": (put_csr(format=b"bsr"), r"feats\.npz: expected a sparse matrix in CSR form, found 'bsr'"),
    "sparse-no-word": (put_csr(format=np.empty((1 << 31, 0))), r"feats\.npz: expected a sparse matrix in CSR form"),
    "sparse-lacks": (put_csr(data=None), r"feats\.npz: lacks the array 'data'"),
    "feats-as-text": (renamed("feats.npy", "feats.csv"), r"feats\.csv: is not read: feats are feats\.npy"),
    "split-by-pyg-name": (renamed("valid.npy", "val_mask.npy"), r"val_mask\.npy: is not read: valid are valid\.npy"),
    "labels-half": (half_labels, r"labels\.npy: labels must be whole numbers"),
    "classes-too-few": (header(num_classes=2), r"labels\.npy: row 2 holds label 2; allowed are 0 to 1, and -1"),
    "classes-too-many": (header(num_classes=1 << 21), r"labels\.npy: row 2 holds label 2: that makes 2097152 classes"),
}
GOOD = [[0, 1], [1, 2], [2, 3], [3, 4]]
ARRAYS = [  # in place of the one in the folder, and what is said of it
    ("edges", np.array([{}, []], dtype=object), "damaged .*Python objects"),
    ("edges", np.array(GOOD, dtype=float), "expected integer vertex ids, found fl"),
    ("edges", np.array(GOOD).T, r"expected shape \[E, 2\], .*transpose it"),
    ("edges", [0, 1, 2], r"expected shape \[E, 2\], found \[3\]"),
    ("edges", [[0, 1], [-4, 2]], "row 1 holds a negative vertex id, -4"),
    ("edges", [*GOOD, [5, 6]], "row 4 .*outside the graph, 6 .*from 0 to"),
    ("feats", np.ones((5, 2)), r"expected shape \[6, D\].* found \[5, 2\]"),
    ("feats", np.ones(6), r"expected shape \[6, D\]"),
    ("feats", np.ones((6, 0)), "rows are 0 wide"),
    ("feats", [[0.0]] * 4 + [[np.nan]] * 2, "row 4 holds a value that is NaN"),
    ("feats", [["a"]] * 6, "expected numbers, found <U1"),
    ("feats", [[1j]] * 6, "expected numbers, found complex128"),
    ("feats", [[0.0]] * 4 + [[1e39]] * 2, r"row 4 holds 1e\+39, beyond float32's 3\.4e38; scale it \(2 such rows\)"),
    ("labels", [0, 1], r"expected shape \[6\] or \[6, C\].* found \[2\]"),
    ("labels", [0, 1, 2, -2, 0, 0], "row 3 holds label -2; allowed are"),
    ("labels", np.zeros(6, "M8[s]"), "expected integers, found datetime64"),
    ("labels", np.zeros((6, 2, 2), dtype=int), "expected shape"),
    ("labels", [[0, 1]] * 5 + [[0, -1]], "row 5: with several labels"),
    ("edge_weight", [1.0] * 5 + [np.nan], "row 5 holds a value that is NaN or inf"),
    ("edge_feats", np.ones((2, 2)), r"expected shape \[6, D\]"),
    ("edge_feats", np.full((6, 2), np.nan), "row 0 holds a value"),
    ("edge_types", [0] * 5, r"expected whole numbers of shape \[6\], found"),
    ("edge_types", [0, 1, 2, 0, -1, 0], "row 4 holds type -1; types"),
    ("node_types", [0.5] * 6, "expected whole numbers"),
    ("train", [0, 6], "row 1 holds vertex 6; ids run from 0 to 5"),
    ("valid", [-1], "row 0 holds vertex -1"),
    ("test", [3, 1], "row 1, vertex 1, is also in train; splits must not"),
    ("train", [0, 1, 0], "row 2 repeats vertex 0; name each vertex once"),
    ("test", [3.5], r"expected integer vertex ids, found float64: row 0 holds \[3\.5\]"),
    ("test", [True] * 5, r"a mask must have shape \[6\], found \[5\]"),
    ("test", np.ones((6, 3), bool), ".* of several masks choose one column"),
]


def one_line(folder, message):
    with pytest.raises(DistGNNError, match=message) as raised:
        load_graph(str(folder))
    text = str(raised.value)
    assert str(folder) in text and "\n" not in text and len(text) < len(str(folder)) + 260


@pytest.mark.parametrize(("change", "message"), FILES.values(), ids=FILES)
def test_one_line_names_the_file(change, message, graph_folder):
    change(graph_folder)
    one_line(graph_folder, message)


@pytest.mark.parametrize(("name", "array", "message"), ARRAYS)
def test_one_line_names_the_array(name, array, message, graph_folder):
    np.save(graph_folder / f"{name}.npy", np.asarray(array), allow_pickle=True)
    one_line(graph_folder, rf"{name}\.npy: {message}")


def test_a_file_is_not_a_folder(graph_folder):
    with pytest.raises(DistGNNError, match=r"edges\.npy is a file: give its folder, .*small, which needs graph\.json"):
        load_graph(str(graph_folder / "edges.npy"))


def test_files_of_other_names_and_older_forms_are_left_alone(graph_folder):
    for name in ("README.md", "ids.npy", "labels.csv", "feats.npy.bak", "train.py"):
        (graph_folder / name).write_text("not ours\n")
    with pytest.warns(GraphWarning, match=r"graph 'small': left out: ids\.npy, labels\.csv$"):
        assert load_graph(str(graph_folder)).num_feats == 2


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("shape", [6, (6, 1)])
def test_a_mask_in_a_file_is_a_split(graph_folder, dtype, shape):
    np.save(graph_folder / "test.npy", np.array([0, 0, 0, 1, 1, 0]).astype(dtype).reshape(shape))
    assert load_graph(str(graph_folder)).test.tolist() == [3, 4]


def test_the_row_is_named_also_deep_inside(small_graph, monkeypatch):
    monkeypatch.setattr(checks, "BLOCK_BYTES", 64)
    small_graph.edges = np.concatenate([np.zeros((1000, 2), dtype=np.int64), [[0, 77]]])
    with pytest.raises(DistGNNError, match="graph 'small', edges: row 1000 holds a vertex id outside the graph, 77"):
        small_graph.check()
