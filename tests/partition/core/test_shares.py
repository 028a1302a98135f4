"""Ranks of unequal speed: every load is shared out in proportion, whatever the method."""

import json

import numpy as np
import pytest

from distgnn.errors import InputError
from distgnn.partition import METHODS, PartitionBook, cut_edges, describe, partition_graph
from distgnn.partition.core.shares import fair_counts, part_shares

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
    assert (
        facts["balances"]["owned"] == pytest.approx(facts["owned_balance"], abs=1e-6) and facts["owned_balance"] < 1.1
    )


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
