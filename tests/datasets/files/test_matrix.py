"""Matrices of MatrixMarket, METIS and scipy as graphs; what is wrong is named by its line."""

import gzip

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from distgnn.datasets import load_graph
from distgnn.datasets.findings.findings import Findings

PAIRS = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [1, 3]])
MARKET = "%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 2 0.5\n"


def test_matrices_of_scipy(tmp_path):
    matrix = sp.coo_matrix((np.ones(5), PAIRS.T), (4, 4))
    both = matrix + matrix.T
    scipy.io.mmwrite(tmp_path / "general.mtx", matrix)
    scipy.io.mmwrite(tmp_path / "pattern.mtx", both, field="pattern", symmetry="symmetric")
    (tmp_path / "pattern.mtx.gz").write_bytes(gzip.compress((tmp_path / "pattern.mtx").read_bytes()))
    scipy.io.mmwrite(tmp_path / "real.mtx", both * 0.5, symmetry="symmetric")
    csr = both.tocsr()
    sp.save_npz(tmp_path / "csr.npz", csr)
    parts = {"adj_data": csr.data, "adj_indices": csr.indices, "adj_indptr": csr.indptr, "adj_shape": csr.shape}
    np.savez(tmp_path / "benchmark.npz", **parts, labels=np.arange(4) % 2, idx_to_class=np.arange(2))
    np.savez(tmp_path / "named.npz", edges=PAIRS, node_features=np.ones((4, 2)), node_labels=[0, 1, 0, 1])
    graphs = {path.name: load_graph(str(path), findings=Findings()) for path in tmp_path.iterdir()}
    for name, graph in graphs.items():
        assert (graph.num_edges, graph.directed) == (5, name in ("general.mtx", "named.npz")), name
    assert graphs["real.mtx"].edge_weight.tolist() == [0.5] * 5 and graphs["pattern.mtx"].edge_weight is None
    assert graphs["benchmark.npz"].labels.tolist() == [0, 1, 0, 1] and graphs["named.npz"].num_feats == 2


WRONG = {
    "header.mtx": ("%%MatrixMarkt matrix coordinate real general\n1 1 0\n", r"header\.mtx: line 1: "),
    "packed.mtx.gz": (gzip.compress((MARKET + "1 2 1.5\n").encode())[:-9], "damaged"),
    "large.mtx": (MARKET.replace("3 3 2", "3 3 900000000000"), "unpacks to more than"),
    "cut.mtx": (MARKET.replace("3 3 2", "3 3 4") + "2 3 1.5 ", "damaged"),  # scipy's reader alone ends the process
    "beyond.mtx": (MARKET + "1 4 1.0\n", "line 5: "),
    "array.mtx": ("%%MatrixMarket matrix array real general\n1 1\n1.0\n", "line 1: of kind array real general"),
    "wide.mtx": ("%%MatrixMarket matrix coordinate real general\n3 4 1\n1 2 1\n", "expected a square matrix"),
    "beyond.graph": ("2 1\n2\n3\n", "line 3: names vertex 3: ids run from 1 to 2"),
    "one-way.graph": ("3 2\n2 3\n1\n2\n", "line 2: vertex 1 names 3, and 3 does not name 1"),
    "short.graph": ("3 2\n2\n1\n", "expected 3 lines of neighbours, found 2"),
    "count.graph": ("2 2\n2\n1\n", "line 1: the header has 2 edges"),
    "broken.npz": ("no zip", "damaged"),
}


@pytest.mark.parametrize(("name", "case"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_one_line_with_the_file_and_the_line(name, case, refused):
    refused(name, *case)
