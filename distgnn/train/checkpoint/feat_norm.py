"""What was done to a run's features, with its statistics, in the run folder: raw features can be prepared the same way.

feat_norm.safetensors: mean, factor float64 [D] where there is a step on columns; the steps in its metadata.
"""

from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from distgnn.config.run import parse_feat_norm
from distgnn.errors import InputError, RunError
from distgnn.graph.features.feat_norm import FeatNorm


def feat_norm_file(folder: str | Path) -> Path:
    """Where a run keeps it."""
    return Path(folder) / "feat_norm.safetensors"


def pack_feat_norm(norm: FeatNorm) -> bytes:
    """The bytes of the file."""
    columns = {} if norm.mean is None or norm.factor is None else {"mean": norm.mean, "factor": norm.factor}
    return save(columns, {"steps": norm.name, "inductive": str(norm.inductive)})


def read_feat_norm(run: str, settings: dict[str, Any]) -> FeatNorm | None:
    """What was done to the features of a run with this config.toml; None: nothing.

    Raises: RunError where the file is missing or damaged.
    """
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
