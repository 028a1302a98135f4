"""cmr-stream: rows sorted in pieces, clusters as ranges of rows, passes that go on in another process, and threads."""

import numpy as np
import pytest

from distgnn.datasets import load_graph
from distgnn.kernels.runtime import threads
from distgnn.partition import cut_edges
from distgnn.partition.core import sorted_edges as sorting
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.core.owners import balanced_owners
from distgnn.partition.core.shares import part_shares
from distgnn.partition.core.sorted_edges import number_by_degree
from distgnn.partition.stream.method import SCHEDULE, Assignment, cluster_groups

from ..graphs import NAMES, awkward, edge_list

IN_MEMORY, NO_STEP = sorting.in_memory, sorting.no_step


@pytest.fixture(scope="module")
def hubs():
    return load_graph("rmat:scale=11,edge_factor=8,feats=0,classes=0,seed=1")


@pytest.fixture(params=[1, 8])
def small_pieces(request, monkeypatch):
    """So many threads, and pieces, blocks and buckets of some rows."""
    for module in (
        "kernels.runtime.threads",
        "partition.core.sorted_edges",
        "partition.stream.method",
        "partition.core.edges",
    ):
        monkeypatch.setattr(f"distgnn.{module}.FEW_EDGES", 0)
    for name, value in (("PIECE_EDGES", 700), ("BLOCK_EDGES", 64), ("BUCKET_EDGES", 100), ("BUCKETS_AT_ONCE", 5)):
        monkeypatch.setattr(sorting, name, value)
    monkeypatch.setattr(threads, "SERIAL_WORK", 0)
    monkeypatch.setattr("distgnn.partition.moves.edge_moves.FEW_EDGES", 1)
    monkeypatch.setattr("distgnn.partition.moves.groups.ALONE", 0)
    monkeypatch.setattr("distgnn.partition.stream.cluster.SMALLEST_BLOCK", 64)
    monkeypatch.setattr(threads._pool, "num_threads", request.param)
    return request.param


@pytest.mark.parametrize("name", [*NAMES, "hubs"])
def test_rows_are_sorted_by_their_lower_end(name, hubs, small_pieces):
    edges = hubs.edge_list() if name == "hubs" else edge_list(*awkward(name))
    degrees = endpoint_degrees(edges)
    ends = np.bincount(np.concatenate([edges.src, edges.dst]).astype(np.int64), minlength=edges.num_nodes)
    np.testing.assert_array_equal(degrees, ends)
    number = number_by_degree(degrees)
    keys = degrees.astype(np.int64) * 2**32 + number
    swap = keys[edges.dst] < keys[edges.src]
    low, high = np.where(swap, edges.dst, edges.src), np.where(swap, edges.src, edges.dst)
    order = np.argsort(number[low], kind="stable")
    expected = number[low][order], number[high][order], 2 * order + swap[order]
    rows = sorting.sort_edges(edges, degrees, number, IN_MEMORY, NO_STEP)
    for column, values in zip(rows, expected, strict=True):
        np.testing.assert_array_equal(column, values)
    other = np.random.default_rng(0).permutation(edges.num_nodes).astype(np.int32)
    renumbered = sorting.renumber_edges(rows, other, IN_MEMORY, NO_STEP)
    again = np.argsort(other[rows.low], kind="stable")
    np.testing.assert_array_equal(renumbered.tag, rows.tag[again])


def sorted_work(edges, num_parts, begins):
    """An Assignment of the rows sorted by degree."""
    degrees = endpoint_degrees(edges)
    rows = sorting.sort_edges(edges, degrees, number_by_degree(degrees), IN_MEMORY, NO_STEP)
    parts = np.full(edges.num_edges, -1, dtype=np.int16)
    args = -np.sort(-degrees), edges.two_way, edges.num_arcs, part_shares(num_parts)
    work = Assignment(rows, parts, *args)
    work.place(begins, IN_MEMORY, NO_STEP)
    return work, lambda: Assignment(rows, parts, *args)


def test_clusters_hold_the_ends_of_their_rows(hubs, small_pieces):
    edges = hubs.edge_list()
    begins = np.array([0, 1, 2, 5, 5, 300, 700, 701, 1500, edges.num_nodes])
    rows = sorted_work(edges, 2, begins)[0].edges
    indptr, members, sizes, held = cluster_groups(rows, begins, IN_MEMORY)
    for c in range(len(begins) - 1):
        mine = (rows.src >= begins[c]) & (rows.src < begins[c + 1])
        ends = np.concatenate([rows.src[mine], rows.dst[mine & (rows.src != rows.dst)]])
        order = np.argsort(members[indptr[c] : indptr[c + 1]])
        for found, expected in zip((members, held), np.unique(ends, return_counts=True), strict=True):
            assert found[indptr[c] : indptr[c + 1]][order].tolist() == expected.tolist()
        assert sizes[c] == mine.sum()


def test_a_pass_goes_on_from_what_the_last_one_left(hubs):
    """Counts are kept from sweep to sweep or made anew after a stop: full bytes, and all parts, are the same."""
    edges = hubs.edge_list()
    whole, _ = sorted_work(edges, 4, np.arange(0, edges.num_nodes + 1, 64))
    piecewise, fresh = sorted_work(edges, 4, np.arange(0, edges.num_nodes + 1, 64))
    full = ()
    for number in range(len(SCHEDULE)):
        whole.refine(number, NO_STEP)
        piecewise = fresh()
        piecewise.refine(number, NO_STEP, full)
        full = piecewise.saturated_counts()
        assert len(full) and np.array_equal(full, whole.saturated_counts())
        np.testing.assert_array_equal(piecewise.parts, whole.parts)
        np.testing.assert_array_equal(piecewise.state.num_copies, whole.state.num_copies)


@pytest.mark.parametrize("direction", ["both", "stored"])
def test_the_same_cut_for_any_number_of_threads(hubs, direction, monkeypatch, small_pieces):
    monkeypatch.setattr("distgnn.partition.moves.merge.IN_TURN", 0)
    monkeypatch.setattr("distgnn.partition.moves.merge.LARGE", 4)
    edges, shares = hubs.edge_list(direction), part_shares(70, None)
    cut = cut_edges(edges, 70, "cmr-stream")
    np.testing.assert_array_equal(cut.owner, balanced_owners(edges, cut.edge_part, shares))
    threads._pool.num_threads = 3
    again = cut_edges(edges, 70, "cmr-stream")
    for mine, other in ((cut.edge_part, again.edge_part), (cut.owner, again.owner), (cut.order, again.order)):
        np.testing.assert_array_equal(mine, other)
