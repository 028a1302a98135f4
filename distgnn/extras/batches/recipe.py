"""What recipe fast takes of a graph with vertex clusters."""

from collections.abc import Mapping
from typing import Any

from distgnn.config.recipes import Row, has_few_labels


def _fits(graph: Mapping[str, Any], task: str, sparse: bool) -> bool:
    """A batch of fewer than some 60 training labels has too few to learn from."""
    mine = task == "node" and bool(graph.get("clusters")) and not has_few_labels(graph)
    return mine and bool(graph.get("sparse_feats")) == sparse


def steps_for(given: set[str]) -> dict[str, Any]:
    """What is picked, by a recipe or without, where batches are given."""
    return {"optimizer": "adam", "lr": 0.001} if "cluster_batches" in given else {}


BATCHES: dict[str, Any] = {"cluster_batches": 16, "lr": 0.002}
FAST = (
    Row(
        "vertex clusters, sparse features",
        lambda graph, task: _fits(graph, task, True),
        BATCHES | {"feat_norm": "row-l2,center"},
    ),
    Row(
        "vertex clusters, dense features",
        lambda graph, task: _fits(graph, task, False),
        BATCHES | {"feat_norm": "standardize"},
    ),
)
