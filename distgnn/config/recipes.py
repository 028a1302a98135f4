"""Options picked from what partition.json says of a graph: `train --recipe fast`, and defaults of some graphs.

The first row that fits a graph gives its options; of recipe fast, rows of extras come before the table below. Evidence
of recipe fast: docs/benchmarks/time-to-accuracy.md, for sparse features; for dense ones standardize is what is usual.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distgnn.config.extras import attached, searches
from distgnn.config.option import check_choice
from distgnn.config.settings import Settings
from distgnn.config.train import LEAST_PATIENCE, PATIENT_EPOCHS
from distgnn.errors import InputError

RECIPES = ("fast", *searches())


@dataclass(frozen=True)
class Row:
    """Which graphs, and the options for them by the names of their fields.

    Args: fits: of the `graph` section of partition.json (with num_nodes) and the task; graphs: the same in words.
    """

    graphs: str
    fits: Callable[[Mapping[str, Any], str], bool]
    options: Mapping[str, Any]


FEWEST_LABELS = 1000  # of training


def has_few_labels(graph: Mapping[str, Any]) -> bool:
    return graph.get("train", FEWEST_LABELS) < FEWEST_LABELS


FAST = (
    Row("several types", lambda graph, task: bool(graph.get("types")), {"lr": 0.003}),
    Row("tasks on pairs or values", lambda graph, task: task != "node", {"lr": 0.003}),
    Row(
        "few labels, sparse features",
        lambda graph, task: has_few_labels(graph) and bool(graph.get("sparse_feats")),
        {"feat_norm": "row-l2,center", "norm": "none", "lr": 0.005, "weight_decay": 5e-4},
    ),
    Row("sparse features", lambda graph, task: bool(graph.get("sparse_feats")), {"feat_norm": "row-l2,center"}),
    Row("dense features", lambda graph, task: True, {"feat_norm": "standardize"}),
)
DEFAULTS = (
    Row(
        "few labels, sparse features",
        lambda graph, task: task == "node" and has_few_labels(graph) and bool(graph.get("sparse_feats")),
        {
            "model": "appnp",
            "num_layers": 2,
            "hidden_feats": 64,
            "norm": "none",
            "feat_norm": "row-l2",
            "lr": 0.01,
            "weight_decay": 5e-3,
        },
    ),
    Row("other graphs", lambda graph, task: True, {}),
)
TABLES: dict[str | None, tuple[Row, ...]] = {"fast": FAST, None: DEFAULTS}


def pick(
    recipe: str | None,
    graph: Mapping[str, Any],
    task: str,
    given: set[str],
    allows: Callable[[Mapping[str, Any]], bool] = lambda options: True,
) -> tuple[dict[str, Any], str]:
    """The options of a recipe for a graph, but those that were `given`, and one line that says what was picked.

    Args:
        recipe: None: the defaults, whose line is empty where they are all graphs'.
        allows: do these options go with what was given? Rows of which they do not are left out, but for the last.
    """
    if recipe is not None:
        check_choice("recipe", recipe, RECIPES)
    of_extras = (row for rows in attached("recipe") for row in rows if recipe is not None)
    for row in (*of_extras, *TABLES[recipe]):
        if not row.fits(graph, task):
            continue
        picked = dict(row.options)
        for more in attached("given"):
            picked |= more(given)
        if "optimizer" in given:
            picked.pop("lr", None)  # it was another optimizer's
        options = {name: value for name, value in picked.items() if name not in given}
        if allows(options):
            break
    flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    if recipe is None:
        return options, f"defaults ({row.graphs}): {flags}" if flags else ""
    return options, f"recipe {recipe} ({row.graphs}): {flags or 'every option of it is given'}"


def for_graph(
    settings: Settings, given: set[str], recipe: str | None, manifest: dict[str, Any], by_name: bool, defaults: bool
) -> tuple[Settings, str]:
    """The checked settings of a run on this graph, with its task, and the line on what a recipe has picked.

    Args: by_name: as of `with_recipe`; defaults: without a recipe, the graph has its own.
    """
    settings, line = settings.with_task(manifest["graph"], given), ""
    if recipe is not None or defaults:
        settings, line = with_recipe(settings, given, recipe, manifest, by_name)
    settings = settings.checked()
    settings.check_graph(manifest["graph"], by_name)
    return settings, line


def with_recipe(
    settings: Settings, given: set[str], recipe: str | None, manifest: dict[str, Any], by_name: bool = True
) -> tuple[Settings, str]:
    """The settings with what a recipe, or None: the defaults, pick for this graph, and the line that says so.

    A resumed run has its own settings. Recipes that search choose on the ranks.

    Args: by_name: the model is the one of the settings, not a user's own.
    """
    if recipe in searches():
        if settings.knows_types(manifest["graph"], by_name):
            raise InputError(f"recipe {recipe} searches among models of graphs of one type: leave it out")
        return settings, ""
    graph, task = manifest["graph"] | {"num_nodes": manifest["num_nodes"]}, settings.train.task

    def allows(options: Mapping[str, Any]) -> bool:
        try:
            settings.with_options(options).checked().check_types(manifest["graph"], by_name)
        except InputError:
            return False
        return True

    options, line = pick(recipe, graph, task, given, allows)
    if settings.train.resume and (Path(str(settings.train.run_dir)) / "config.toml").is_file():
        return settings, ""
    settings = settings.with_options(options)
    return settings if recipe is None else with_patience(settings, given), line


def with_patience(settings: Settings, given: set[str]) -> Settings:
    """The settings of a run that stops by itself, unless its patience is given."""
    if "patience" in given or not settings.train.may_stop:
        return settings
    patience = max(LEAST_PATIENCE, math.ceil(PATIENT_EPOCHS / max(settings.train.eval_every, 1)))
    return replace(settings, train=replace(settings.train, patience=patience))
