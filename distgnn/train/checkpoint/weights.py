"""Weights, and the norm of features beside them, as safetensors: nothing in a file is executed when it is loaded."""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save

from distgnn.config.run import parse_feat_norm
from distgnn.errors import InputError, RunError
from distgnn.graph.feat_norm import FeatNorm
from distgnn.train.run.run_folder import best_weights


def pack(state: dict[str, torch.Tensor]) -> bytes:
    """A state dict as the bytes of a safetensors file, tied weights one by one."""
    return save({name: tensor.detach().clone().contiguous() for name, tensor in state.items()})


def read_best(path: str) -> dict[str, torch.Tensor]:
    """The best weights of a run folder by name. Raises: RunError when there are none, or the file is damaged."""
    file = best_weights(path)
    if not file.is_file():
        raise RunError(f"{path} has no weights ({file} is missing): the run did not reach its first evaluation")
    try:
        return load_file(file)
    except (SafetensorError, OSError) as error:
        raise RunError(f"{file} is damaged: {error}") from error


def load_best(path: str, model: torch.nn.Module) -> None:
    """Put the best weights of a run folder into `model`. Raises: RunError where there are none, or of another model."""
    state, file = read_best(path), best_weights(path)
    expected, found = ({name: tuple(one.shape) for name, one in s.items()} for s in (model.state_dict(), state))
    for name in sorted(expected.keys() | found.keys()):
        there, here = found.get(name, "missing"), expected.get(name, "no such parameter")
        if there != here:
            raise RunError(f"{file} does not fit the model: {name} is {there}, the model has {here}")
    model.load_state_dict(state)


def feat_norm_file(folder: str | Path) -> Path:
    return Path(folder) / "feat_norm.safetensors"


def pack_feat_norm(norm: FeatNorm) -> bytes:
    columns = {} if norm.mean is None or norm.factor is None else {"mean": norm.mean, "factor": norm.factor}
    return save(columns, {"steps": norm.name, "inductive": str(norm.inductive)})


def read_feat_norm(run: str, settings: dict[str, Any]) -> FeatNorm | None:
    """What was done to the features of a run with this config.toml; None: nothing."""
    file, wanted = feat_norm_file(run), settings.get("run", {}).get("feat_norm", "none")
    if not file.is_file():
        if wanted != "none":
            raise RunError(f"{file} is missing: the run was trained with feat_norm {str(wanted)[:40]}")
        return None
    try:
        with safe_open(file, "pt") as stream:
            about, columns = stream.metadata() or {}, {name: stream.get_tensor(name) for name in stream.keys()}
        steps = parse_feat_norm(about["steps"])
    except (SafetensorError, OSError, KeyError, InputError) as error:
        raise RunError(f"{file} is damaged: {error}") from error
    width = settings.get("data", {}).get("graph", {}).get("num_feats")
    for name, column in columns.items():
        if name not in ("mean", "factor") or column.dtype != torch.float64 or list(column.shape) != [width]:
            raise RunError(f"{file} is damaged: {name} is {column.dtype} {list(column.shape)}, not float64 [{width}]")
    return FeatNorm(steps, columns.get("mean"), columns.get("factor"), about.get("inductive") == "True")
