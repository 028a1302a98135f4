"""The book of copies: measures are those of sets, owners need no arc, an edge cut has source halos only."""

import numpy as np
from hypothesis import given, settings

from distgnn.partition import PartitionBook, VertexCut, build_local

from ..graphs import awkward, cut_graphs, edge_list
from ..laws import built, check_measures


@settings(max_examples=60, deadline=None)
@given(cut_graphs())
def test_measures_are_those_of_sets_for_any_cut(case):
    check_measures(*case, *built(*case))


def test_an_owner_without_arcs_just_has_the_row():
    """Both ends of the one edge are owned where the edge is not."""
    edges = edge_list([(0, 1)], 2)
    book = PartitionBook(edges, VertexCut(2, np.array([1]), np.array([0, 0])))
    owner, worker = build_local(book, 0), build_local(book, 1)
    assert (owner.num_owned, owner.num_arcs, worker.num_owned, worker.num_arcs) == (2, 0, 0, 2)
    assert worker.global_ids.tolist() == [0, 1] and worker.halo_counts[0].tolist() == [0, 2, 0]
    assert book.replication_factor == 2 and book.exchange_rows == 4


def test_an_edge_cut_has_source_halos_only():
    """All arcs at the owner of their target."""
    edges = edge_list(*awkward("random"))
    owner = np.arange(edges.num_nodes) % 3
    cut = VertexCut(3, owner[edges.dst], owner, reverse_part=owner[edges.src])
    book = PartitionBook(edges, cut)
    assert book.halo_counts[:, :, 1:].sum() == 0
    assert sum(build_local(book, part).num_target_halos for part in range(3)) == 0
