"""Blocks of sources change the order of a sum, never what is summed."""

import numpy as np
import pytest

from distgnn.kernels import block_csr, block_rows, csr_from_edges, spmm_blocked
from distgnn.kernels.check import reference

from ..graphs import close, rows_of


@pytest.mark.parametrize("size", [1, 37, 1000])
def test_blocks_add_up(size):
    generator = np.random.default_rng(0)
    src, dst = (generator.integers(0, count, 700, np.int32) for count in (90, 40))
    indptr, indices, _ = csr_from_edges(src, dst, 41)
    graph, feats, weight = block_csr(indptr, indices, 90, size), rows_of(90, 37), rows_of(700, 1)[:, 0]
    expected = reference.spmm(indptr, indices, feats, edge_weight=weight)
    close(spmm_blocked(graph, feats, weight), expected)
    close(spmm_blocked(graph, feats, weight, piece=slice(5, 20)), expected[5:20])


def test_blocks_only_where_rows_have_many_arcs_in_each():
    size = (1 << 24) // 512
    assert block_rows(60_000, 60_000, 15_000_000, 512) == size  # 2 blocks, 250 arcs a row
    assert block_rows(60_000, size, 15_000_000, 512) == 0  # one block
    assert block_rows(500_000, 500_000, 20_000_000, 512) == 0  # 16 blocks, 40 arcs a row
