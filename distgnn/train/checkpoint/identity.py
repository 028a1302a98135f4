"""Is a checkpoint of this model, graph and settings? Compared name by name, so that the difference can be said."""

from pathlib import Path
from typing import Any

from distgnn.config import TrainConfig
from distgnn.config.schedule import drop_removed
from distgnn.errors import InputError
from distgnn.graph.copy_graph import CopyGraph
from distgnn.train.checkpoint.fingerprint import difference

# What may change between the parts of one run: none of it changes a number of an epoch.
FREE_TRAIN = (
    "epochs", "run_dir", "overwrite", "resume", "checkpoint_every", "timeout", "verify_every", "eval_every", "trace",
    "log",
)  # fmt: skip


def run_settings(config: TrainConfig, metric: str, describe: dict, graph: Any) -> dict[str, object]:
    """Settings that a resumed run must have, flat: {"train.lr": 0.01, "model.hidden_feats": 256, …}."""
    train = {name: value for name, value in config.as_dict().items() if name not in FREE_TRAIN}
    unused = {"clip_grad": not config.clip_grad, "task": config.task == "node"}
    unused |= dict.fromkeys(("negatives", "num_negatives"), config.task != "link")
    train = {name: value for name, value in train.items() if not unused.get(name)}  # checkpoints of before have none
    if config.lr_schedule == "cosine":
        train["epochs"] = config.epochs
    sections = {"train": train | {"metric": metric}}
    sections |= {name: values for name, values in describe.items() if name in ("model", "run")}
    made = {"algorithm": graph.algorithm.name, "dtype": str(graph.dtype).removeprefix("torch.")}
    sections["graph"] = made | {"update": "copies" if isinstance(graph, CopyGraph) else "owners"}
    return {f"{section}.{name}": value for section, values in sections.items() for name, value in values.items()}


def check_identity(path: Path, state: dict, settings: dict, graph: dict) -> None:
    """Raise InputError naming the first difference between a checkpoint and what is to be trained now."""
    different = difference(state["graph"], graph)
    if different:
        raise InputError(f"{path} is of another graph: {different}")
    saved = drop_removed(state["settings"], str(path))
    for name in sorted(saved.keys() | settings.keys()):
        there, here = saved.get(name), settings.get(name)
        if there != here:
            raise InputError(
                f"{path} is of other settings: {name.rpartition('.')[2]} is {_said(there)} there, {_said(here)} here"
            )


def _said(value: Any) -> str:
    return "not set" if value is None else str(value)
