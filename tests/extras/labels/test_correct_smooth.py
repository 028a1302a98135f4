"""Correct and Smooth on P ranks equals a slow dense reference, and PyG's own, on the whole graph."""

import numpy as np
import pytest
import torch
from cut_graphs import dense_adjacency, dist_graph, gather_rows, random_cut, random_graph

from distgnn.extras.labels.correct_smooth import CorrectSmoothConfig, correct_and_smooth
from distgnn.partition import VertexCut

CONFIGS = {
    "autoscale": CorrectSmoothConfig(10, 0.9, 7, 0.8),
    "fixed scale": CorrectSmoothConfig(10, 0.9, 7, 0.8, scale=1.5),
    "all of the neighbours": CorrectSmoothConfig(5, 1.0, 5, 1.0),
}


def logits_of(data) -> np.ndarray:
    return 3 * np.random.default_rng(2).standard_normal((data.num_nodes, data.num_classes))


def reference(data, logits: np.ndarray, config: CorrectSmoothConfig) -> np.ndarray:
    """The formulas of the paper with a dense matrix."""
    matrix = dense_adjacency(data)
    roots = [np.maximum(matrix.sum(axis), 1) ** -0.5 for axis in (1, 0)]
    matrix *= roots[0][:, None] * roots[1][None]

    def spread(rows, steps, alpha, after):
        first = (1 - alpha) * rows
        for _ in range(steps):
            rows = after(first + alpha * matrix @ rows)
        return rows

    mask = data.split_masks()["train"]
    scores = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    truth = np.eye(data.num_classes)[data.labels[mask]]
    error = np.zeros_like(scores)
    error[mask] = truth - scores[mask]
    if config.scale is None:
        spread_error = spread(error, config.correction_steps, config.correction_alpha, lambda e: np.clip(e, -1, 1))
        with np.errstate(divide="ignore"):
            scale = np.abs(error).sum() / mask.sum() / np.abs(spread_error).sum(1, keepdims=True)
        scale[~(scale <= 1000)] = 1
    else:
        scale = config.scale
        known = mask[:, None]
        keep = lambda e: np.where(known, error, e)  # noqa: E731
        spread_error = spread(error, config.correction_steps, config.correction_alpha, keep)
    scores = scores + scale * spread_error
    scores[mask] = truth
    return spread(scores, config.smoothing_steps, config.smoothing_alpha, lambda z: np.clip(z, 0, 1))


def on_ranks(graph, logits: np.ndarray, config: CorrectSmoothConfig) -> np.ndarray:
    return gather_rows(graph, correct_and_smooth(graph, torch.from_numpy(logits[graph.owned_ids]), config))


@pytest.mark.mpi(3)
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kind", ["undirected", "directed", "all on rank 0"])
def test_equals_the_dense_reference(comm, name, kind):
    data, cut = random_graph(31, directed=kind == "directed"), None
    if kind == "all on rank 0":
        cut = random_cut(data.edge_list(), comm.size)
        cut = VertexCut(comm.size, np.zeros_like(cut.edge_part), np.zeros_like(cut.owner))
    logits = logits_of(data)
    got = on_ranks(dist_graph(data, comm, cut), logits, CONFIGS[name])
    np.testing.assert_allclose(got, reference(data, logits, CONFIGS[name]), rtol=1e-10, atol=1e-12)


@pytest.mark.mpi(1)  # ranks are compared with the formula above
@pytest.mark.parametrize("graph_name", ["communities", pytest.param("cora", marks=pytest.mark.real)])
@pytest.mark.parametrize("name", ["autoscale", "fixed scale"])
def test_equals_pygs(comm, graph_named, graph_name, name):
    pyg = pytest.importorskip("torch_geometric.nn")
    data, config = graph_named(graph_name), CONFIGS[name]
    logits = logits_of(data)
    sources, targets, _ = data.edge_list().arcs()
    edge_index = torch.tensor(np.stack([sources, targets]).astype(np.int64))
    steps = (config.correction_steps, config.correction_alpha, config.smoothing_steps, config.smoothing_alpha)
    options = {"autoscale": config.scale is None} | ({} if config.scale is None else {"scale": config.scale})
    theirs = pyg.CorrectAndSmooth(*steps, **options)
    mask, labels = torch.from_numpy(data.split_masks()["train"]), torch.from_numpy(data.labels.astype(np.int64))
    scores = torch.from_numpy(logits).softmax(1)
    corrected = theirs.correct(scores, labels[mask], mask, edge_index)
    expected = theirs.smooth(corrected, labels[mask], mask, edge_index).numpy()
    got = on_ranks(dist_graph(data, comm), logits, config)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)  # PyG's degrees are float32


@pytest.mark.mpi(2)
def test_a_graph_with_several_labels_is_refused(comm):
    graph = dist_graph(random_graph(multilabel=True), comm)
    with pytest.raises(ValueError, match="one label each"):
        correct_and_smooth(graph, torch.zeros(graph.num_owned, graph.num_classes))
