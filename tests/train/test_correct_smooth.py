"""Correct and Smooth on P ranks equals a slow dense reference, and DGL's and PyG's own, on the whole graph."""

import numpy as np
import pytest
import torch
from cut_graphs import dense_adjacency, dist_graph, gather_rows, random_cut, random_graph, whole_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.datasets.generators.communities import make_communities
from distgnn.errors import InputError
from distgnn.nn import build_model
from distgnn.partition import VertexCut
from distgnn.system.other_libraries import import_dgl
from distgnn.train import Trainer, correct_and_smooth
from distgnn.train.checkpoint.weights import best_is_smoothed
from distgnn.train.correct_smooth import CorrectSmoothConfig, propagated, value_of

CONFIGS = {
    "autoscale": CorrectSmoothConfig(10, 0.9, 7, 0.8),
    "fixed scale": CorrectSmoothConfig(10, 0.9, 7, 0.8, scale=1.5),
    "no correction": CorrectSmoothConfig(0, 0.9, 7, 0.8, scale=0.0),
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


@pytest.mark.mpi(4)
@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("directed", [False, True])
def test_equals_the_dense_reference(comm, name, directed):
    data = random_graph(31, directed=directed)
    logits = logits_of(data)
    got = on_ranks(dist_graph(data, comm), logits, CONFIGS[name])
    np.testing.assert_allclose(got, reference(data, logits, CONFIGS[name]), rtol=1e-10, atol=1e-12)


@pytest.mark.mpi(3)
def test_a_rank_without_vertices(comm):
    data = random_graph(32)
    cut = random_cut(data.edge_list(), comm.size)
    cut = VertexCut(comm.size, np.zeros_like(cut.edge_part), np.zeros_like(cut.owner))
    logits = logits_of(data)
    got = on_ranks(dist_graph(data, comm, cut), logits, CONFIGS["autoscale"])
    np.testing.assert_allclose(got, reference(data, logits, CONFIGS["autoscale"]), rtol=1e-10, atol=1e-12)


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


@pytest.mark.mpi(1)
def test_smoothing_equals_dgls_label_propagation(comm):
    """DGL 1.1.3 has this half only, for rows that are labels."""
    data = random_graph(33, directed=True)
    graph, mask = dist_graph(data, comm, dtype="float32"), data.split_masks()["train"]
    dgl_nn = import_dgl().nn
    labels = torch.from_numpy(np.maximum(data.labels, 0))
    whole = data.to_dgl()
    expected = dgl_nn.LabelPropagation(k=9, alpha=0.7)(whole, labels, torch.from_numpy(mask)).numpy()
    rows = torch.zeros(data.num_nodes, data.num_classes)
    rows[mask, data.labels[mask]] = 1
    with torch.no_grad():
        got = propagated(graph, rows[graph.owned_ids], 9, 0.7, lambda rows: rows.clamp_(0, 1))
    np.testing.assert_allclose(gather_rows(graph, got), expected, rtol=1e-5, atol=1e-6)  # both in float32


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"correction_steps": -1}, "correction_steps is -1"),
        ({"smoothing_alpha": 1.5}, "smoothing_alpha is 1.5"),
        ({"scale": -1.0}, "scale is -1.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        CorrectSmoothConfig(**settings).check()


@pytest.mark.mpi(2)
def test_a_graph_with_several_labels_is_refused(comm):
    graph = dist_graph(random_graph(multilabel=True), comm)
    with pytest.raises(ValueError, match="one label each"):
        correct_and_smooth(graph, torch.zeros(graph.num_owned, graph.num_classes))


def trainer_of(graph, **config) -> Trainer:
    torch.manual_seed(0)
    network = build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes)
    usual = {"epochs": 4, "eval_every": 2, "correct_and_smooth": True, "lr": 1e-4, "log": None}
    settings = TrainConfig(**usual | config)
    return Trainer(network, graph, settings, say=lambda text: None)


@pytest.mark.mpi(1, 2)
def test_an_evaluation_measures_raw_and_smoothed_scores(comm, shared_tmp_path):
    """The better one on validation picks the best epoch and is noted beside its weights."""
    data = make_communities("communities:nodes=300,communities=8,classes=4,feats=16,mixing=0.05,train=0.3")
    result = trainer_of(dist_graph(data, comm), run_dir=str(shared_tmp_path / "run"), log="csv").fit()
    one = trainer_of(whole_graph(data)).fit()
    evaluated = [record for record in result.records if "valid_metric" in record]
    for record, other in zip(evaluated, [record for record in one.records if "valid_metric" in record], strict=True):
        for name in ("valid_metric", "smoothed_valid_metric", "smoothed_test_metric"):
            assert record[name] == pytest.approx(other[name], abs=1e-12)
        assert record["smoothed"] == (record["smoothed_valid_metric"] > record["valid_metric"])
    chosen = [max(record["valid_metric"], record["smoothed_valid_metric"]) for record in evaluated]
    assert result.summary["best_epoch"] == evaluated[int(np.argmax(chosen))]["epoch"]
    assert result.summary["smoothed"] and result.summary["smoothed_valid_metric"] == max(chosen)
    comm.Barrier()
    assert best_is_smoothed(str(shared_tmp_path / "run"))
    assert "smoothed_valid_metric" in (shared_tmp_path / "run" / "metrics.csv").read_text()


@pytest.mark.parametrize(
    ("record", "value"),
    [
        ({"valid_metric": 0.5}, 0.5),
        ({"valid_metric": 0.5, "smoothed": False, "smoothed_valid_metric": 0.4}, 0.5),
        ({"valid_metric": 0.5, "smoothed": True, "smoothed_valid_metric": 0.6}, 0.6),
        ({"valid_metric": None}, None),
    ],
)
def test_the_better_scores_pick_the_best_epoch(record, value):
    assert value_of(record, "valid_metric", "accuracy") == value
    assert value_of({"mine": 3.0, **record}, "mine", "accuracy") == 3.0


def test_labels_that_cannot_be_smoothed_are_refused():
    with pytest.raises(InputError, match="correct_and_smooth needs vertices with one label each"):
        trainer_of(whole_graph(random_graph(multilabel=True)))
    with pytest.raises(InputError, match="correct_and_smooth spreads classes of vertices"):
        TrainConfig(task="link", correct_and_smooth=True).check()
