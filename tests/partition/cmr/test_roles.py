"""Update on owners: rows on the wire are what is counted, where arcs are one-way."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.partition import PartitionBook, cut_edges, methods
from distgnn.partition.cmr.roles import refine_roles
from distgnn.partition.core.vertex_cut import owned_limit, part_shares
from distgnn.partition.folder.describe import rows_between_groups

from ..graphs import NAMES, awkward, edge_list


@pytest.fixture(scope="module")
def one_way():
    edges = load_graph("rmat:scale=10,edge_factor=8,feats=0,classes=0,seed=1").edge_list()
    edges.two_way = False
    return edges


def both_cuts(edges, monkeypatch, **options):
    """Books of a cut that does not charge roles, and of one that does."""
    by_rows = PartitionBook(edges, cut_edges(edges, 6, **options))
    monkeypatch.setattr(methods, "refine_roles", lambda edges, parts, owner, shares, effort: (parts, owner))
    return PartitionBook(edges, cut_edges(edges, 6, **options)), by_rows


def test_fewer_rows_at_the_balances(one_way, monkeypatch):
    by_copies, by_rows = both_cuts(one_way, monkeypatch)
    assert by_rows.exchange_rows < 0.95 * by_copies.exchange_rows
    assert by_rows.edge_balance <= 1.03 and by_rows.owned_balance <= 1.05
    # A vertex with both roles in a part is one local row; a limit of copies, two of it there, lets rows reach 1.06.
    monkeypatch.undo()
    for book in (by_rows, PartitionBook(one_way, cut_edges(one_way, 32))):
        assert book.copies_balance <= 1.045


def test_roles_are_charged_between_groups_too(one_way, monkeypatch):
    by_copies, by_rows = both_cuts(one_way, monkeypatch, groups=2)
    between = [rows_between_groups(book.pair_rows, 2) for book in (by_copies, by_rows)]
    assert between[1] < 0.97 * between[0] and by_rows.exchange_rows < 0.97 * by_copies.exchange_rows
    assert by_rows.edge_balance <= 1.03 and by_rows.owned_balance <= 1.05


def test_capacities_hold_for_arcs_and_owned_vertices(one_way):
    cut = cut_edges(one_way, 3, capacities=[2, 1, 1])
    arcs = np.bincount(cut.edge_part) / one_way.num_edges / cut.shares
    assert arcs.max() <= 1.03
    assert (np.bincount(cut.owner) <= owned_limit(one_way.num_nodes, cut.shares)).all()


@pytest.mark.parametrize("name", NAMES)
def test_awkward_graphs_one_way(name):
    edges = edge_list(*awkward(name))
    edges.two_way = False
    for num_parts in (2, 7):
        before = cut_edges(edges, num_parts, "random", seed=1)
        part, owner = refine_roles(edges, before.edge_part, before.owner, part_shares(num_parts))
        after = cut_edges(edges, num_parts, "random", seed=1, refine=True)
        rows = [PartitionBook(edges, cut).exchange_rows for cut in (before, after)]
        assert rows[1] <= rows[0]
        assert part.shape == edges.src.shape and owner.shape == (edges.num_nodes,)
        assert part.size == 0 or (part.min() >= 0 and part.max() < num_parts)
        assert owner.min(initial=0) >= 0 and owner.max(initial=0) < num_parts
