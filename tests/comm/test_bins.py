"""Bins: every row in one, the same on both ends, all copies of a vertex together, about equally many rows."""

import numpy as np
import pytest
from cut_graphs import dist_graph, random_cut, random_graph

from distgnn.comm import make_bins
from distgnn.comm.bins import Bin


def rows_in(pieces) -> np.ndarray:
    rows = [np.arange(piece.start, piece.stop) for of_rank in pieces for piece in of_rank]
    return np.concatenate([np.empty(0, dtype=int), *rows])


def ids_in(ids, sources, targets) -> list[int]:
    return [*ids[0][rows_in(sources)].tolist(), *ids[1][rows_in(targets)].tolist()]


@pytest.mark.mpi(1, 3)
@pytest.mark.parametrize("num_bins", [1, 2, 5, 50])
@pytest.mark.parametrize("split_arcs", [False, True])
def test_bins(comm, num_bins, split_arcs):
    data = random_graph(30)
    graph = dist_graph(data, comm, random_cut(data.edge_list(), comm.size, split_arcs=split_arcs))
    plan, local = graph.local.plan, graph.local
    bins = make_bins(plan, num_bins, comm)
    assert len(bins) == num_bins
    for name, count in {
        "sources_owner": plan.broadcast_indptr[-1],
        "sources_halo": local.num_source_halos,
        "targets_owner": plan.reduce_indptr[-1],
        "targets_halo": local.num_target_halos,
    }.items():
        rows = np.concatenate([rows_in(getattr(one, name)) for one in bins])
        assert sorted(rows) == list(range(count)), name
    owned = local.global_ids[plan.broadcast_rows], local.global_ids[plan.reduce_rows]
    halos = local.global_ids[local.source_halo_rows], local.global_ids[local.target_halo_rows]
    mine = [ids_in(owned, one.sources_owner, one.targets_owner) for one in bins]
    theirs = [ids_in(halos, one.sources_halo, one.targets_halo) for one in bins]
    bin_of: dict[int, int] = {}
    for everywhere in (comm.allgather(mine), comm.allgather(theirs)):
        for ranks in everywhere:
            for number, ids in enumerate(ranks):
                for vertex in ids:
                    assert bin_of.setdefault(vertex, number) == number


@pytest.mark.mpi(2)
def test_bins_carry_about_equally_many_rows(comm):
    data = random_graph(31, num_nodes=2000, num_edges=12000)
    plan = dist_graph(data, comm).local.plan
    counts = [len(rows_in(one.sources_owner)) + len(rows_in(one.targets_owner)) for one in make_bins(plan, 5, comm)]
    assert max(counts) < 1.05 * np.mean(counts)


def test_small_gaps_between_pieces_are_computed_too(monkeypatch):
    """One call for pieces that lie close, in any order and of any rank; empty ones are nothing."""
    monkeypatch.setattr("distgnn.comm.bins.FEW_ROWS", 10)
    halos = [[slice(0, 4), slice(40, 50)], [slice(30, 30)], [slice(61, 70), slice(14, 20)]]
    assert Bin([], [], [], halos).targets_computed == [slice(0, 20), slice(40, 50), slice(61, 70)]
    assert Bin([], [], [], [[], []]).targets_computed == []
