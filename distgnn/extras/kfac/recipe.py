"""What recipe fast takes where K-FAC is here."""

from typing import Any

from distgnn.config.recipes import Row, has_few_labels

STEPS: dict[str, Any] = {"optimizer": "kfac", "lr": 0.01}
FAST = (
    Row(
        "sparse features",
        lambda graph, task: task == "node" and bool(graph.get("sparse_feats")) and not has_few_labels(graph),
        {"feat_norm": "row-l2,center"} | STEPS,
    ),
    Row(
        "dense features",
        lambda graph, task: task == "node" and not graph.get("sparse_feats"),
        {"feat_norm": "standardize"} | STEPS,
    ),
)
