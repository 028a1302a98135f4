"""Cutting anew, and merging parts: the same graph, in the files that cutting the source gives."""

import numpy as np
import pytest

from distgnn.datasets import GraphData, load_graph
from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition import (
    PartitionBook,
    VertexCut,
    against_libra,
    cut_edges,
    load_part,
    partition_graph,
    read_manifest,
    write_partition,
)
from distgnn.partition.repartition import BALANCE, join_parts, load_whole, merge_parts, repartition

from .folders import make_graph

KINDS = {
    "plain": {}, "directed": {"directed": True}, "sparse": {"feats": "sparse"}, "weighted": {"weighted": True},
    "multilabel": {"multilabel": True}, "bare": {"feats": "none"}, "typed": {"typed": True, "directed": True},
}  # fmt: skip
SPECIAL = [
    ("directed", {"direction": "both"}),
    ("plain", {"self_loops": "add"}),
    ("directed", {"self_loops": "remove"}),
]


def graph_of(kind: str) -> GraphData:
    graph = make_graph(**KINDS[kind])
    if kind == "bare":
        graph.labels = graph.train = graph.valid = graph.test = None
    return graph


@pytest.mark.parametrize(("kind", "options"), [(kind, {}) for kind in KINDS] + SPECIAL, ids=str)
def test_the_files_are_those_of_the_source(tmp_path, kind, options):
    graph = graph_of(kind)
    partition_graph(graph, 2, tmp_path / "two", method="libra", seed=3, **options)
    expected = partition_graph(graph, 3, tmp_path / "expected", method="libra", seed=3, **options)
    found = repartition(tmp_path / "two", 3, tmp_path / "three")
    assert found["parts"] == expected["parts"]  # sizes and checksums of every file
    changing = dict.fromkeys(("seconds", "phase_seconds", "peak_rss_bytes", "sha256", "edge_report"))
    assert found | changing == expected | changing
    back = repartition(tmp_path / "three", 2, tmp_path / "back")
    assert back["parts"] == read_manifest(tmp_path / "two")["parts"]


# What a part holds is read as for cutting anew
MERGED = [("sparse", {}), ("weighted", {}), ("typed", {}), SPECIAL[0]]


def same_graph(one, other) -> None:
    (graph, edges), (again, edges_again) = (load_whole(folder)[2:4] for folder in (one, other))
    for name in ("src", "dst", "edge_weight"):
        np.testing.assert_array_equal(getattr(edges, name), getattr(edges_again, name))
    for name in ("labels", "train", "valid", "test", "edge_types", "node_types"):
        np.testing.assert_array_equal(getattr(graph, name), getattr(again, name))
    feats = [one.feats[np.arange(graph.num_nodes)] for one in (graph, again)]
    np.testing.assert_array_equal(*(rows.toarray() if hasattr(rows, "tocsr") else rows for rows in feats))


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


def test_a_taken_place_more_parts_than_there_are_and_a_damaged_part_are_refused(tmp_path):
    partition_graph(graph_of("plain"), 2, tmp_path / "2")
    with pytest.raises(InputError, match="2 parts cannot be merged into 3: expected 1 to 2"):
        merge_parts(tmp_path / "2", 3, tmp_path / "3")
    for change in (merge_parts, repartition):
        with pytest.raises(InputError, match="exists already"):
            change(tmp_path / "2", 1, tmp_path / "2")
    (tmp_path / "2" / "part-1" / "feats.npy").write_bytes(b"")
    for change in (merge_parts, repartition):
        with pytest.raises(PartitionFormatError, match=r"feats\.npy"):
            change(tmp_path / "2", 1, tmp_path / "1")
    assert not (tmp_path / "1").exists()


def test_against_libra_compares_two_cuts_of_one_graph(tmp_path):
    graph = load_graph("rmat:scale=8,edge_factor=4,feats=3,classes=2,seed=1")
    edges = graph.edge_list()
    cuts = [cut_edges(edges, 4, "libra", seed=seed) for seed in (0, 5)]
    write_partition(graph, edges, cuts[0], tmp_path / "parts")
    facts = against_libra(tmp_path / "parts", seed=5)
    for found, book in zip(facts.values(), (PartitionBook(edges, cut) for cut in cuts), strict=True):
        assert found["replication_factor"] == pytest.approx(book.replication_factor, abs=1e-6)
        assert found["exchange_rows"] == book.exchange_rows
