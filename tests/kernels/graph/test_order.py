"""Vertex orders and blocks change places, never sums."""

import numpy as np
import pytest

from distgnn.kernels import block_csr, block_rows, csr_from_edges, permute_csr, spmm, spmm_blocked, vertex_order
from distgnn.kernels.check import reference

from ..graphs import close, rows_of


def _communities(blocks=8, size=50, seed=0):
    """Undirected cliquish blocks under shuffled names, and two isolated vertices."""
    generator = np.random.default_rng(seed)
    names, inside = generator.permutation(blocks * size + 2), generator.integers(0, size, (2, blocks * size * 8))
    block = generator.integers(0, blocks, blocks * size * 8) * size
    src, dst = names[block + inside[0]], names[block + inside[1]]
    src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    return csr_from_edges(src.astype(np.int32), dst.astype(np.int32), blocks * size + 2)[:2]


@pytest.mark.parametrize("method", ["degree", "rcm", "cluster"])
def test_orders_are_permutations_that_keep_sums(method):
    indptr, indices = _communities()
    order = vertex_order(indptr, indices, method)
    np.testing.assert_array_equal(np.sort(order), np.arange(len(indptr) - 1))
    new_indptr, new_indices, positions = permute_csr(indptr, indices, order)
    feats, weight = rows_of(len(order), 16), rows_of(len(indices), 1)[:, 0]
    got = spmm(new_indptr, new_indices, feats[order], edge_weight=weight, edge_ids=positions)
    close(got, spmm(indptr, indices, feats, edge_weight=weight)[order])
    for row in range(len(order)):
        assert (np.diff(new_indices[new_indptr[row] : new_indptr[row + 1]]) >= 0).all()


@pytest.mark.parametrize("method, reach", [("rcm", 60), ("cluster", 40)])
def test_communities_come_together(method, reach):
    """Mean distance of neighbours: about 134 when shuffled, under 50 / 3 when perfect."""
    indptr, indices = _communities()
    new_indptr, new_indices, _ = permute_csr(indptr, indices, vertex_order(indptr, indices, method))
    rows = np.repeat(np.arange(len(indptr) - 1), np.diff(new_indptr))
    assert np.abs(rows - new_indices).mean() < reach


def test_degree_order_is_by_degree():
    indptr, indices = _communities()
    assert (np.diff(np.diff(indptr)[vertex_order(indptr, indices, "degree")]) <= 0).all()


def test_community_size_is_limited():
    from distgnn.kernels.graph.order import _communities as find

    indptr, indices = _communities(2, 100)
    labels = find(indptr, indices, np.arange(len(indptr) - 1), 30, 4)
    assert np.bincount(labels).max() <= 30


@pytest.mark.parametrize("size", [1, 37, 1000])
def test_blocks_add_up(size):
    generator = np.random.default_rng(0)
    src, dst = generator.integers(0, 90, 700), generator.integers(0, 40, 700)
    indptr, indices, _ = csr_from_edges(src, dst, 41)
    graph, feats, weight = block_csr(indptr, indices, 90, size), rows_of(90, 16), rows_of(700, 1)[:, 0]
    expected = reference.spmm(indptr, indices, feats, edge_weight=weight)
    close(spmm_blocked(graph, feats, weight), expected)
    close(spmm_blocked(graph, feats, weight, piece=slice(5, 20)), expected[5:20])


def test_blocks_only_where_rows_have_many_arcs_in_each():
    size = (1 << 24) // 512
    assert block_rows(60_000, 60_000, 15_000_000, 512) == size  # 2 blocks, 250 arcs a row
    assert block_rows(60_000, size, 15_000_000, 512) == 0  # one block
    assert block_rows(500_000, 500_000, 20_000_000, 512) == 0  # 16 blocks, 40 arcs a row


def test_empty_graphs():
    indptr, indices = np.zeros(4, np.int64), np.zeros(0, np.int32)
    for method in ("degree", "rcm", "cluster"):
        assert sorted(vertex_order(indptr, indices, method)) == [0, 1, 2]
    assert not spmm_blocked(block_csr(indptr, indices, 3, 2), rows_of(3, 16)).any()


def test_bad_method():
    with pytest.raises(ValueError, match="method"):
        vertex_order(np.zeros(2, np.int64), np.zeros(0, np.int32), "rabbit")
