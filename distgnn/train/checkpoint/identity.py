"""Is a checkpoint of this model, graph and settings? Compared name by name, so that the difference can be said."""

import functools
import hashlib
import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from types import CellType, CodeType
from typing import Any

from distgnn.config import Schedule, TrainConfig
from distgnn.config.extras import all_names
from distgnn.config.train import OVER_ALL_EPOCHS
from distgnn.errors import InputError
from distgnn.train.checkpoint.fingerprint import difference

# What may change between the parts of one run: none of it changes a number of an epoch.
FREE_TRAIN = (
    "epochs", "run_dir", "overwrite", "resume", "checkpoint_every", "timeout", "verify_every", "eval_every", "trace",
    "log", "offload", "memory_report",
)  # fmt: skip

FREE_MODEL = {"model.remat"}  # nor does this, and `--memory auto` may choose otherwise on another machine

# Of [run]: said by the graph itself, or how ranks share the work, which changes as the number of ranks may.
OF_RANKS = {"feat_norm", *all_names(Schedule)}


def run_settings(config: TrainConfig, metric: str, describe: dict[str, Any], graph: Any) -> dict[str, object]:
    """Settings that a resumed run must have, flat: {"train.lr": 0.01, "model.hidden_feats": 256, …}; of training those
    that are not as they were declared."""
    usual = {one.name: one.default for one in fields(config)}
    train = {name: value for name, value in config.as_dict().items() if name not in FREE_TRAIN and value != usual[name]}
    if config.lr_schedule in OVER_ALL_EPOCHS:
        train["epochs"] = config.epochs
    sections = {"train": train | {"metric": metric}}
    sections |= {name: values for name, values in describe.items() if name in ("model", "run")}
    sections["run"] = {name: value for name, value in sections.get("run", {}).items() if name not in OF_RANKS}
    made = {"algorithm": graph.algorithm.name, "dtype": str(graph.dtype).removeprefix("torch.")}
    made |= {"feat_norm": graph.feat_norm.name} if graph.feat_norm else {}
    sections["graph"] = made | {"update": graph.update}
    return {f"{section}.{name}": value for section, values in sections.items() for name, value in values.items()}


def name_of(function: Callable[..., Any] | None) -> str | None:
    """What tells a function from others in a checkpoint: its name; of one without a name, a digest of its bytecode.
    Notes: a function with a name may be changed and keeps it. Another Python may give a lambda another digest."""
    if function is None:
        return None
    if isinstance(function, functools.partial):
        given = [*map(_shown, function.args)]
        given += [f"{name}={_shown(value)}" for name, value in sorted(function.keywords.items())]
        return f"partial({', '.join([str(name_of(function.func)), *given])})"
    name: str = getattr(function, "__qualname__", type(function).__qualname__)
    if not inspect.isfunction(function) or not name.endswith("<lambda>"):
        return name
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    later = CellType()  # of a name that gets its value later
    values = [f" {one}={_shown(cell.cell_contents)}" for one, cell in cells if cell != later]
    values += [f" {place}={_shown(value)}" for place, value in enumerate(function.__defaults__ or ())]
    return f"{name} {_digest(function.__code__)}{''.join(values)}"


def _shown(value: Any) -> str:
    """A number or text; of anything else, whose text may be another in every process, the type."""
    return repr(value) if isinstance(value, int | float | str) else type(value).__qualname__


def _digest(code: CodeType) -> str:
    constants = [_digest(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return hashlib.sha256(repr((code.co_code, code.co_names, constants)).encode()).hexdigest()[:8]


def check_identity(path: Path, state: dict[str, Any], settings: dict[str, Any], graph: dict[str, Any]) -> None:
    """Raise InputError naming the first difference between a checkpoint and what is to be trained now."""
    different = difference(state["graph"], graph)
    if different:
        raise InputError(f"{path} is of another graph: {different}")
    saved = state["settings"]
    for name in sorted((saved.keys() | settings.keys()) - FREE_MODEL):
        there, here = saved.get(name), settings.get(name)
        if there != here:
            words = ["not set" if value is None else value for value in (there, here)]
            raise InputError(
                f"{path} is of other settings: {name.rpartition('.')[2]} is {words[0]} there, {words[1]} here"
            )
