"""`distgnn train --recipe fast`: options that reach an accuracy soon, picked from what partition.json says of a graph.

The table below is all there is: the first row that fits a graph gives its options. Evidence:
docs/benchmarks/time-to-accuracy-2026-11-22.md, for sparse features; for dense ones standardize is what is usual.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from distgnn.config.options.choices import check_choice

RECIPES = ("fast",)


@dataclass(frozen=True)
class Row:
    """Which graphs, and the options for them by the names of their fields.

    Args: fits: of the `graph` section of partition.json (with num_nodes) and the task; graphs: the same in words.
    """

    graphs: str
    fits: Callable[[Mapping[str, Any], str], bool]
    options: Mapping[str, Any]


FAST = (
    Row("tasks on pairs or values", lambda graph, task: task != "node", {"lr": 0.003}),
    Row(
        "sparse features",
        lambda graph, task: bool(graph.get("sparse_feats")),
        {"feat_norm": "row-l2,center", "optimizer": "kfac"},
    ),
    Row(
        "dense features",
        lambda graph, task: True,
        {"feat_norm": "standardize", "optimizer": "kfac"},
    ),
)
TABLES = {"fast": FAST}
BATCHES, FOR_BATCHES = {"batch", "stages"}, {"optimizer": "adam", "lr": 0.001}  # which K-FAC does not take


def pick(recipe: str, graph: Mapping[str, Any], task: str, given: set[str]) -> tuple[dict[str, Any], str]:
    """The options of a recipe for a graph, but those that were `given`, and one line that says what was picked.

    Raises: InputError for an unknown recipe.
    """
    check_choice("recipe", recipe, RECIPES)
    row = next(row for row in TABLES[recipe] if row.fits(graph, task))
    picked = {**row.options, **(FOR_BATCHES if given & BATCHES else {})}
    options = {name: value for name, value in picked.items() if name not in given}
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    return options, f"recipe {recipe} ({row.graphs}): {flags or 'every option of it is given'}"
