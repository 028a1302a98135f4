"""Every arc in one part, rows in their order, symmetry: for any cut of any graph."""

import numpy as np
import pytest
from hypothesis import given, settings

from distgnn.partition import PartitionBook, VertexCut, build_local

from ..graphs import NAMES, awkward, cut_graphs, edge_list, random_cut
from ..laws import built, check_arcs, check_rows, every_law


@settings(max_examples=120, deadline=None)
@given(cut_graphs())
def test_laws_hold_for_any_cut(case):
    book, locals_ = built(*case)
    check_rows(*case, book, locals_)
    check_arcs(*case, locals_)


MORE_THAN_A_WORD = ("random", "hub joined to everything", "no vertices")  # parts are bits of 64-bit words, too


@pytest.mark.parametrize(
    ("name", "num_parts"), [(name, num) for name in NAMES for num in (1, 3)] + [(name, 70) for name in MORE_THAN_A_WORD]
)
def test_laws_hold_for_awkward_graphs(name, num_parts):
    edges = edge_list(*awkward(name), directed=num_parts == 3)
    generator = np.random.default_rng(num_parts)
    every_law(edges, random_cut(edges, num_parts, generator, split_reverse=num_parts != 3))


@pytest.mark.parametrize(
    ("weights", "symmetric"), [((1, 1, 2, 2), True), ((1, 2, 1, 2), False), ((1, 2, 2, 1), True)], ids=str
)
def test_a_symmetric_part_has_symmetric_weights(weights, symmetric):
    """Arcs there and back, twice: their weights must be the same, in any order."""
    edges = edge_list([(0, 1), (1, 0)] * 2, 2, directed=True, weights=np.array(weights, dtype=np.float32))
    cut = VertexCut(1, np.zeros(4, dtype=np.int64), np.zeros(2, dtype=np.int64))
    every_law(edges, cut)
    assert build_local(PartitionBook(edges, cut), 0).symmetric is symmetric


def test_a_part_whose_arcs_back_are_elsewhere_is_not_symmetric():
    """A ring: each vertex is source and target."""
    edges, zeros = edge_list([(0, 1), (1, 2), (2, 0)], 3), np.zeros(3, dtype=np.int64)
    cut = VertexCut(2, zeros, zeros, zeros + 1)
    every_law(edges, cut)
    assert not any(build_local(PartitionBook(edges, cut), part).symmetric for part in range(2))
