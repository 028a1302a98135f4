"""Metrics over ranks equal plain ones over all rows."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, random_graph

from distgnn.config.task import SPLITS
from distgnn.train.metrics import evaluate


def plain_rocauc(scores: np.ndarray, truth: np.ndarray) -> float:
    """By the definition: all pairs of a positive and a negative."""
    areas = []
    for task in range(truth.shape[1]):
        up, down = scores[truth[:, task] > 0, task], scores[truth[:, task] <= 0, task]
        if len(up) and len(down):
            areas.append(np.mean((up[:, None] > down) + 0.5 * (up[:, None] == down)))
    return float(np.mean(areas))


@pytest.mark.mpi(3)
@pytest.mark.parametrize("metric", ["accuracy", "f1", "rocauc"])
def test_multilabel(comm, metric):
    data = random_graph(2, num_nodes=200, multilabel=True)
    logits = np.random.default_rng(0).standard_normal((200, 4)).round(1)  # with ties
    graph = dist_graph(data, comm)
    mine = logits[graph.owned_ids]
    rounded = mine + 2.0**-23 * np.random.default_rng(comm.rank).integers(-2, 3, mine.shape) * (mine != 0)
    found = evaluate(graph, torch.from_numpy(rounded), metric)
    for split in SPLITS:
        ids = getattr(data, split)
        scores, truth = logits[ids], data.labels[ids]
        both = ((scores > 0) & (truth > 0)).sum()
        expected = {
            "accuracy": ((scores > 0) == (truth > 0)).mean(),
            "f1": 2 * both / ((scores > 0).sum() + (truth > 0).sum()),
            "rocauc": plain_rocauc(scores, truth),
        }[metric]
        assert found[f"{split}_metric"] == pytest.approx(expected, rel=1e-12)
    assert "test_accuracy" not in found


@pytest.mark.mpi(3)
def test_classes_and_unlabelled_vertices(comm):
    data = random_graph(2, num_nodes=200)
    logits = np.random.default_rng(0).standard_normal((200, 4))
    graph = dist_graph(data, comm)
    found = evaluate(graph, torch.from_numpy(logits[graph.owned_ids]), "accuracy")
    for split in SPLITS:
        ids = getattr(data, split)
        ids = ids[data.labels[ids] >= 0]
        expected = (logits[ids].argmax(1) == data.labels[ids]).mean()
        assert found[f"{split}_metric"] == found[f"{split}_accuracy"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.mpi(2)
def test_a_split_without_vertices_has_no_metric(comm):
    data = random_graph(2)
    data.valid = None
    graph = dist_graph(data, comm)
    found = evaluate(graph, torch.zeros(graph.num_owned, 4), "accuracy")
    assert found["valid_metric"] is None
    assert found["test_metric"] is not None
