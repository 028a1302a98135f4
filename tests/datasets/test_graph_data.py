"""Counts of what is unusual, normalised rows, and real graphs as their readme says."""

import numpy as np
import scipy.sparse

from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.findings.findings import Findings


def test_counts_name_all_that_is_unusual(small_graph):
    assert small_graph.counts() == {
        **{"num_nodes": 6, "num_edges": 6, "duplicates": 1, "reciprocal": 1, "self_loops": 1, "isolated": 1},
        **{"labelled": 5, "unlabelled": 1, "train": 2, "valid": 1, "test": 2, "no_split": 1, "split_unlabelled": 1},
    }


def test_counts_agree_with_a_slow_count():
    rng = np.random.default_rng(3)
    for _ in range(20):
        edges = rng.integers(0, 8, (rng.integers(0, 40), 2))
        rows = [tuple(row) for row in edges.tolist()]
        graph = GraphData.from_arrays(edges, 8, directed=True, findings=Findings())
        counts = graph.counts()
        assert counts["duplicates"] == len(rows) - len(set(rows))
        assert counts["reciprocal"] == sum((v, u) in set(rows) for u, v in set(rows) if u < v)
        assert graph.edge_list("both").report["merged_rows"] == counts["duplicates"] + counts["reciprocal"]
        assert counts["isolated"] == 8 - len({end for row in rows for end in row})


def test_normalized_rows_sum_to_one(small_graph):
    assert np.allclose(np.abs(small_graph.normalize_feats().feats).sum(1), 1)
    small_graph.feats = scipy.sparse.csr_matrix(np.array([[1.0, 3.0], [0, 0]] * 3, dtype=np.float32))
    sparse = small_graph.normalize_feats("row")
    assert scipy.sparse.issparse(sparse.feats) and sparse.feats.dtype == np.float32
    assert sparse.feats.toarray()[:2].tolist() == [[0.25, 0.75], [0, 0]]


def test_real_graphs_are_as_their_readme_says(data_root):
    cora, citeseer = load_graph("cora", data_root), load_graph("citeseer", data_root)
    assert (cora.num_nodes, cora.num_edges, cora.num_feats, cora.num_classes) == (2708, 5278, 1433, 7)
    counts = citeseer.counts()
    assert (counts["isolated"], counts["unlabelled"], counts["duplicates"]) == (48, 15, 0)
    assert not cora.directed and cora.edge_list(self_loops="add").num_arcs == 2 * 5278 + 2708
