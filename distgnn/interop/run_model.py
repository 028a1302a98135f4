"""What a run folder says of its model: for `to_dgl` and `to_pyg`."""

from dataclasses import dataclass, fields

import torch

from distgnn.config import ModelConfig
from distgnn.errors import RunError
from distgnn.train.run.run_folder import model_config, read_config, run_dtype, run_task


@dataclass(frozen=True)
class GraphSizes:
    """What a model must know of a graph: widths, classes, and numbers of types (0 where there are none)."""

    num_feats: int
    num_classes: int
    num_edge_feats: int = 0
    num_relations: int = 0
    num_node_types: int = 0


def read_run(run: str) -> tuple[ModelConfig, GraphSizes, torch.dtype]:
    """The model of a run, the sizes of its graph, and the dtype of its weights.

    Raises: RunError for a folder that is no run, or was trained from a script.
    """
    settings = read_config(run)
    config = model_config(run, settings)
    task = run_task(settings)
    if task != "node":
        raise RunError(f"{run} is of task {task}: only models of task node become another library's")
    found = settings.get("data", {}).get("graph")
    if found is None:
        raise RunError(f"{run} does not say what graph it was trained on (no [data.graph] in config.toml): train again")
    known = {field.name for field in fields(GraphSizes)}
    sizes = GraphSizes(**{name: value for name, value in found.items() if name in known})
    weights = torch.float64 if run_dtype(run, settings) == "float64" else torch.float32  # also of bfloat16
    return config, sizes, weights
