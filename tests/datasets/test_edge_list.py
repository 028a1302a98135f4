"""The edges that are cut: directions, merged pairs, self-loops, weights; degrees count arcs."""

import numpy as np
import pytest

from distgnn.datasets import EdgeList, GraphData
from distgnn.errors import InputError


def random_graph(seed: int, directed: bool) -> GraphData:
    rng = np.random.default_rng(seed)
    edges = rng.integers(0, 12, (rng.integers(0, 60), 2))
    return GraphData.from_arrays(edges, 13, directed=directed)


def arc_pairs(edges: EdgeList) -> list[tuple[int, int]]:
    sources, targets, _ = edges.arcs()
    return sorted(zip(sources.tolist(), targets.tolist(), strict=True))


def test_stored_edges_are_the_rows_and_reversed_swaps_their_ends(small_graph):
    edges, other = small_graph.edge_list(), small_graph.edge_list("reversed")
    assert not edges.two_way and edges.edges_are_input_edges and edges.src.dtype == np.int32
    assert edges.src.tolist() == other.dst.tolist() == small_graph.edges[:, 0].tolist()
    assert edges.edge_ids.tolist() == list(range(6)) and edges.num_arcs == 6
    assert other.in_degrees().tolist() == edges.out_degrees().tolist()


def test_both_merges_and_names_the_smallest_row(small_graph):
    edges = small_graph.edge_list("both")
    assert edges.two_way and edges.edge_ids.tolist() == [0, 3, 4, 5] and edges.num_arcs == 2 * 3 + 1
    sources, targets, arc_ids = edges.arcs()
    assert arc_ids.tolist() == [0, 1, 2, 3, 4, 6, 7]
    assert (sources[4:].tolist(), targets[4:].tolist()) == ([1, 2, 4], [0, 1, 3])


@pytest.mark.parametrize("seed", range(3))
def test_both_is_the_simple_symmetric_closure(seed):
    graph = random_graph(seed, directed=True)
    expected = {(u, v) for u, v in graph.edges.tolist()} | {(v, u) for u, v in graph.edges.tolist()}
    assert arc_pairs(graph.edge_list("both")) == sorted(expected)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("self_loops", ["keep", "add", "remove"])
@pytest.mark.parametrize("direction", ["stored", "both", "reversed"])
def test_degrees_count_arcs_and_loops_are_as_asked(seed, directed, self_loops, direction):
    graph = random_graph(seed, directed)
    edges = graph.edge_list(direction, self_loops)
    sources, targets, arc_ids = edges.arcs()
    assert len(sources) == edges.num_arcs and len(np.unique(arc_ids)) == len(arc_ids)
    assert edges.in_degrees().tolist() == np.bincount(targets, minlength=13).tolist()
    assert edges.out_degrees().tolist() == np.bincount(sources, minlength=13).tolist()
    assert edges.in_degrees().dtype == np.int64
    loops = np.bincount(sources[sources == targets], minlength=13)
    if self_loops != "keep":
        assert loops.tolist() == [1 if self_loops == "add" else 0] * 13
    kept = edges.edge_ids >= 0
    ends = np.sort(np.stack([edges.src, edges.dst]).T[kept], axis=1)
    assert np.array_equal(ends, np.sort(graph.edges[edges.edge_ids[kept]], axis=1))


def test_every_row_is_accounted_for(small_graph):
    report = small_graph.edge_list("both", "add").report
    assert report == {"input_rows": 6, "merged_rows": 2, "removed_self_loops": 1, "added_self_loops": 6}


def test_undirected_duplicates_are_kept_and_counted_in_either_order(small_graph):
    graph = GraphData.from_arrays(small_graph.edges, 6, directed=False)
    edges, counts = graph.edge_list("both"), graph.counts()
    assert (edges.num_edges, edges.num_arcs, counts["duplicates"], counts["reciprocal"]) == (6, 11, 2, 0)


def test_weights_follow_their_rows(small_graph):
    small_graph.edge_weight = np.arange(6, dtype=np.float32)
    edges = small_graph.edge_list("stored", "add")
    assert edges.edge_weight.tolist() == [0, 1, 2, 4, 5] + [1] * 6
    with pytest.raises(InputError, match="merge 2 parallel or reciprocal rows that carry edge weights"):
        small_graph.edge_list("both")


def test_columns_are_not_copied_where_nothing_changes():
    columns = np.array([[0, 1, 2], [1, 2, 0]], dtype=np.int32)
    graph = GraphData.from_arrays(columns.T, 3)
    assert np.shares_memory(graph.edge_list().src, columns)


@pytest.mark.parametrize("choice", [("sideways", "keep"), ("stored", "maybe")])
def test_unknown_choices_are_refused(small_graph, choice):
    with pytest.raises(InputError, match="choose one of"):
        small_graph.edge_list(*choice)


def test_a_small_edge_list_shows_its_edges_and_a_large_one_counts_only(small_graph):
    small_graph.edge_weight = np.arange(6, dtype=np.float32)
    assert repr(small_graph.edge_list(self_loops="remove")) == (
        "EdgeList(num_nodes=6, num_edges=5, one-way, self_loops='remove', weighted, "
        "edges=[(0, 1), (0, 1), (1, 0), (1, 2), (3, 4)], edge_weight=[0.0, 1.0, 2.0, 4.0, 5.0])"
    )
    edges = GraphData.from_arrays(np.zeros((1000, 2), dtype=np.int64), directed=False).edge_list()
    assert repr(edges) == "EdgeList(num_nodes=1, num_edges=1000, two-way, self_loops='keep')"
