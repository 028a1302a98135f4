"""Pairs of vertices as numbers: which repeat, and double edges made one."""

import numpy as np
import pytest

import distgnn as dg
from distgnn.datasets import pairs
from distgnn.datasets.pairs import merge_edges


@pytest.mark.parametrize("block", [3, 1 << 22])
@pytest.mark.parametrize("largest", [3, 100, 10**6, 2**62])
def test_repeated_edges_are_all_but_the_first(largest, block, monkeypatch):
    monkeypatch.setattr(pairs, "BLOCK", block)
    rng = np.random.default_rng(0)
    for num_rows in (0, 1, 2, 50, 1000):
        keys = rng.integers(0, largest, num_rows)
        first = {key: row for row, key in reversed(list(enumerate(keys.tolist())))}
        expected = [row for row, key in enumerate(keys.tolist()) if first[key] != row]
        assert pairs.repeated_edges(keys).tolist() == expected


def test_keys_do_not_overflow():
    ends = np.array([2**31 - 2], dtype=np.int32)
    assert pairs.pair_keys(ends, ends, 2**31 - 1).tolist() == [(2**31 - 2) * (2**31 - 1) + 2**31 - 2]
    assert pairs.undirected_keys(ends, ends - 1, 2**31 - 1).tolist() == [(2**31 - 3) * (2**31 - 1) + 2**31 - 2]


def test_double_edges_are_one(tmp_path):
    edges = [[0, 1], [1, 0], [2, 1], [0, 1], [1, 2]]
    weight, feats = [1, 2, 4, 8, 16], np.arange(10).reshape(5, 2)
    graph = dg.GraphData.from_arrays(edges, 3, edge_weight=weight, edge_feats=feats)
    for how, of_weight, of_feats in (("sum", 9, [6, 8]), ("mean", 4.5, [3, 4]), ("max", 8, [6, 7])):
        merged = merge_edges(graph, how)
        assert merged.edges.tolist() == [[0, 1], [1, 0], [2, 1], [1, 2]]
        np.testing.assert_array_equal(merged.edge_weight, [of_weight, 2, 4, 16])
        np.testing.assert_array_equal(merged.edge_feats[0], of_feats)
    undirected = dg.GraphData.from_arrays(edges, 3, directed=False, edge_types=[0, 0, 0, 1, 0])
    merged = merge_edges(undirected, "sum")
    assert (merged.edges.tolist(), merged.edge_weight.tolist()) == ([[0, 1], [2, 1], [0, 1]], [2, 2, 1])
    assert merged.edge_types.tolist() == [0, 0, 1] and merge_edges(undirected, "max").edge_weight is None
    manifest = dg.partition_graph(graph, 1, tmp_path / "parts", merge="sum")
    assert (manifest["num_edges"], manifest["merge"]) == (4, "sum")
