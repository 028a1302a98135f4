"""The loss of a graph in parts is torch's mean over the labelled training rows of the whole graph."""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph
from torch.nn import functional as F

from distgnn.config import ModelConfig, TrainConfig
from distgnn.errors import InputError
from distgnn.nn import build_model
from distgnn.train import Trainer
from distgnn.train.loss import rank_loss

CLOSE = {torch.float64: 1e-12, torch.float32: 1e-6, torch.bfloat16: 1e-6}


def logits_of(data, dtype=torch.float64) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal((data.num_nodes, 4))).to(dtype)


@pytest.mark.mpi(3)
def test_shares_of_several_labels_add_up_to_torchs_mean(comm):
    data = random_graph(1, multilabel=True)
    graph, logits = dist_graph(data, comm), logits_of(data)
    found = comm.allreduce(float(rank_loss(graph, logits[graph.owned_ids])))
    rows = torch.from_numpy(np.asarray(data.train))
    expected = F.binary_cross_entropy_with_logits(logits[rows], torch.from_numpy(data.labels)[rows].to(logits.dtype))
    assert found == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("dtype", CLOSE, ids=str)
def test_shares_of_cross_entropy_and_gradients_are_torchs(comm, dtype, smoothing):
    """bfloat16 logits count as the float32 numbers that they are; their gradients are rounded once."""
    data = random_graph(1)
    graph, whole = dist_graph(data, comm), logits_of(data, dtype)
    mine, whole = whole[graph.owned_ids].requires_grad_(), whole.requires_grad_()
    rows, labels = torch.from_numpy(np.asarray(data.train)), torch.from_numpy(np.asarray(data.labels))
    assert (labels[rows] == -1).any()
    wide = whole if dtype == torch.float64 else whole.float()
    expected = F.cross_entropy(wide[rows], labels[rows], ignore_index=-1, label_smoothing=smoothing)
    loss = rank_loss(graph, mine, label_smoothing=smoothing)
    (loss * 3).backward()
    (expected * 3).backward()
    assert comm.allreduce(loss.item()) == pytest.approx(expected.item(), rel=CLOSE[dtype])
    assert mine.grad.dtype == dtype
    found = gather_rows(graph, mine.grad.double())
    rounding = 2**-8 if dtype == torch.bfloat16 else 10 * CLOSE[dtype]
    np.testing.assert_allclose(found, whole.grad.double().numpy(), rtol=rounding, atol=rounding / 100)


@pytest.mark.mpi(2)
def test_the_trainer_smooths_as_one_process_does(comm):
    data = random_graph(1)

    def model_for(graph) -> torch.nn.Module:
        torch.manual_seed(0)
        return build_model(ModelConfig(hidden_feats=8, dropout=0.0), graph.num_feats, graph.num_classes).double()

    def records(graph) -> list[dict]:
        settings = TrainConfig(epochs=3, lr=0.01, label_smoothing=0.3, verify_every=1, log=None)
        return Trainer(model_for(graph), graph, settings).fit().records

    whole = whole_graph(data, dtype="float64")
    many, one = records(dist_graph(data, comm, dtype="float64")), records(whole)
    logits, mask = model_for(whole)(whole, whole.feats), whole.train_mask
    expected = F.cross_entropy(logits[mask], whole.labels[mask], label_smoothing=0.3)
    assert one[0]["loss"] == pytest.approx(expected.item(), rel=1e-10)
    np.testing.assert_allclose([one["loss"] for one in many], [one["loss"] for one in one], rtol=1e-10)
    assert max(record["gradient_error"] for record in many) < 1e-12  # the exact step smooths too


def test_what_has_no_labels_to_smooth_is_refused():
    graph = whole_graph(random_graph())
    model = build_model(ModelConfig(hidden_feats=8), graph.num_feats, graph.num_classes)
    with pytest.raises(InputError, match="label_smoothing is for the Trainer's own loss"):
        Trainer(model, graph, TrainConfig(label_smoothing=0.1), loss=lambda graph, logits: logits.sum())
    with pytest.raises(InputError, match="label_smoothing is for one label each"):
        Trainer(model, whole_graph(random_graph(multilabel=True)), TrainConfig(label_smoothing=0.1))
