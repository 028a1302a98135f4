"""Reprs fit one line: a failing property test prints its counterexample."""

import numpy as np
import scipy.sparse

from distgnn.datasets import GraphData


def test_a_small_edge_list_shows_its_edges(small_graph):
    small_graph.edge_weight = np.arange(6, dtype=np.float32)
    shown = repr(small_graph.edge_list(self_loops="remove"))
    assert shown == (
        "EdgeList(num_nodes=6, num_edges=5, one-way, self_loops='remove', weighted, "
        "edges=[(0, 1), (0, 1), (1, 0), (1, 2), (3, 4)], edge_weight=[0.0, 1.0, 2.0, 4.0, 5.0])"
    )


def test_a_large_edge_list_shows_counts_only():
    edges = GraphData.from_arrays(np.zeros((1000, 2), dtype=np.int64), directed=False).edge_list()
    assert repr(edges) == "EdgeList(num_nodes=1, num_edges=1000, two-way, self_loops='keep')"


def test_a_graph_names_what_it_has(small_graph):
    assert repr(small_graph) == (
        "GraphData('small', num_nodes=6, num_edges=6, directed, feats=6x2 float32, num_classes=3, "
        "train=2, valid=1, test=2)"
    )
    small_graph.feats = scipy.sparse.csr_matrix(small_graph.feats)
    small_graph.edge_types = np.zeros(6, dtype=np.int64)
    assert "feats=sparse 6x2 float32" in repr(small_graph) and repr(small_graph).endswith("edge_types)")
