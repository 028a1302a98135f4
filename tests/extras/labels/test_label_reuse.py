"""Label reuse: which labels are input, which bear the loss, and that neither depends on the number of ranks."""

import json

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, on_rank_0, random_graph, whole_graph
from trainers import trainer_of

import distgnn
from distgnn.config import ModelConfig
from distgnn.errors import InputError
from distgnn.extras.labels.label_reuse import LabelReuse
from distgnn.train.metrics import rank_loss, rows_of_loss


class Recorder(torch.nn.Module):
    """Keeps its input and gives logits that depend on all of it."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.linear = torch.nn.Linear(width, classes)

    def forward(self, graph, rows):
        self.seen = rows.detach()
        return self.linear(rows)


def train(graph, config: ModelConfig):
    trainer = trainer_of(graph, config, epochs=8, eval_every=4)
    return trainer.fit().losses, gather_rows(graph, trainer.predict())


@pytest.mark.mpi(3)
@pytest.mark.parametrize("kind", ["classes", "multilabel"])
def test_training_does_not_depend_on_ranks(comm, kind):
    data = random_graph(13, multilabel=kind == "multilabel")
    config = ModelConfig("sage", 8, label_reuse=0.6)
    losses, logits = train(dist_graph(data, comm), config)
    expected = on_rank_0(comm, lambda: train(whole_graph(data), config))
    np.testing.assert_allclose(losses, expected[0], rtol=1e-8)  # 8 Adam steps of float64 sums in another order
    np.testing.assert_allclose(logits, expected[1], rtol=1e-5, atol=1e-7)


@pytest.mark.mpi(3)
def test_a_vertex_whose_loss_counts_does_not_see_its_label(comm):
    data = random_graph(14, num_nodes=400)
    graph = dist_graph(data, comm)
    model = LabelReuse(Recorder(graph.num_feats + graph.num_classes, graph.num_classes), 0.3).double()
    masks = data.split_masks()
    shares = []
    for step in range(20):
        graph.step = step
        logits = model.train()(graph, graph.feats)
        hot = gather_rows(graph, model.model.seen[:, graph.num_feats :])
        counted = gather_rows(graph, rows_of_loss(model, graph))
        assert not hot[counted].any() and not hot[~masks["train"]].any() and not counted[~masks["train"]].any()
        shown = masks["train"] & ~counted
        np.testing.assert_array_equal(hot[shown].argmax(1), data.labels[shown])
        np.testing.assert_array_equal(hot[shown].sum(1), 1)
        shares.append(shown.sum() / masks["train"].sum())
        everything = gather_rows(graph, logits.detach())[counted]
        expected = torch.nn.functional.cross_entropy(torch.from_numpy(everything), torch.tensor(data.labels[counted]))
        loss = rank_loss(graph, logits, rows_of_loss(model, graph))
        assert comm.allreduce(loss.item()) == pytest.approx(expected.item())
    assert len(set(shares)) > 5  # each step draws anew
    assert np.mean(shares) == pytest.approx(0.3, abs=0.05)  # 20 draws of ~200 vertices: 3 standard deviations are 0.02
    model.eval()(graph, graph.feats)
    hot = gather_rows(graph, model.model.seen[:, graph.num_feats :])
    np.testing.assert_array_equal(hot.any(1), masks["train"])


@pytest.mark.parametrize("words", [("edgegat",), ("rgcn", "--set", "num_bases=2", "--inductive")])
def test_a_run_predicts_with_labels(ran, refused, graph_folder, tmp_path, words):
    random = np.random.default_rng(1)
    np.save(graph_folder / "edge_feats.npy", random.standard_normal((150, 8)).astype(np.float32))
    np.save(graph_folder / "edge_types.npy", random.integers(0, 3, 150))
    ran("partition", graph_folder, "--parts", 1, "--out", tmp_path / "typed", "--quiet")
    common = ["--label-reuse", 0.5, "--epochs", 3, "--hidden-feats", 8, "--run-dir", tmp_path / "run", "--quiet"]
    ran("train", tmp_path / "typed", "--model", *words, *common)
    out, summary = tmp_path / "logits.npy", json.loads((tmp_path / "run" / "summary.json").read_text())
    ran("predict", tmp_path / "run", tmp_path / "typed", "--out", out, "--quiet")
    labels, test = np.load(graph_folder / "labels.npy"), np.load(graph_folder / "test.npy")
    assert summary["test_accuracy"] == np.mean(np.load(out)[test].argmax(1) == labels[test])
    with pytest.raises(InputError, match="becomes no other library's"):
        distgnn.to_dgl(str(tmp_path / "run"))
    (graph_folder / "train.npy").unlink()
    np.save(graph_folder / "train.npy", np.zeros(0, np.int64))
    ran("partition", graph_folder, "--parts", 1, "--out", tmp_path / "other", "--quiet")
    refused("predict", tmp_path / "run", tmp_path / "other", "--out", tmp_path / "p.npy", says="needs training labels")
