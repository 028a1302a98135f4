"""Clusters at every scale: nested, below their caps; and the order of vertices that keeps them together."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.partition import load_part, partition_graph
from distgnn.partition.cmr.levels import PER_PART, cluster_places, coarser, contract, find_levels, finest_level
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.repartition import repartition

from ..graphs import NAMES, awkward, core_and_islands, edge_list


@pytest.mark.parametrize("name", NAMES)
def test_levels_are_nested_and_below_their_caps(name):
    edges = edge_list(*awkward(name))
    degrees = endpoint_degrees(edges)
    labels = finest_level(edges, degrees, 2)
    levels = find_levels(edges, labels, degrees, 2)
    assert len(levels) == 1 + len(PER_PART)
    for finer, fewer, per_part in zip(levels[:-1], levels[1:], PER_PART, strict=True):
        assert set(fewer.tolist()) == set(range(fewer.max(initial=-1) + 1))
        inside = {}
        for one, other in zip(finer.tolist(), fewer.tolist(), strict=True):
            assert inside.setdefault(one, other) == other
        grown = np.bincount(list(inside.values())) > 1
        volumes = np.bincount(fewer, weights=degrees)
        assert (volumes[grown] <= 2 * edges.num_edges / (per_part * 2)).all()


def test_levels_are_those_of_contracting_the_edges_each_time():
    """What is contracted from the level below has the weights and volumes of the edges themselves."""
    edges = core_and_islands()
    degrees = endpoint_degrees(edges)
    clusters = contract(edges, finest_level(edges, degrees, 4), degrees)
    fewer = 0
    for cap in (100.0, 1000.0, 10000.0):
        clusters = coarser(clusters, cap)
        again = contract(edges, clusters.numbers, degrees)
        np.testing.assert_array_equal(again.numbers, clusters.numbers)
        np.testing.assert_array_equal(again.volumes, clusters.volumes)
        assert (again.between != clusters.between).nnz == 0
        fewer += len(clusters.volumes) < len(degrees) / 20
    assert fewer


SOURCE = "communities:nodes=600,communities=6,avg_degree=8,classes=4,feats=3"


def test_neighbours_stand_together():
    edges = load_graph(SOURCE).edge_list()
    places = cluster_places(edges)
    np.testing.assert_array_equal(np.sort(places), np.arange(600))
    shuffled = np.random.default_rng(0).permutation(600)
    near, any_two = (np.mean(p[edges.src] // 25 == p[edges.dst] // 25) for p in (places, shuffled))
    assert near > 3 * any_two


def test_places_are_those_of_the_graph_in_any_parts_and_absent_unless_asked_for(tmp_path):
    expected = cluster_places(load_graph(SOURCE).edge_list())
    for parts in (1, 3):
        partition_graph(SOURCE, parts, tmp_path / str(parts), clusters=True)
    repartition(tmp_path / "3", 2, tmp_path / "2")
    for parts in (1, 2, 3):
        for local in (load_part(tmp_path / str(parts), part) for part in range(parts)):
            np.testing.assert_array_equal(local.cluster_places, expected[local.global_ids[: local.num_owned]])
    partition_graph(SOURCE, 2, tmp_path / "none")
    assert load_part(tmp_path / "none", 0).cluster_places is None
