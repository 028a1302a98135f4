"""All edges that a vertex or a cluster has in a part move together, where that saves copies."""

import numpy as np

from distgnn.partition.cmr.levels import v_cycle
from distgnn.partition.core.edges import EdgeArrays, endpoint_degrees
from distgnn.partition.refinement.vertex_moves import move_vertices

from ..graphs import num_copies


def clique_in_the_wrong_part():
    """Three cliques of 6; the first is in part 0 with the third, and has an edge to the second, which is in part 1."""
    size = 6
    pairs = [(c * size + i, c * size + j) for c in range(3) for i in range(size) for j in range(i + 1, size)]
    src, dst = np.array(sorted([*pairs, (0, size)]), dtype=np.int32).T.copy()
    edges = EdgeArrays(src, dst, 3 * size, True, 2 * len(src))
    cliques = np.repeat(np.arange(3, dtype=np.int32), size)
    return edges, np.array([0, 1, 0], dtype=np.int16)[cliques[src]], cliques


def test_a_cluster_moves_as_a_whole():
    """The first clique joins the second, which saves the copy of the vertex between them; nobody is left behind."""
    edges, parts, cliques = clique_in_the_wrong_part()
    degrees, shares = endpoint_degrees(edges), np.array([1 / 3, 2 / 3])
    moved = move_vertices(edges, parts, degrees, shares, cliques[edges.src])
    np.testing.assert_array_equal(moved, np.array([1, 1, 0], dtype=np.int16)[cliques[edges.src]])
    assert num_copies(edges, parts, 2) == 19 and num_copies(edges, moved, 2) == 18
    levels = [np.arange(18, dtype=np.int32), cliques]
    np.testing.assert_array_equal(v_cycle(edges, parts, levels, degrees, shares), moved)


def test_what_a_cluster_has_in_two_parts_are_two_groups():
    """Two far cliques under one number, one in each part: nothing is to be gained, and nothing moves."""
    edges, parts, cliques = clique_in_the_wrong_part()
    far = cliques[edges.src] > 0
    edges, parts, cliques = edges._replace(src=edges.src[far], dst=edges.dst[far]), parts[far], cliques[edges.src[far]]
    moved = move_vertices(edges, parts, endpoint_degrees(edges), np.array([0.5, 0.5]), np.zeros_like(cliques))
    np.testing.assert_array_equal(moved, parts)


def test_imbalance_weighs_as_much_as_there_are_copies_to_save():
    """A path: ten of its edges are in part 0 amid part 1, which has 520. Part 1 takes them: they cost two copies.

    Where that would be one of many copies beyond the first, nothing would be gained by parts less equal than they are.
    """
    src = np.arange(1000, dtype=np.int32)
    edges = EdgeArrays(src, src + 1, 1001, True, 2000)
    stray = (src >= 600) & (src < 610)
    parts = np.where((src < 470) | stray, 0, 1).astype(np.int16)
    cluster = np.where(stray, 2, np.where(src < 600, parts, 1)).astype(np.int32)
    degrees, shares = endpoint_degrees(edges), np.array([0.5, 0.5])
    moved = move_vertices(edges, parts, degrees, shares, cluster)
    np.testing.assert_array_equal(moved, np.where(src < 470, 0, 1))
    np.testing.assert_array_equal(move_vertices(edges, parts, degrees, shares, cluster, extra_price=1000.0), parts)
