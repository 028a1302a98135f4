"""What cluster batches attach: steps of a pass, their memory, and rows of the recipe.

--cluster-batches 32                         every epoch is a pass of 32 steps
--cluster-batches 32 --batched-epochs 8      8 such passes, then epochs of one exact step each
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

from distgnn.config.extras import Extra, Rule
from distgnn.config.option import option

_setting = partial(option, panel="")
OPTIMIZERS = ("adam", "adamw", "sgd")
SUMS = (
    "cluster batches run layers of distgnn.nn that add up rows of neighbours, {by_arc} does not: leave "
    "--cluster-batches out"
)


@dataclass
class BatchOptions:
    """What a training step is on."""

    cluster_batches: int = _setting(
        0,
        "Steps of each epoch; one is on one of so many micro-parts of every stratum of the vertex clusters (0: one on "
        "the whole graph).",
        least=0,
    )
    batched_epochs: int | None = _setting(
        None, "First epochs that have cluster batches; further ones have one exact step.", least=1, default_text="all"
    )


def held_numbers(part: dict[str, Any], settings: dict[str, Any]) -> int:
    """Numbers of held rows, forward and backward: 2 · (L - 1) · (O + H) · W. Args: part: of partition.json."""
    model, train = settings["model"], settings.get("train", {})
    numbers = 2 * max(model["num_layers"] - 1, 1) * part["rows"] * model["hidden_feats"]
    return numbers if train.get("cluster_batches") else 0


def _alone(name: str) -> str:
    return f"cluster batches do not go with {name}: leave --cluster-batches out"


EXTRA = Extra(
    options={"TrainConfig": BatchOptions},
    rules=(
        Rule(
            "--batched-epochs is about cluster batches: add --cluster-batches M",
            lambda cluster_batches, batched_epochs: not cluster_batches and batched_epochs is not None,
        ),
        Rule(
            "this partition has no vertex clusters for batches: make it with distgnn partition --clusters",
            lambda cluster_batches, graph: cluster_batches and not graph.get("clusters"),
        ),
        Rule(_alone("task {task}"), lambda cluster_batches, task: cluster_batches and task != "node"),
        Rule(_alone("--inductive"), lambda cluster_batches, inductive: cluster_batches and inductive),
        Rule(_alone("verify_every"), lambda cluster_batches, verify_every: cluster_batches and verify_every),
        Rule(
            _alone("optimizer {optimizer}"),
            lambda cluster_batches, optimizer: cluster_batches and optimizer not in OPTIMIZERS,
        ),
        Rule(
            "cluster batches need algorithm cd-0 and float32 on the wire: which rows are late is theirs to say",
            lambda cluster_batches, exact: cluster_batches and not exact,
        ),
        Rule(
            "cluster batches need update on owners: leave --copy-updates out",
            lambda cluster_batches, copy_updates: cluster_batches and copy_updates,
        ),
        Rule(SUMS, lambda cluster_batches, by_arc: cluster_batches and by_arc),
        Rule(_alone("label reuse"), lambda cluster_batches, label_reuse: cluster_batches and label_reuse),
    ),
    hooks={
        "passes": "passes:passes_of",
        "estimate": "extra:held_numbers",
        "recipe": "recipe:FAST",
        "given": "recipe:steps_for",
    },
)
