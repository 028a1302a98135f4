"""Ranks of unequal speed: every load is shared out in proportion, whatever the method."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from distgnn.errors import InputError
from distgnn.partition import METHODS, PartitionBook, VertexCut, cut_edges, describe, partition_graph
from distgnn.partition.core.vertex_cut import fair_counts, part_shares

from ..graphs import NAMES, awkward, edge_list

SPEEDS = [1, 2, 4, 1]


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"kahypar"}))
def test_loads_follow_the_speeds(method, planted):
    """Hashing whole vertices, and METIS's owners, promise nothing about arcs."""
    book = PartitionBook(planted, cut_edges(planted, 4, method, capacities=SPEEDS))
    assert book.edge_balance <= (1.5 if method == "metis" else 1.031)
    assert book.owned_balance <= 1.05
    # Not more than its share; less where a part already exchanges most for its speed
    np.testing.assert_allclose(book.num_owned / book.num_nodes, np.array(SPEEDS) / 8, atol=0.03)


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"metis", "kahypar"}))
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"all isolated", "no vertices"}))
def test_any_graph(name, method):
    edges = edge_list(*awkward(name))
    cut = cut_edges(edges, 3, method, capacities=[5, 1, 1]).check(edges)
    assert np.bincount(cut.owner, minlength=3).sum() == edges.num_nodes


def test_the_folder_remembers_them(tmp_path):
    partition_graph("communities:nodes=500,seed=1", 4, tmp_path / "parts", capacities=SPEEDS)
    facts = describe(tmp_path / "parts")
    assert json.loads((tmp_path / "parts" / "partition.json").read_text())["capacities"] == SPEEDS
    assert pytest.approx(facts["owned_balance"], abs=1e-6) == facts["balances"]["owned"] < 1.1


def test_fair_counts():
    for total in (0, 1, 7, 1000):
        counts = fair_counts(total, part_shares(4, SPEEDS))
        assert counts.sum() == total and (np.abs(counts - total * np.array(SPEEDS) / 8) <= 1).all()


@pytest.mark.parametrize(
    ("speeds", "message"),
    [
        ([1, 2], "one speed for each of 4 parts, not 2"),
        ([1, 1, 1, 0], "positive"),
        ([1, 1, 1, float("nan")], "positive"),
        (["1", "1", "1", "fast"], "must be numbers"),
        ([1, 1, 1, 1e-9], "part 3 has less than"),
    ],
)
def test_bad_speeds(speeds, message):
    with pytest.raises(InputError, match=message):
        part_shares(4, speeds)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("num_parts", 0, "at least 1 part"),
        ("edge_part", np.zeros(2, dtype=np.int64), r"edge_part must be an integer array of shape \(3,\)"),
        ("edge_part", np.zeros(3), "not float64"),
        ("owner", np.array([0, 0, 0, 2]), "parts 0 to 1"),
        ("owner", np.array([0, 0, 0, -1]), "from -1"),
        ("owner", [0, 0, 0, 0], "not list"),
        ("reverse_part", np.array([0, 1, 9]), "reverse_part"),
        ("order", np.zeros(9, dtype=np.int64), "order"),
    ],
)
def test_a_cut_that_does_not_fit_is_refused(field, value, message):
    edges = edge_list([(0, 1), (1, 2), (2, 3)], 4)
    fields = {"num_parts": 2, "edge_part": np.zeros(3, dtype=np.int32), "owner": np.zeros(4, dtype=np.int32)}
    with pytest.raises(ValueError, match=message):
        VertexCut(**(fields | {field: value})).check(edges)


def test_reverse_parts_need_two_way_rows():
    zeros = np.zeros(1, dtype=np.int64)
    with pytest.raises(ValueError, match="two-way"):
        VertexCut(1, zeros, zeros, zeros).check(SimpleNamespace(src=np.zeros(1), num_nodes=1, two_way=False))
