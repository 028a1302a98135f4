"""Loads follow capacities: what each step of `cmr` aims at is a part's share, of arcs and of copies."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.partition.cmr.label_propagation import adjacency, cluster_vertices
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.core.shares import part_shares
from distgnn.partition.core.sorted_edges import ordered_edges
from distgnn.partition.refinement.cut_state import start_state
from distgnn.partition.refinement.edge_moves import refine
from distgnn.partition.refinement.groups import groups_of, without_gaps
from distgnn.partition.refinement.merge import merge_groups
from distgnn.partition.refinement.replica_table import count_copies

SHARES = part_shares(4, [4, 2, 1, 1])


@pytest.fixture(scope="module")
def sorted_edges():
    edges = load_graph("communities:nodes=3000,seed=1").edge_list()
    degrees = endpoint_degrees(edges)
    labels = cluster_vertices(*adjacency(edges, degrees), 2 * edges.num_edges / (32 * len(SHARES)))
    rows, _, vertices = ordered_edges(edges, degrees, labels)
    return rows, degrees[vertices], labels[vertices]


def over_share(copies):
    return copies / (copies.sum() * SHARES)


@pytest.mark.parametrize("in_turn", [0, 10**6])
def test_merged_clusters(sorted_edges, in_turn, monkeypatch):
    monkeypatch.setattr("distgnn.partition.refinement.merge.IN_TURN", in_turn)
    rows, degrees, labels = sorted_edges
    groups = groups_of(rows, *without_gaps(labels[rows.src]))
    _, table = merge_groups(groups, degrees, SHARES, rows.num_arcs // 2)
    copies = np.zeros(len(SHARES), dtype=np.int64)
    count_copies(table, copies)
    assert over_share(copies).max() < 1.1


def test_refined_edges(sorted_edges):
    """From a random cut, which is far from any balance of copies: prices without shares leave twice a share in some."""
    rows, degrees, _ = sorted_edges
    given = np.random.default_rng(0).choice(len(SHARES), len(rows.src), p=SHARES)
    parts = refine(rows, given, SHARES, degrees=degrees)
    copies = start_state(rows, parts, len(SHARES), degrees).num_copies
    assert over_share(copies).max() < 1.5
