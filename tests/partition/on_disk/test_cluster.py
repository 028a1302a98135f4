"""Cuts on disk: rows sorted in pieces, clusters of them as in Python, and the same for any number of threads."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.kernels.runtime import threads
from distgnn.partition import partition_graph
from distgnn.partition.core import sorted_edges as sorting
from distgnn.partition.core.edges import EdgeArrays, endpoint_degrees
from distgnn.partition.core.sorted_edges import number_by_degree
from distgnn.partition.on_disk import cluster

from ..graphs import edge_list

IN_MEMORY, NO_STEP = sorting.in_memory, sorting.no_step


def test_clusters_hold_the_ends_of_their_rows(hubs, small_pieces):
    edges = hubs.edge_list()
    begins = np.array([0, 1, 2, 5, 5, 300, 700, 701, 1500, edges.num_nodes])
    degrees = endpoint_degrees(edges)
    low, high, _ = sorting.sort_edges(edges, degrees, number_by_degree(degrees), IN_MEMORY, NO_STEP)
    rows = EdgeArrays(low, high, edges.num_nodes, edges.two_way, edges.num_arcs)
    indptr, members, sizes, held = cluster.cluster_groups(rows, begins, IN_MEMORY)
    for c in range(len(begins) - 1):
        mine = (rows.src >= begins[c]) & (rows.src < begins[c + 1])
        ends = np.concatenate([rows.src[mine], rows.dst[mine & (rows.src != rows.dst)]])
        order = np.argsort(members[indptr[c] : indptr[c + 1]])
        for found, expected in zip((members, held), np.unique(ends, return_counts=True), strict=True):
            assert found[indptr[c] : indptr[c + 1]][order].tolist() == expected.tolist()
        assert sizes[c] == mine.sum()


@pytest.mark.parametrize("direction", ["both", "stored"])
def test_the_same_cut_for_any_number_of_threads(hubs, direction, monkeypatch, small_pieces, on_disk, tmp_path):
    monkeypatch.setattr("distgnn.partition.refinement.merge.IN_TURN", 0)
    monkeypatch.setattr("distgnn.partition.refinement.merge.LARGE", 4)
    folders = []
    for count in (small_pieces, 3):
        threads._pool().num_threads = count
        folders.append(partition_graph(hubs, 70, tmp_path / str(len(folders)), direction=direction, memory="8GB"))
    assert folders[0]["parts"] == folders[1]["parts"]


@pytest.fixture(scope="module", params=["hubs", "alike"])
def edges(request):
    if request.param == "hubs":
        return load_graph("rmat:scale=10,edge_factor=6,feats=0,classes=0,seed=3").edge_list()
    # Equal degrees, loops and duplicates: many neighbours that come later in the order.
    rng = np.random.default_rng(0)
    loops = np.repeat(np.arange(50), 2).reshape(50, 2)
    return edge_list(np.concatenate([rng.integers(0, 200, (500, 2)), loops]), 200)


def in_turn(rows, degrees, cap):
    """Label of each vertex, float32 sums in the order of edges."""
    labels, volumes = np.arange(len(degrees)), degrees.astype(np.int64)
    weights = (1 / np.sqrt(np.maximum(degrees, 1))).astype(np.float32)
    for _ in range(cluster.CLUSTER_PASSES):
        for v in np.unique(rows.low):
            votes = np.zeros(len(degrees), dtype=np.float32)
            around = rows.high[rows.low == v]
            for u in around:
                if u != v:
                    votes[labels[u]] += weights[u]
            best = labels[v]
            for label in labels[around]:
                if votes[label] > votes[best] and volumes[label] + degrees[v] <= cap:
                    best = label
            volumes[labels[v]] -= degrees[v]
            volumes[best] += degrees[v]
            labels[v] = best
    return labels, volumes


def rows_of(edges):
    degrees = endpoint_degrees(edges)
    rows = sorting.sort_edges(edges, degrees, number_by_degree(degrees), IN_MEMORY, NO_STEP)
    return rows, -np.sort(-degrees)


@pytest.mark.parametrize("room", [np.inf, 10])
@pytest.mark.parametrize("piece", [1, 50, 10**6])
def test_labels_are_those_of_one_vertex_after_the_other(edges, piece, room, monkeypatch):
    monkeypatch.setattr(cluster, "PIECE_EDGES", piece)
    rows, degrees = rows_of(edges)
    cap = float(degrees.max() + room)
    labels, volumes = cluster.cluster_by_edges(rows, degrees, cap, NO_STEP)
    for mine, plain in zip((labels, volumes), in_turn(rows, degrees, cap), strict=True):
        np.testing.assert_array_equal(mine, plain)
    np.testing.assert_array_equal(volumes, np.bincount(labels, weights=degrees, minlength=len(degrees)))
    assert volumes.max() <= cap
