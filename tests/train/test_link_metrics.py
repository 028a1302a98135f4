"""Hits@K, MRR and the area under the curve as OGB's evaluators have them, over ranks."""

import numpy as np
import pytest

from distgnn.config.task import HITS
from distgnn.train.metrics import link_metrics


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

    import torch

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
