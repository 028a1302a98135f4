"""Who owns what: vertices that a part must give away go where few rows are exchanged, and local rows are few."""

import numpy as np
import pytest

from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.edges import EdgeArrays
from distgnn.partition.core.owners import balanced_owners, even_exchange
from distgnn.partition.core.vertex_cut import VertexCut, owned_limit


def path(first, count):
    """Edges of a path of so many vertices, from this one on."""
    return [(v, v + 1) for v in range(first, first + count - 1)]


def cut_into(in_parts, num_nodes):
    """Two-way edges from lists of pairs, one for each part, and the part of each edge."""
    src, dst = np.array([edge for edges in in_parts for edge in edges], dtype=np.int32).T.copy()
    edge_part = np.repeat(np.arange(len(in_parts), dtype=np.int16), [len(edges) for edges in in_parts])
    return EdgeArrays(src, dst, num_nodes, True, 2 * len(src)), edge_part


@pytest.mark.parametrize(("alone", "given"), [(10, [0, 4, 4, 11]), (13, [0, 1, 5, 12])])
def test_vertices_are_given_to_parts_that_exchange_little(alone, given):
    """Part 0 has 40 vertices alone, more than it may own. Parts 1 and 2 share 16 and have 10 (13) and two alone, part 3
    exchanges nothing and has ten. Part 3 takes what it may own, the others the rest: part 1 within 1.04 times the mean
    of local rows, 30, of which it has 26 (29)."""
    shared = 40 + alone
    after = shared + 16
    in_parts = [path(0, 40), path(40, alone) + path(shared, 16), path(shared, 16) + path(after, 2), path(after + 2, 10)]
    owner = balanced_owners(*cut_into(in_parts, after + 12), np.full(4, 1 / 4))
    assert np.bincount(owner).max() <= owned_limit(after + 12, np.full(4, 1 / 4)).max()
    givers = owner[:40]
    assert np.bincount(givers[givers > 0], minlength=4).tolist() == given


def test_hubs_stay_where_little_is_exchanged():
    """Seven parts of 100 vertices alone are beyond the limit, the eighth has two; all share 200 hubs.

    Whoever has too many gives to whom has few: not hubs, whose owner would exchange 14 rows of each.
    """
    in_parts = []
    for part in range(8):
        first, size = 200 + 100 * part, 100 if part < 7 else 2
        in_parts.append(path(first, size) + [(hub, first + hub % size) for hub in range(200)])
    edge_list, cut = cut_into(in_parts, 902)
    owner = balanced_owners(edge_list, cut, np.full(8, 1 / 8))
    book = PartitionBook(edge_list, VertexCut(8, cut, owner))
    rows = book.pair_rows.sum(axis=0) + book.pair_rows.sum(axis=1)
    assert rows.max() <= 1.3 * rows.mean()
    assert book.num_owned.max() <= 118


def test_isolated_vertices_fill_parts_up_to_the_limit_of_local_rows():
    """Parts 0 and 1 share 50 vertices and have 100 alone, part 2 has 125 alone, 60 are isolated.

    All would own 145 if nothing else counted, with 170, 170 and 145 local rows: 1.05 times the mean.
    """
    in_parts = [path(50 + 100 * p, 100) + [(v, 50 + 100 * p) for v in range(50)] for p in range(2)] + [path(250, 125)]
    (edge_list, edge_part), shares = cut_into(in_parts, 435), np.full(3, 1 / 3)
    book = PartitionBook(edge_list, VertexCut(3, edge_part, balanced_owners(edge_list, edge_part, shares)))
    assert book.num_rows.tolist() == [168, 168, 149]
    assert book.num_owned.tolist() == [143, 143, 149]


@pytest.mark.parametrize("two_way", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_evening_out_what_is_exchanged_adds_no_rows(two_way, seed):
    """Random cuts of a graph with hubs, all owned by the lowest part that has most of their roles."""
    rng = np.random.default_rng(seed)
    src, dst = (600 * rng.random((2, 3000)) ** 2).astype(np.int32)
    cut = rng.integers(0, 9, len(src)).astype(np.int16)
    edges = EdgeArrays(src, dst, 600, two_way, 2 * len(src) if two_way else len(src))
    held = np.zeros((2, 600, 9), dtype=bool)  # by role
    held[0, src, cut] = held[1, dst, cut] = True
    if two_way:
        held[:] = held.any(axis=0)
    before = held.sum(axis=0).argmax(axis=1).astype(np.int32)
    sources, targets = (np.packbits(each, axis=1, bitorder="little") for each in held)
    masks = [np.pad(each, ((0, 0), (0, 8 - each.shape[1]))).view(np.uint64) for each in (sources, targets)]
    shares, after = np.full(9, 1 / 9), before.copy()
    even_exchange(*masks, after, shares)
    books = [PartitionBook(edges, VertexCut(9, cut, owner)) for owner in (before, after)]
    assert books[1].exchange_rows <= books[0].exchange_rows
    assert books[1].max_rank_rows * 9 <= 1.1 * 2 * books[1].exchange_rows < books[0].max_rank_rows * 9
    assert (books[1].num_owned <= np.maximum(owned_limit(600, shares), books[0].num_owned)).all()
    assert held.any(axis=0)[np.arange(600), after][held.any(axis=(0, 2))].all()
