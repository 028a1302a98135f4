"""Clusters stay below their cap, and their edges are groups with all of their ends."""

import numpy as np
import pytest

from distgnn.partition.cmr.label_propagation import adjacency, cluster_vertices
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.core.sorted_edges import ordered_edges
from distgnn.partition.refinement.groups import groups_of, without_gaps

from ..graphs import NAMES, awkward, edge_list


@pytest.mark.parametrize("name", NAMES)
def test_clusters_stay_below_their_cap(name):
    edges = edge_list(*awkward(name))
    indptr, neighbours = adjacency(edges, endpoint_degrees(edges))
    labels = cluster_vertices(indptr, neighbours, 9.0)
    volumes = np.bincount(labels, weights=np.diff(indptr), minlength=edges.num_nodes)
    alone = np.bincount(labels, minlength=edges.num_nodes) <= 1
    assert (volumes[~alone] <= 9.0).all()
    rows, order, vertices = ordered_edges(edges, endpoint_degrees(edges), labels)
    assert sorted(order.tolist()) == list(range(edges.num_edges)) and (np.diff(rows.src) >= 0).all()
    given = np.sort(np.stack([edges.src, edges.dst])[:, order], axis=0)
    np.testing.assert_array_equal(np.sort(np.stack([vertices[rows.src], vertices[rows.dst]]), axis=0), given)
    clusters, count = without_gaps(labels[vertices][rows.src])
    assert set(clusters.tolist()) == set(range(count))
    starts, members, sizes, held = groups_of(rows, clusters, count)
    assert sizes.tolist() == np.bincount(clusters, minlength=count).tolist()
    for c in range(count):
        ends = np.concatenate([rows.src[clusters == c], rows.dst[(clusters == c) & (rows.src != rows.dst)]])
        order = np.argsort(members[starts[c] : starts[c + 1]])
        for mine, expected in zip((members, held), np.unique(ends, return_counts=True), strict=True):
            assert mine[starts[c] : starts[c + 1]][order].tolist() == expected.tolist()
