"""Label reuse: which labels are input, which bear the loss, and that neither depends on the number of ranks."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph

from distgnn.config import ModelConfig, TrainConfig
from distgnn.nn import LabelReuse, model_for
from distgnn.train import Trainer
from distgnn.train.loss import rank_loss, rows_of_loss


class Recorder(torch.nn.Module):
    """Keeps its input and gives logits that depend on all of it."""

    def __init__(self, width: int, classes: int):
        super().__init__()
        self.linear = torch.nn.Linear(width, classes)

    def forward(self, graph, rows):
        self.seen = rows.detach()
        return self.linear(rows)


def train(graph, config: ModelConfig, epochs: int = 8):
    torch.manual_seed(0)
    trainer = Trainer(model_for(config, graph), graph, TrainConfig(epochs=epochs, eval_every=4))
    return trainer.fit().losses, gather_rows(graph, trainer.predict())


@pytest.mark.mpi(3)
@pytest.mark.parametrize("kind", ["classes", "multilabel", "copies"])
def test_training_does_not_depend_on_ranks(comm, kind):
    data = random_graph(13, multilabel=kind == "multilabel")
    options = {"update": "copies"} if kind == "copies" else {}
    config = ModelConfig("sage", 8, label_reuse=0.6)
    losses, logits = train(dist_graph(data, comm, **options), config)
    expected = train(whole_graph(data), config)
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


def test_a_share_that_makes_no_sense_is_refused():
    for share in (-0.1, 1.0):
        with pytest.raises(ValueError, match=f"label_reuse is {share}"):
            ModelConfig("sage", label_reuse=share).check()
