"""Ends of edges: degrees, and the list of a thread's own ends against the plain loop."""

import numpy as np
import pytest

from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.core.edges import EdgeArrays, endpoint_degrees, own_ends


@kernel
def _own_ends(low, high, src, dst, own, list_edges):
    return own_ends(low, high, 0, src.shape[0], src, dst, own, list_edges)


@pytest.mark.parametrize("list_edges", [True, False])
def test_own_ends_are_those_of_the_plain_loop(list_edges):
    generator = np.random.default_rng(0)
    src, dst = generator.integers(0, 12, (2, 300)).astype(np.int32)
    assert (src == dst).any()
    for low, high in [(0, 12), (3, 7), (5, 5), (0, 1), (11, 12)]:
        expected = []
        for e, (u, v) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
            ends = [(u, v)] if u == v and list_edges else [(u, v), (v, u)]
            expected += [(end, e if list_edges else other) for end, other in ends if low <= end < high]
        own = np.empty((2 * len(src), 2), dtype=np.int64)
        found = _own_ends(low, high, src, dst, own, list_edges)
        assert [tuple(pair) for pair in own[:found].tolist()] == expected


def test_degrees_are_the_same_for_any_number_of_threads(set_num_threads, monkeypatch):
    monkeypatch.setattr("distgnn.partition.core.edges.FEW_EDGES", 0)
    src, dst = np.random.default_rng(0).integers(0, 50, (2, 700)).astype(np.int32)
    ends = np.bincount(src, minlength=60) + np.bincount(dst, minlength=60)
    for count in (1, 5):
        set_num_threads(count)
        np.testing.assert_array_equal(endpoint_degrees(EdgeArrays(src, dst, 60, True, 1400)), ends)
