"""Clusters merged into parts: copies follow capacities, one after the other and in blocks."""

import numpy as np
import pytest

from distgnn.partition.cmr.label_propagation import adjacency, cluster_vertices
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.core.sorted_edges import ordered_edges
from distgnn.partition.core.vertex_cut import part_shares
from distgnn.partition.refinement.groups import groups_of, without_gaps
from distgnn.partition.refinement.merge import merge_groups
from distgnn.partition.refinement.replica_table import count_copies

SHARES = part_shares(4, [4, 2, 1, 1])


@pytest.mark.parametrize("in_turn", [0, 10**6])
def test_merged_clusters(planted, in_turn, monkeypatch):
    monkeypatch.setattr("distgnn.partition.refinement.merge.IN_TURN", in_turn)
    degrees = endpoint_degrees(planted)
    labels = cluster_vertices(*adjacency(planted, degrees), 2 * planted.num_edges / (32 * len(SHARES)))
    rows, _, vertices = ordered_edges(planted, degrees, labels)
    groups = groups_of(rows, *without_gaps(labels[vertices][rows.src]))
    _, table = merge_groups(groups, degrees[vertices], SHARES, rows.num_arcs // 2)
    copies = np.zeros(len(SHARES), dtype=np.int64)
    count_copies(table, copies)
    assert (copies / (copies.sum() * SHARES)).max() < 1.1
