"""The order of vertices that keeps clusters together: of the graph alone, and kept in the partition folder."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.errors import PartitionFormatError
from distgnn.partition import load_part, partition_graph, read_manifest
from distgnn.partition.cmr.levels import cluster_places
from distgnn.partition.repartition import repartition

from ..folders import replace_array

SOURCE = "communities:nodes=600,communities=6,avg_degree=8,classes=4,feats=3"


def test_neighbours_stand_together():
    edges = load_graph(SOURCE).edge_list()
    places = cluster_places(edges)
    np.testing.assert_array_equal(np.sort(places), np.arange(600))
    shuffled = np.random.default_rng(0).permutation(600)
    near, any_two = (np.mean(p[edges.src] // 25 == p[edges.dst] // 25) for p in (places, shuffled))
    assert near > 3 * any_two


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("clusters")
    for parts in (1, 3):
        partition_graph(SOURCE, parts, place / str(parts), clusters=True)
    repartition(place / "3", 2, place / "2")
    partition_graph(SOURCE, 2, place / "none")
    return place


def whole(folder) -> np.ndarray:
    places = np.full(600, -1)
    for part in range(read_manifest(folder)["num_parts"]):
        local = load_part(folder, part)
        places[local.global_ids[: local.num_owned]] = local.cluster_places
    return places


def test_it_is_the_same_for_any_number_of_parts_and_absent_unless_asked_for(folders):
    expected = cluster_places(load_graph(SOURCE).edge_list())
    for name in ("1", "2", "3"):
        np.testing.assert_array_equal(whole(folders / name), expected)
    assert load_part(folders / "none", 0).cluster_places is None


def test_places_out_of_range_are_named(folders):
    places = np.load(folders / "1" / "part-0" / "cluster_places.npy")
    replace_array(folders / "1", "cluster_places", places + 1)
    with pytest.raises(PartitionFormatError, match=r"cluster_places\.npy: places must lie in 0 to"):
        load_part(folders / "1", 0)
