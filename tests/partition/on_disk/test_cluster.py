"""Clusters of sorted edges, voted for by blocks on several threads, against one vertex after the other in Python."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.partition.core import sorted_edges as sorting
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.core.sorted_edges import number_by_degree
from distgnn.partition.on_disk import cluster

from ..graphs import edge_list


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
    rows = sorting.sort_edges(edges, degrees, number_by_degree(degrees), sorting.in_memory, sorting.no_step)
    return rows, -np.sort(-degrees)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("block", [1, 16, 300])
def test_labels_are_those_of_one_vertex_after_the_other(edges, threads, block, monkeypatch, set_num_threads):
    monkeypatch.setattr(cluster, "SMALLEST_BLOCK", block)
    set_num_threads(threads)
    rows, degrees = rows_of(edges)
    # With room for all: who finds none may see in a block that another one has left.
    for mine, plain in zip(
        cluster.cluster_by_edges(rows, degrees, np.inf, sorting.no_step), in_turn(rows, degrees, np.inf), strict=True
    ):
        np.testing.assert_array_equal(mine, plain)


@pytest.mark.parametrize("threads", [1, 3])
def test_no_cluster_outgrows_its_room(edges, threads, monkeypatch, set_num_threads):
    monkeypatch.setattr(cluster, "SMALLEST_BLOCK", 50)
    set_num_threads(threads)
    rows, degrees = rows_of(edges)
    cap = float(degrees.max() + 10)
    labels, volumes = cluster.cluster_by_edges(rows, degrees, cap, sorting.no_step)
    np.testing.assert_array_equal(volumes, np.bincount(labels, weights=degrees, minlength=len(degrees)))
    assert volumes.max() <= cap
    # As near to the cut of one after the other as to go by its size: clusters are as full.
    assert np.count_nonzero(volumes) <= 1.1 * np.count_nonzero(in_turn(rows, degrees, cap)[1])
