import numpy as np
import scipy.sparse

from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.findings.findings import Findings


def test_counts_name_all_that_is_unusual(small_graph):
    assert small_graph.counts() == {
        **{"num_nodes": 6, "num_edges": 6, "duplicates": 1, "reciprocal": 1, "self_loops": 1, "isolated": 1},
        **{"labelled": 5, "unlabelled": 1, "train": 2, "valid": 1, "test": 2, "no_split": 1, "split_unlabelled": 1},
    }


def test_undirected_duplicates_count_in_either_order(small_graph):
    graph = GraphData.from_arrays(small_graph.edges, 6, directed=False)
    counts = graph.counts()
    assert (counts["duplicates"], counts["reciprocal"]) == (2, 0)


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


def test_a_row_of_minus_one_is_no_label(tmp_path):
    labels = np.array([[0, 1, 1], [-1, -1, -1]])
    graph = load_graph(str(GraphData.from_arrays(np.array([[0, 1]]), labels=labels).save(tmp_path / "multi")))
    assert graph.multilabel
    assert graph.num_classes == 3
    assert graph.labelled.tolist() == [True, False]
    assert graph.labels.dtype == np.int8


def test_normalized_rows_sum_to_one(small_graph):
    dense = small_graph.normalize_feats()
    assert np.allclose(np.abs(dense.feats).sum(1), 1)
    small_graph.feats = scipy.sparse.csr_matrix(np.array([[1.0, 3.0], [0, 0]] * 3, dtype=np.float32))
    sparse = small_graph.normalize_feats("row")
    assert scipy.sparse.issparse(sparse.feats)
    assert sparse.feats.dtype == np.float32
    assert sparse.feats.toarray()[:2].tolist() == [[0.25, 0.75], [0, 0]]


def test_real_graphs_are_as_their_readme_says(data_root):
    cora, citeseer = load_graph("cora", data_root), load_graph("citeseer", data_root)
    assert (cora.num_nodes, cora.num_edges, cora.num_feats, cora.num_classes) == (2708, 5278, 1433, 7)
    counts = citeseer.counts()
    assert (counts["isolated"], counts["unlabelled"], counts["duplicates"]) == (48, 15, 0)
    assert not cora.directed
    assert cora.edge_list(self_loops="add").num_arcs == 2 * 5278 + 2708
