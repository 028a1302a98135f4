"""Vertices with names or sparse numbers become 0 … N-1, and are found again."""

import numpy as np
import pytest

import distgnn as dg
from distgnn.errors import InputError

NAMED = [["eve", "bob"], ["bob", "ada"], ["ada", "eve"]]


@pytest.mark.parametrize(
    ("given", "known"),
    [
        (NAMED, ["ada", "bob", "eve"]),
        (np.array(NAMED).T, ["ada", "bob", "eve"]),
        (np.array(NAMED, dtype=object), ["ada", "bob", "eve"]),
        ([[70, 9], [9, -4], [-4, 70]], [-4, 9, 70]),
    ],
)
def test_ids_of_edges_are_sorted_and_come_back(given, known):
    edges, ids = dg.renumber(given)
    assert ids.tolist() == known
    assert ids[edges].tolist() == (NAMED if "ada" in known else given)
    assert dg.GraphData.from_arrays(edges, len(ids)).num_nodes == 3


def test_given_ids_keep_their_order_and_vertices_without_edges():
    edges, ids = dg.renumber(NAMED, ids=["zoe", "eve", "ada", "bob"])
    assert edges.tolist() == [[1, 3], [3, 2], [2, 1]] and edges.dtype == np.int64
    assert ids.tolist() == ["zoe", "eve", "ada", "bob"]


@pytest.mark.parametrize(
    ("edges", "ids", "message"),
    [
        (NAMED, ["ada", "bob", "bob"], "'bob' is there twice"),
        (NAMED, ["ada", "bob"], "row 0 holds 'eve', which is not in ids"),
        (NAMED, ["ada", "bob", "zoe"], "row 0 holds 'eve', which is not in ids"),
        (NAMED, [0, 1, 2], "give both as texts"),
        (np.array([[1, 2]]), np.array([1, 2], np.uint64), "give both as texts, or as int64"),
        (NAMED, [["ada", "bob", "eve"]], "one id per vertex"),
        ([[0.5, np.nan]], None, "row 0 has no vertex .NaN.: take such rows out"),
        (np.array([["ada", None]], object), None, "row 0 has no vertex .None or NaN.: take such rows out"),
    ],
)
def test_ids_that_cannot_be_told_apart_are_refused(edges, ids, message):
    with pytest.raises(InputError, match=message):
        dg.renumber(edges, ids)
