"""Metrics over ranks equal plain ones over all rows.

Hits@K, MRR and the area under the curve as OGB's evaluators have them, over ranks.

The loss of a graph in parts is torch's mean over the labelled training rows of the whole graph.
"""

import numpy as np
import pytest
import torch
from cut_graphs import dist_graph, gather_rows, random_graph, whole_graph
from torch.nn import functional as F
from trainers import trainer_of

from distgnn.config import ModelConfig
from distgnn.config.task import HITS, SPLITS
from distgnn.errors import InputError
from distgnn.train import Trainer
from distgnn.train.metrics import evaluate, link_metrics, rank_loss


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
    data.valid = None  # a split without vertices has no metric
    again = evaluate(dist_graph(data, comm), torch.from_numpy(logits[graph.owned_ids]), "accuracy")
    assert again == found | {"valid_metric": None, "valid_accuracy": None}


def slow(positives, negatives, beside: bool) -> dict:
    """By counting, one positive after the other."""
    ranks, found = [], {}
    for row, score in enumerate(positives):
        others = negatives[row] if beside else negatives.reshape(-1)
        ranks.append(1 + (sum(others > score) + sum(others >= score)) / 2)
    found["mrr"] = np.mean([1 / rank for rank in ranks])
    for name in HITS:
        most, ordered = int(name[5:]), sorted(negatives.reshape(-1), reverse=True)
        found[name] = np.mean([rank <= most for rank in ranks]) if beside else 1.0
        if not beside and len(ordered) >= most:
            found[name] = np.mean([score > ordered[most - 1] for score in positives])
    pairs = [(a > b) + (a == b) / 2 for a in positives for b in negatives.reshape(-1)]
    return found | {"rocauc": np.mean(pairs)}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("width", [1, 12])
def test_against_counting(comm, beside, width):
    random = np.random.default_rng(width)
    positives, negatives = random.integers(0, 9, 30) / 4, random.integers(-3, 8, (30, width)) / 4  # with ties
    mine = slice(comm.rank, None, comm.size)
    found = link_metrics(comm, positives[mine], negatives[mine].reshape(-1), beside)
    expected = slow(positives, negatives, beside)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name
    assert link_metrics(comm, np.zeros(0), negatives[mine].reshape(-1), beside) == {}


@pytest.mark.mpi(3)
@pytest.mark.parametrize("beside", [True, False])
@pytest.mark.parametrize("values", [[1.0], [-0.3, 0.0, 0.01, 0.1, 7.1]], ids=["one value", "some"])
def test_scores_that_differ_by_rounding_are_equal(comm, beside, values):
    random = np.random.default_rng(4)
    positives, negatives = random.choice(values, 30), random.choice(values, (30, 8))
    mine, size = slice(comm.rank, None, comm.size), max(map(abs, values))
    noise = np.random.default_rng(comm.rank)
    rounded = [one[mine].reshape(-1) for one in (positives, negatives)]
    rounded = [one + size * 2.0**-23 * noise.integers(-2, 3, one.shape) for one in rounded]
    found = link_metrics(comm, *rounded, beside)
    for name, value in slow(positives, negatives, beside).items():
        assert found[name] == pytest.approx(value, abs=1e-12), name


@pytest.mark.mpi(1)
def test_against_the_evaluators_of_ogb(comm):
    pytest.importorskip("ogb")
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from ogb.linkproppred import Evaluator

    random = np.random.default_rng(0)
    positives, negatives = random.integers(0, 40, 200) / 8, random.integers(-20, 30, (200, 5)) / 8
    given = {"y_pred_pos": torch.from_numpy(positives), "y_pred_neg": torch.from_numpy(negatives)}
    beside = link_metrics(comm, positives, negatives.reshape(-1), True)
    ranked = Evaluator("ogbl-citation2").eval(given)
    for ours, theirs in (("mrr", "mrr_list"), *((f"hits@{k}", f"hits@{k}_list") for k in (1, 3, 10))):
        assert beside[ours] == pytest.approx(ranked[theirs].mean().item(), abs=1e-6)  # float32 there
    for_all = link_metrics(comm, positives, negatives.reshape(-1), False)
    flat = given | {"y_pred_neg": given["y_pred_neg"].reshape(-1)}
    for name, metric in (("ogbl-ddi", "hits@20"), ("ogbl-collab", "hits@50"), ("ogbl-ppa", "hits@100")):
        assert for_all[metric] == pytest.approx(Evaluator(name).eval(flat)[metric], abs=1e-12)
    numbers = {name: values.numpy() for name, values in flat.items()}
    assert for_all["rocauc"] == pytest.approx(Evaluator("ogbl-vessel").eval(numbers)["rocauc"], abs=1e-12)


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

    def trainer(graph) -> Trainer:
        sizes = ModelConfig(hidden_feats=8, dropout=0.0)
        return trainer_of(graph, sizes, epochs=3, lr=0.01, label_smoothing=0.3, verify_every=1)

    whole = whole_graph(data)
    many, one = (trainer(graph).fit().records for graph in (dist_graph(data, comm), whole))
    logits, mask = trainer(whole).model(whole, whole.feats), whole.train_mask
    expected = F.cross_entropy(logits[mask], whole.labels[mask], label_smoothing=0.3)
    assert one[0]["loss"] == pytest.approx(expected.item(), rel=1e-10)
    np.testing.assert_allclose([one["loss"] for one in many], [one["loss"] for one in one], rtol=1e-10)
    assert max(record["gradient_error"] for record in many) < 1e-12  # the exact step smooths too


def test_what_has_no_labels_to_smooth_is_refused():
    with pytest.raises(InputError, match="label_smoothing is for the Trainer's own loss"):
        trainer_of(whole_graph(random_graph()), own={"loss": print}, label_smoothing=0.1)
    with pytest.raises(InputError, match="label_smoothing is for one label each"):
        trainer_of(whole_graph(random_graph(multilabel=True)), label_smoothing=0.1)
