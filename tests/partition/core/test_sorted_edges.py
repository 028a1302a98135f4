"""Edges sorted by their lower end, in pieces and by threads, as numpy sorts them."""

import numpy as np
import pytest

from distgnn.partition.core import sorted_edges as sorting
from distgnn.partition.core.edges import endpoint_degrees
from distgnn.partition.core.sorted_edges import number_by_degree

from ..graphs import NAMES, awkward, edge_list

IN_MEMORY, NO_STEP = sorting.in_memory, sorting.no_step


@pytest.mark.parametrize("name", [*NAMES, "hubs"])
def test_rows_are_sorted_by_their_lower_end(name, hubs, small_pieces):
    edges = hubs.edge_list() if name == "hubs" else edge_list(*awkward(name))
    degrees = endpoint_degrees(edges)
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
