"""Metrics of links as OGB's evaluators define them: Hits@K, mean reciprocal rank, area under the ROC curve.

Legend: m scores of this rank's positives, k of its negatives; K negatives for each positive.

| | |
|---|---|
| rank of a positive | 1 + negatives above it + half of those equal to it |
| mrr | mean of 1 / rank |
| hits@K, negatives for each positive | share of positives with rank <= K |
| hits@K, negatives for all | share of positives above the K-th highest negative; 1 for fewer than K negatives |
| rocauc | share of (positive, negative) in the right order, ties counting half |

Scores within 2^-17 of their size count as equal: `tie_width` of distgnn/train/metrics.py. Ranks add in another order
than one process does, so that scores which are equal in exact arithmetic differ in their last bits. Each positive has
a band of its own, so no pair of equal scores falls to both sides of a border, as rounded scores would. OGB's values
come out where no two scores are that close. In bfloat16 equal scores may differ by more than that.

Source: ogb.linkproppred.Evaluator (Hu et al., Open Graph Benchmark, 2020). With negatives for all, mrr ranks a positive
among all of them, as Li et al. do (Evaluating Graph Neural Networks for Link Prediction, 2023).
"""

from typing import Any

import numpy as np

from distgnn.comm import gather_arrays, sum_over_ranks
from distgnn.config.task import HITS
from distgnn.train.metrics import tie_width

Found = dict[str, float]
KS = [(name, int(name.partition("@")[2])) for name in HITS]
LARGEST = max(most for _, most in KS)


def link_metrics(comm: Any, positive: np.ndarray, negative: np.ndarray, beside: bool) -> Found:
    """Every metric, by name; empty where there are no positives or no negatives.

    Collective: yes; scores of positives come to every rank, negatives are counted where they are.

    Args: beside: the negatives [m * K] are those of each positive, one positive after the other; else for all.
    """
    positives = _from_all(comm, positive)
    (count,) = sum_over_ranks(comm, np.array([len(negative)]))
    if len(positives) == 0 or count == 0:
        return {}
    scores = np.concatenate([positive, negative])
    finite = scores[np.isfinite(scores)]
    squares, numbers = sum_over_ranks(comm, np.array([float(np.dot(finite, finite)), float(len(finite))]))
    size = float(np.sqrt(squares / max(numbers, 1.0)))
    # For each positive the negatives of all ranks above it, those equal to it counting half
    ordered, width = np.sort(negative), tie_width(positives, size)
    below = np.searchsorted(ordered, positives - width, "left")
    not_above = np.searchsorted(ordered, positives + width, "right")
    above = sum_over_ranks(comm, 2 * len(ordered) - below - not_above) / 2
    found = {"rocauc": float(1 - np.mean(above) / count)}
    if beside:
        width, table = tie_width(positive, size), negative.reshape(len(positive), -1 if len(positive) else 0)
        higher, not_below = (table > (positive + width)[:, None]).sum(1), (table >= (positive - width)[:, None]).sum(1)
        ranks = _from_all(comm, 1 + (higher + not_below) / 2)
        return found | {"mrr": float(np.mean(1 / ranks))} | {name: float(np.mean(ranks <= most)) for name, most in KS}
    best = np.sort(np.concatenate(comm.allgather(np.sort(negative)[-LARGEST:])))
    above_it = best + tie_width(best, size)
    hits = {name: 1.0 if count < most else float(np.mean(positives > above_it[-most])) for name, most in KS}
    return found | {"mrr": float(np.mean(1 / (1 + above)))} | hits


def _from_all(comm: Any, values: np.ndarray) -> np.ndarray:
    """The values of all ranks, in the order of ranks. Collective: yes."""
    return np.concatenate(gather_arrays(comm, values, root=None) or [])
