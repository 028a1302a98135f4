"""Cutting methods: every edge once, every vertex owned, same seed same cut, balances, and fidelity to DGL's Libra."""

import numpy as np
import pytest

from distgnn.config import CutConfig, cut
from distgnn.partition import METHODS, PartitionBook, cut_edges
from distgnn.partition.folder.describe import rows_between_groups

from .graphs import NAMES, awkward, edge_list

IN_PROCESS = [name for name in METHODS if name not in ("metis", "kahypar")]


COUNTS = {name: [1, 2, 5] for name in NAMES}


for name in ("random", "hub joined to everything"):
    COUNTS[name] += [64, 65]  # the bits of a word, and one more


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", IN_PROCESS)
def test_no_graph_is_too_odd(method, name):
    edges = edge_list(*awkward(name))
    for num_parts in COUNTS[name]:
        found = cut_edges(edges, num_parts, method).check(edges)
        masks = np.zeros((edges.num_nodes, num_parts), dtype=bool)
        masks[edges.src, found.edge_part] = masks[edges.dst, found.edge_part] = True
        held = masks[np.arange(edges.num_nodes), found.owner]
        strangers = np.count_nonzero(~held & masks.any(axis=1))
        most = np.bincount(found.owner, minlength=num_parts).max()
        fair = max(1.04 * edges.num_nodes / num_parts, edges.num_nodes // num_parts + 2)
        assert strangers == 0 or most <= fair, num_parts


@pytest.mark.parametrize("method", IN_PROCESS)
def test_the_same_seed_gives_the_same_cut(method, power_law):
    first, again, other = (cut_edges(power_law, 4, method, seed=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.edge_part, again.edge_part)
    np.testing.assert_array_equal(first.owner, again.owner)
    assert (first.edge_part != other.edge_part).any() == (method != "cmr"), "nothing in cmr is random"


@pytest.mark.parametrize("num_parts", [2, 32])
@pytest.mark.parametrize("method", IN_PROCESS)
def test_balances(method, num_parts, power_law):
    book = PartitionBook(power_law, cut_edges(power_law, num_parts, method))
    assert book.edge_balance <= 1.03
    assert book.owned_balance <= 1.05


def test_a_configuration_is_the_same_as_its_options(planted):
    config = CutConfig("libra", seed=3, refine=True, groups=2, direction="both")
    assert tuple(METHODS) == cut.METHODS
    first, again = cut_edges(planted, 4, config), cut_edges(planted, 4, "libra", seed=3, refine=True, groups=2)
    np.testing.assert_array_equal(first.edge_part, again.edge_part)
    np.testing.assert_array_equal(first.owner, again.owner)


@pytest.mark.parametrize("method", ["cmr", "libra"])
def test_cutting_between_groups_first_saves_rows_between_them(method, planted):
    once = PartitionBook(planted, cut_edges(planted, 8, method))
    twice = PartitionBook(planted, cut_edges(planted, 8, method, groups=2))
    assert rows_between_groups(twice.pair_rows, 2) < rows_between_groups(once.pair_rows, 2)
    assert twice.edge_balance <= 1.03 and twice.owned_balance <= 1.05


@pytest.mark.parametrize("name", NAMES)
def test_two_levels_of_any_graph(name):
    edges = edge_list(*awkward(name))
    cut_edges(edges, 4, "cmr", groups=2).check(edges)
