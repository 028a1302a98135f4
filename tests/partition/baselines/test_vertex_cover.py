"""The minimum vertex cover of what crosses between owners, by trying; and refined."""

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from distgnn.partition import PartitionBook, VertexCut, cut_edges
from distgnn.partition.baselines.vertex_cover import cover_arcs
from distgnn.partition.core.vertex_cut import part_shares

from ..graphs import edge_list


def fewest_rows(edges, owner, num_parts):
    """Slow and obvious: for each ordered pair of parts the smallest set of ends that touches all arcs, by trying."""
    sources, targets, _ = edges.arcs()
    total = 0
    for a in range(num_parts):
        for b in range(num_parts):
            arcs = [(u, -1 - v) for u, v in zip(sources, targets, strict=True) if a != b == owner[v] and owner[u] == a]
            ends = sorted({end for arc in arcs for end in arc})
            total += next(n for n in range(len(ends) + 1) for c in combinations(ends, n) if covers(set(c), arcs))
    return total


def covers(ends, arcs):
    return all(ends & set(arc) for arc in arcs)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12), st.booleans(), st.integers(0, 99))
def test_the_cover_is_the_smallest(pairs, directed, seed):
    edges = edge_list(pairs, 8, directed)
    owner = np.random.default_rng(seed).integers(0, 3, 8)
    cut = VertexCut(3, cover_arcs(edges, owner, part_shares(3)), owner)
    assert PartitionBook(edges, cut).exchange_rows == fewest_rows(edges, owner, 3)


def test_refined_arcs_are_balanced_too(power_law):
    assert PartitionBook(power_law, cut_edges(power_law, 8, "metis")).edge_balance > 1.1
    refined = PartitionBook(power_law, cut_edges(power_law, 8, "metis", refine=True))
    assert refined.edge_balance <= 1.03 and refined.owned_balance <= 1.05
