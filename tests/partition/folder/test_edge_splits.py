"""Splits of edges, values and graph ids in the partition folder: each pair with the owner of its source, once."""

import json

import numpy as np
import pytest

from distgnn.datasets import GraphData
from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition import load_part, partition_graph, read_manifest
from distgnn.partition.repartition import load_whole, repartition

from ..folders import make_graph, replace_array, resign


def split_graph() -> GraphData:
    graph = make_graph(directed=False)
    graph.node_values = np.arange(graph.num_nodes, dtype=np.float32)
    graph.graph_ids = np.arange(graph.num_nodes) // 10
    split = graph.split_links(0.1, 0.2, seed=1)
    rows = (len(split.test_edges), 3)
    split.test_negative_targets = np.random.default_rng(0).integers(0, graph.num_nodes, rows)
    return split.check()


@pytest.fixture
def split_parts(tmp_path):
    partition_graph(split_graph(), 2, tmp_path / "parts")
    return tmp_path / "parts"


def test_every_pair_is_with_the_owner_of_its_source(tmp_path):
    graph = split_graph()
    partition_graph(graph, 3, tmp_path / "parts")
    found = {"train_edges": graph.edges, "test_negatives": graph.test_negatives, "test_edges": graph.test_edges}
    seen = {name: [] for name in found}
    for part_id in range(3):
        part = load_part(tmp_path / "parts", part_id)
        owned = part.global_ids[: part.num_owned]
        assert np.array_equal(part.node_values[:, 0], graph.node_values[owned])
        assert np.array_equal(part.graph_ids, graph.graph_ids[owned])
        for name, whole in found.items():
            ids = part.edge_split_ids(name)
            assert np.array_equal(part.edge_splits[name], whole[ids])
            assert np.isin(part.edge_splits[name][:, 0], owned).all()
            seen[name] += ids.tolist()
        targets = part.edge_splits["test_negative_targets"]
        assert np.array_equal(targets, graph.test_negative_targets[part.edge_split_ids("test_edges")])
    for name, whole in found.items():
        assert sorted(seen[name]) == list(range(len(whole)))


def test_repartition_keeps_them_to_the_byte(tmp_path):
    graph = split_graph()
    for parts in (2, 3):
        partition_graph(graph, parts, tmp_path / f"parts-{parts}")
    repartition(tmp_path / "parts-3", 2, tmp_path / "again")
    for file in sorted((tmp_path / "parts-2").rglob("*.npy")):
        assert (tmp_path / "again" / file.relative_to(tmp_path / "parts-2")).read_bytes() == file.read_bytes(), file
    whole = load_whole(tmp_path / "again").graph
    assert np.array_equal(whole.test_negative_targets, graph.test_negative_targets)


def test_the_on_disk_cut_writes_the_same_pairs(tmp_path, on_disk):
    graph = split_graph()
    partition_graph(graph, 2, tmp_path / "parts", memory="8GB")
    whole = load_whole(tmp_path / "parts").graph
    assert np.array_equal(whole.train_edges, graph.edges)
    assert np.array_equal(whole.valid_negatives, graph.valid_negatives)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("valid_edges", lambda array: array + 10**6, "ids must lie in 0 to"),
        ("valid_edges", lambda array: array[:-1], "rows for"),
        ("valid_edge_ids", lambda array: array[::-1].copy(), "rows must rise from 0"),
        ("valid_negatives", lambda array: np.full_like(array, -1), "ids must lie in 0 to"),
        ("test_negative_targets", lambda array: array - 10**6, "ids must lie in 0 to"),
        ("graph_ids", lambda array: array + 10**6, "ids must lie in 0 to"),
    ],
)
def test_damaged_pairs_are_named(split_parts, name, change, says):
    replace_array(split_parts, name, change(np.load(split_parts / "part-0" / f"{name}.npy")))
    with pytest.raises(PartitionFormatError, match=says):
        load_part(split_parts, 0)


def test_pairs_of_another_owner_and_a_manifest_without_sense(split_parts):
    array = np.load(split_parts / "part-0" / "valid_edges.npy")
    array[0, 0] = load_part(split_parts, 1).global_ids[0]
    replace_array(split_parts, "valid_edges", array)
    with pytest.raises(PartitionFormatError, match="a pair whose source this part does not own"):
        load_part(split_parts, 0)
    resign(split_parts, lambda manifest: manifest["graph"].update(edge_splits={"bogus": [1]}))
    with pytest.raises(PartitionFormatError, match=r"graph\.edge_splits is missing or wrong"):
        read_manifest(split_parts)


def test_link_split_of_the_cut(tmp_path):
    graph = make_graph(directed=True)
    for parts in (1, 2):
        partition_graph(graph, parts, tmp_path / f"parts-{parts}", link_split="0.1,0.2", direction="both", seed=3)
    one, two = (load_whole(tmp_path / f"parts-{parts}").graph for parts in (1, 2))
    assert np.array_equal(one.test_edges, two.test_edges) and len(one.test_edges)
    assert np.array_equal(one.valid_negatives, two.valid_negatives)
    either_way = {frozenset(edge) for edge in one.train_edges.tolist()}
    assert not either_way & {frozenset(edge) for edge in one.test_edges.tolist()}
    manifest = json.loads((tmp_path / "parts-1" / "partition.json").read_text())
    assert (manifest["link_split"], manifest["num_edges"]) == ("0.1,0.2", len(one.train_edges))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"link_split": "0.1"}, "expected shares of valid and test edges"),
        ({"link_split": "0.6,0.6"}, "less than 1"),
        ({"link_split": "0.1,0.1", "memory": "1GB"}, "without a limit"),
    ],
)
def test_link_splits_that_are_none(tmp_path, options, says):
    with pytest.raises(InputError, match=says):
        partition_graph(make_graph(), 2, tmp_path / "parts", **options)
    assert not list(tmp_path.iterdir())


def test_a_held_out_edge_is_no_edge_the_other_way_where_messages_go_both_ways(tmp_path):
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    graph = GraphData.from_arrays(edges, 4, True, test_edges=np.array([[2, 1]]))
    partition_graph(graph, 1, tmp_path / "stored")
    with pytest.raises(InputError, match="row 0, the edge 2 - 1, is still an edge of the graph"):
        partition_graph(graph, 1, tmp_path / "both", direction="both")
