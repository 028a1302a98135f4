"""Random splits of vertices and of edges: by the seed, each class in its share, negatives that are no edges."""

import numpy as np
import pytest

from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError
from distgnn.partition import partition_graph
from distgnn.partition.repartition import load_whole

EDGES = [[0, 1], [1, 2]]


def test_labelled_vertices_are_dealt_out_by_the_seed():
    labels = np.where(np.arange(100) < 90, np.arange(100) % 4, -1)
    graph = GraphData.from_arrays(EDGES * 50 + [[98, 99]], 100, labels=labels, findings=Findings())
    first, again, other = (graph.split_nodes(0.5, 0.2, 0.3, seed=seed) for seed in (1, 1, 2))
    parts = [first.train, first.valid, first.test]
    assert [len(part) for part in parts] == [45, 18, 27]
    assert sorted(np.concatenate(parts).tolist()) == list(range(90))
    assert np.array_equal(first.train, again.train) and not np.array_equal(first.train, other.train)
    values = GraphData.from_arrays(EDGES, node_values=[1.0, np.nan, 2.0]).split_nodes(0.5, 0, 0.5)
    assert sorted([*values.train, *values.test]) == [0, 2]


@pytest.mark.parametrize("shares", [(0.6, 0.2, 0.2), (0.05, 0.15, 0.5), (1, 0, 0)])
def test_every_class_has_its_share(shares):
    sizes = [500, 60, 7, 1]  # a rare class too
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(4), sizes))
    graph = GraphData.from_arrays([[0, 1]], len(labels), labels=labels, findings=Findings())
    split = graph.split_nodes(*shares, seed=3)
    for share, part in zip(shares, (split.train, split.valid, split.test), strict=True):
        counts = np.bincount(labels[part], minlength=4)
        assert np.abs(counts - share * np.array(sizes)).max() < 2  # the nearest whole numbers above or below, of three


@pytest.mark.parametrize("shares", [(0, 0.5, 0.5), (0.9, 0.2, 0.1), (-0.1, 0.5, 0.5), (0.1, 0.1, 0.1)])
def test_shares_that_are_none_are_refused(shares):
    with pytest.raises(InputError, match=r"expected three shares|too few for this split"):
        GraphData.from_arrays(EDGES, labels=[0, 1, 0]).split_nodes(*shares)


@pytest.mark.parametrize("library", ["pyg", "dgl", "arrays", "folder"])
@pytest.mark.parametrize("test", [[2, 3], [3]])
def test_validation_and_test_may_share_vertices(library, test, tmp_path):
    """As in scripts with val_mask = test_mask: taken, with one line, and kept in the parts."""
    splits = {"train": [0, 1], "valid": [2, 3], "test": test}
    made = GraphData.from_arrays(EDGES, num_nodes=5, x=np.eye(5), y=[0, 1, 0, 1, 0], findings=Findings(), **splits)
    makers = {"pyg": made.to_pyg, "dgl": made.to_dgl, "arrays": lambda: made}
    source = makers[library]() if library in makers else str(made.save(tmp_path / "g"))
    graph = load_graph(source, findings=(findings := Findings()))
    assert graph.valid.tolist() == [2, 3] and graph.test.tolist() == test and graph.counts()["no_split"] == 1
    if library != "arrays":
        text = f"validation and test have {len(test)} vertices in common"
        assert sum(text in line for line in findings.lines()) == 1
    partition_graph(graph, 2, tmp_path / "parts", "random", say=lambda line: None)
    again = load_whole(tmp_path / "parts").graph
    assert (again.valid.tolist(), again.test.tolist()) == ([2, 3], test)


def make_graph(directed: bool = False) -> GraphData:
    """Sixty vertices with parallel edges, reciprocal ones and a self-loop."""
    random = np.random.default_rng(3)
    edges = random.integers(0, 60, (300, 2))
    edges[:6] = edges[6:12]
    edges[12:18] = edges[6:12, ::-1]
    edges[18] = (5, 5)
    return GraphData.from_arrays(edges, 60, directed, edge_weight=np.arange(300, dtype=np.float32))


def pairs_of(edges, either_way: bool) -> set:
    return {tuple(sorted(pair)) if either_way else tuple(pair) for pair in np.asarray(edges).tolist()}


@pytest.mark.parametrize(("directed", "both"), [(False, False), (True, False), (True, True)])
def test_held_out_edges_pass_no_messages_and_negatives_are_no_edges(directed, both):
    graph = make_graph(directed)
    split = graph.split_links(0.1, 0.2, seed=4, either_way=both)
    either_way = both or not directed
    every = pairs_of(graph.edges, either_way)
    left, valid, test = (pairs_of(edges, either_way) for edges in (split.edges, split.valid_edges, split.test_edges))
    assert not (left & valid or left & test or valid & test) and left | valid | test == every
    loops = {pair for pair in every if pair[0] == pair[1]}
    joined = len(every - loops)
    assert loops <= left
    assert (len(split.valid_edges), len(split.test_edges)) == (int(0.1 * joined), int(0.2 * joined))
    for name in ("valid", "test"):
        negatives = getattr(split, f"{name}_negatives")
        assert negatives.shape == getattr(split, f"{name}_edges").shape and (negatives[:, 0] != negatives[:, 1]).all()
        assert not pairs_of(negatives, either_way) & every
    assert np.array_equal(split.edges, graph.edges[split.edge_weight.astype(int)])
    split.check()
    again = graph.split_links(0.1, 0.2, seed=4, either_way=both)
    assert np.array_equal(again.test_edges, split.test_edges)
    assert not np.array_equal(graph.split_links(0.1, 0.2, seed=5).test_edges, split.test_edges)


@pytest.mark.parametrize(
    ("shares", "says"),
    [((0.5, 0.5), "less than 1"), ((-0.1, 0.2), "shares from 0"), ((0, 0), "more than 0"), ((0.1, 0.001), "few")],
)
def test_impossible_shares(shares, says):
    with pytest.raises(InputError, match=says):
        make_graph().split_links(*shares)


def test_a_complete_graph_has_no_negatives_and_a_split_graph_is_not_split_again():
    everyone = np.stack(np.triu_indices(12, 1), axis=1)
    with pytest.raises(InputError, match="no negatives to draw"):
        GraphData.from_arrays(everyone, 12, False).split_links(0.1, 0.1)
    with pytest.raises(InputError, match="has a split of its edges already"):
        make_graph().split_links(0.1, 0.1).split_links(0.1, 0.1)
