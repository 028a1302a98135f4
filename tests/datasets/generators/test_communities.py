"""`communities:`: simple graphs whose neighbours help, with hubs."""

import numpy as np

from distgnn.datasets import load_graph


def test_communities_are_simple_and_without_isolated_vertices():
    counts = load_graph("communities:nodes=5000").counts()
    assert [counts[name] for name in ("duplicates", "self_loops", "isolated", "no_split")] == [0] * 4
    assert counts["train"] == 1000
    assert 5000 * 9 / 2 < counts["num_edges"] < 5000 * 13 / 2


def class_accuracy(feats, graph) -> float:
    """Test accuracy of the nearest mean of the training rows."""
    means = np.stack([feats[graph.train][graph.labels[graph.train] == c].mean(0) for c in range(graph.num_classes)])
    distance = (means**2).sum(1) - 2 * feats @ means.T
    return float((distance.argmin(1)[graph.test] == graph.labels[graph.test]).mean())


def test_neighbours_help():
    graph = load_graph("communities:nodes=20000")
    sources, targets, _ = graph.edge_list("stored", "add").arcs()
    mixed = graph.feats
    for _ in range(2):
        gathered = np.zeros_like(mixed)
        np.add.at(gathered, targets, mixed[sources])
        mixed = gathered / np.bincount(targets)[:, None]
    assert 0.5 < class_accuracy(graph.feats, graph) < 0.7
    assert class_accuracy(mixed, graph) > 0.85


def test_communities_have_power_law_degrees_and_stay_together():
    graph = load_graph("communities:nodes=20000,classes=20,communities=20,mixing=0.2")
    degrees = graph.edge_list().in_degrees()
    assert degrees.max() > 15 * np.median(degrees)
    same = graph.labels[graph.edges[:, 0]] == graph.labels[graph.edges[:, 1]]
    assert 0.75 < same.mean() < 0.9
