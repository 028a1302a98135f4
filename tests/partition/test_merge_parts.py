"""Merging parts: the same graph in fewer, balanced parts."""

import numpy as np
import pytest

from distgnn.errors import InputError
from distgnn.partition import VertexCut, load_part, partition_graph, read_manifest
from distgnn.partition.pipeline import write_partition
from distgnn.partition.repartition import BALANCE, join_parts, load_whole, merge_parts
from tests.partition.test_repartition import SPECIAL, graph_of

# What a part holds is read as for cutting anew: tests/partition/test_repartition.py has every kind.
MERGED = [("sparse", {}), ("weighted", {}), ("typed", {}), SPECIAL[0]]


def same_graph(one, other) -> None:
    (graph, edges), (again, edges_again) = (load_whole(folder)[2:4] for folder in (one, other))
    for name in ("src", "dst", "edge_weight"):
        np.testing.assert_array_equal(getattr(edges, name), getattr(edges_again, name))
    for name in ("labels", "train", "valid", "test", "edge_types", "node_types"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(again, name))
    everyone = np.arange(graph.num_nodes)
    if hasattr(graph.feats, "tocsr"):
        assert (graph.feats != again.feats).nnz == 0
    elif graph.feats is not None:
        np.testing.assert_array_equal(graph.feats[everyone], again.feats[everyone])


@pytest.mark.parametrize(("kind", "options"), MERGED, ids=str)
def test_the_graph_stays_and_parts_are_balanced(tmp_path, kind, options):
    partition_graph(graph_of(kind), 4, tmp_path / "4", method="libra", **options)
    for num_parts in (3, 1):
        found = merge_parts(tmp_path / "4", num_parts, tmp_path / str(num_parts))
        assert (found["num_parts"], found["merged_from"]) == (num_parts, 4)
        assert found["edge_balance"] <= BALANCE + 3 * num_parts / found["num_arcs"]  # whole two-way edges
        same_graph(tmp_path / "4", tmp_path / str(num_parts))


def test_capacities_are_added(tmp_path):
    partition_graph(graph_of("plain"), 3, tmp_path / "3", capacities=(1, 1, 2))
    found = merge_parts(tmp_path / "3", 2, tmp_path / "2")
    assert sorted(found["capacities"]) == [2, 2]


def test_reverse_arcs_in_other_parts_stay_where_their_part_goes(tmp_path):
    graph, rng = graph_of("plain"), np.random.default_rng(0)
    edges = graph.edge_list()
    forward, reverse = (rng.integers(0, 3, len(edges.src)).astype(np.int16) for _ in range(2))
    cut = VertexCut(3, forward, rng.integers(0, 3, graph.num_nodes).astype(np.int32), reverse)
    write_partition(graph, edges, cut, tmp_path / "3")
    merge_parts(tmp_path / "3", 2, tmp_path / "2")
    same_graph(tmp_path / "3", tmp_path / "2")
    arcs = sum(load_part(tmp_path / "2", part).num_arcs for part in range(2))
    assert arcs == read_manifest(tmp_path / "3")["num_arcs"]


def test_parts_that_exchange_most_are_joined_unless_that_is_heavy():
    rows = np.zeros((4, 4), dtype=np.int64)
    rows[0, 3] = rows[1, 2] = 9
    assert join_parts(np.array([10, 10, 10, 10]), rows, 2).tolist() == [0, 1, 1, 0]
    assert join_parts(np.array([90, 10, 10, 10]), rows, 2).tolist() == [0, 1, 1, 1]


def test_more_parts_than_there_are_and_a_taken_place_are_refused(tmp_path):
    partition_graph(graph_of("plain"), 2, tmp_path / "2")
    with pytest.raises(InputError, match="2 parts cannot be merged into 3: expected 1 to 2"):
        merge_parts(tmp_path / "2", 3, tmp_path / "3")
    with pytest.raises(InputError, match="exists already"):
        merge_parts(tmp_path / "2", 1, tmp_path / "2")
