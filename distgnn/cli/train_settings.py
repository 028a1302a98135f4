"""The settings of a run before ranks start: what a recipe picks for a graph, and what config.toml keeps of the data."""

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from distgnn.config import Settings
from distgnn.config.options.option import option_name
from distgnn.config.steps.recipes import pick
from distgnn.config.train import LEAST_PATIENCE, PATIENT_EPOCHS
from distgnn.errors import InputError


def with_recipe(
    settings: Settings, given: set[str], recipe: str | None, manifest: dict[str, Any]
) -> tuple[Settings, str]:
    """The settings with what a recipe, or None: the defaults, pick for this graph, and the line that says so.

    A resumed run has its own settings.
    """
    graph, task = manifest["graph"] | {"num_nodes": manifest["num_nodes"]}, settings.train.task

    def allows(options: Mapping[str, Any]) -> bool:
        try:
            _with_options(settings, options).checked()
        except InputError:
            return False
        return True

    options, line = pick(recipe, graph, task, given, allows)
    if settings.train.resume and (Path(str(settings.train.run_dir)) / "config.toml").is_file():
        return settings, ""
    settings = _with_options(settings, options)
    return settings if recipe is None else with_patience(settings, given), line


def with_patience(settings: Settings, given: set[str]) -> Settings:
    """The settings of a run that stops by itself, unless its patience is given."""
    if "patience" in given or not settings.train.may_stop:
        return settings
    patience = max(LEAST_PATIENCE, math.ceil(PATIENT_EPOCHS / max(settings.train.eval_every, 1)))
    return replace(settings, train=replace(settings.train, patience=patience))


def _with_options(settings: Settings, options: Mapping[str, Any]) -> Settings:
    groups = {name: getattr(settings, name) for name in ("train", "model", "run", "schedule")}
    known = {name: {option_name(field): field.name for field in fields(group)} for name, group in groups.items()}
    changed = {
        name: replace(group, **{known[name][key]: value for key, value in options.items() if key in known[name]})
        for name, group in groups.items()
    }
    return replace(settings, **changed)


def describe_data(parts: str, manifest: dict[str, Any]) -> dict[str, Any]:
    """What config.toml keeps of the partition: enough to make the model, and the graph it was trained on, again."""
    return {
        "parts": str(Path(parts).resolve()),
        "checksum": manifest["sha256"],
        "graph": describe_graph(manifest),
    }


def describe_graph(manifest: dict[str, Any]) -> dict[str, Any]:
    return {name: manifest[name] for name in ("name", "direction", "self_loops")} | manifest["graph"]
