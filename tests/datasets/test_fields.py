"""What a graph says of itself: its line, labels, classes, vertices."""

import numpy as np
import scipy.sparse

from distgnn.datasets import GraphData, load_graph


def test_a_graph_names_what_it_has(small_graph):
    assert repr(small_graph) == (
        "GraphData('small', num_nodes=6, num_edges=6, directed, feats=6x2 float32, num_classes=3, "
        "train=2, valid=1, test=2)"
    )
    small_graph.feats = scipy.sparse.csr_matrix(small_graph.feats)
    small_graph.edge_types = np.zeros(6, dtype=np.int64)
    assert "feats=sparse 6x2 float32" in repr(small_graph) and repr(small_graph).endswith("edge_types)")


def test_a_row_of_minus_one_is_no_label(tmp_path):
    labels = np.array([[0, 1, 1], [-1, -1, -1]])
    graph = load_graph(str(GraphData.from_arrays(np.array([[0, 1]]), labels=labels).save(tmp_path / "multi")))
    assert graph.multilabel and graph.num_classes == 3 and graph.labels.dtype == np.int8
    assert graph.labelled.tolist() == [True, False]


def test_last_vertices_without_edges_are_counted_by_rows():
    graph = GraphData.from_arrays([[0, 1], [1, 2]], x=np.ones((5, 4)), train_mask=np.array([[1], [0], [0], [0], [1]]))
    assert (graph.num_nodes, graph.train.tolist()) == (5, [0, 4])
    assert GraphData.from_arrays([[0, 1], [1, 2]], train=np.array([1, 1, 0, 0, 1], bool)).num_nodes == 5
    assert GraphData.from_arrays([[0, 1], [1, 2]], train=np.array([1, 2])).num_nodes == 3  # ids
