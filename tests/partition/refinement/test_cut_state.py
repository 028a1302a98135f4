"""A part has no more vertices of its own than it may own, where others take them without a copy more."""

import numpy as np

from distgnn.partition.core.edges import EdgeArrays, endpoint_degrees
from distgnn.partition.refinement.cut_state import copies_with_owners, even_inner, start_state

from ..graphs import num_copies

SHARES = np.array([0.5, 0.5])
NO_LIMIT = np.array([100.0, 100.0])


def stars():
    """Vertex 20 has ten leaves in part 0 and one in part 1; vertex 21 has eight leaves, all in part 1."""
    src = np.arange(19, dtype=np.int32)
    dst = np.where(src < 11, 20, 21).astype(np.int32)
    parts = np.where(src < 10, 0, 1).astype(np.int16)
    return EdgeArrays(src, dst, 22, True, 38), parts


def even(max_owned, max_arcs=NO_LIMIT):
    edges, parts = stars()
    return even_inner(edges, parts, endpoint_degrees(edges), SHARES, np.array(max_owned), max_arcs)


def with_owners(edges, parts, max_owned):
    return copies_with_owners(start_state(edges, parts, 2).table, max_owned)


def test_leaves_move_to_the_other_part_of_their_hub(monkeypatch):
    monkeypatch.setattr("distgnn.partition.refinement.cut_state.MOST_COPIES", 2.0)  # one of eleven is more than 3 %
    edges, parts = stars()
    limit = np.array([8, 14])
    copies = num_copies(edges, parts, 2)
    assert with_owners(edges, parts, limit) == copies + 2
    moved = even(limit, np.array([40.0, 40.0]))
    assert with_owners(edges, moved, limit) == num_copies(edges, moved, 2) == copies
    assert np.count_nonzero(moved != parts) == 2 and (moved[10:] == 1).all()


def test_nothing_moves_without_need_or_room(monkeypatch):
    _, parts = stars()
    np.testing.assert_array_equal(even([8, 14]), parts)  # the other part has its share of copies
    monkeypatch.setattr("distgnn.partition.refinement.cut_state.MOST_COPIES", 2.0)
    np.testing.assert_array_equal(even([10, 10]), parts)  # nobody has too many
    np.testing.assert_array_equal(even([8, 10]), parts)  # the other part has all that it may own
    np.testing.assert_array_equal(even([8, 14], np.array([40.0, 18.0])), parts)  # or all its arcs


def test_a_hub_is_not_followed_to_a_new_part(monkeypatch):
    """The leaf of vertex 20 joins the others of its hub. Those of vertex 21 would each take a copy of it along."""
    monkeypatch.setattr("distgnn.partition.refinement.cut_state.MOST_COPIES", 2.0)
    _, parts = stars()
    parts[10] = 0
    np.testing.assert_array_equal(even([100, 5]), parts)


def test_a_part_of_too_many_copies_gives_leaves_away():
    """Part 0 has 15 leaves of vertex 20, part 1 one of them, and another star of three: 16 and 6 copies."""
    src = np.arange(19, dtype=np.int32)
    edges = EdgeArrays(src, np.where(src < 16, 20, 21).astype(np.int32), 22, True, 38)
    parts = np.where(src < 15, 0, 1).astype(np.int16)
    moved = even_inner(edges, parts, endpoint_degrees(edges), SHARES, np.array([22, 22]), NO_LIMIT)
    assert np.count_nonzero(moved == 0) == 10 and (moved[15:] == 1).all()  # 11 copies each
    assert num_copies(edges, moved, 2) == num_copies(edges, parts, 2)
