"""What a run's best weights give: of a partition folder of its graph, or of another graph with the same columns."""

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import raise_together
from distgnn.config import CutConfig, TrainConfig
from distgnn.config.together import TYPED_MODELS
from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError
from distgnn.fitting.source import is_parts
from distgnn.fitting.user_model import adapt, copied
from distgnn.graph.loader import load, say_on_stderr
from distgnn.graph.task_rows import rows_of_task
from distgnn.nn import distribute, model_for
from distgnn.partition import partition_graph
from distgnn.train.checkpoint.weights import load_best, read_feat_norm
from distgnn.train.last_layer import LastLayer
from distgnn.train.predict import ON_VERTICES, write_best
from distgnn.train.run.run_folder import model_config, run_dtype, run_task
from distgnn.train.users_model import run_model, sees_rows

WIDTHS = {
    "num_feats": "features",
    "num_edge_feats": "edge features",
    "num_relations": "edge types",
    "num_node_types": "vertex types",
}


def best_rows(
    run: str,
    settings: dict[str, Any],
    parts: str,
    speak: bool,
    module: nn.Module | None = None,
    embeddings: bool = False,
) -> tuple[Any, nn.Module, torch.Tensor]:
    """This rank's graph (of types the rows of the task), the model with the run's best weights, and the rows it gives.

    Collective: yes.

    Args: module: a user's own; None: the run's settings name the model. embeddings: the rows that its last layer is
        given, in place; of pairs, the rows that a pair's score is made of.
    """
    config = None if module is not None else model_config(run, settings)
    options: dict[str, Any] = {"dtype": run_dtype(run, settings), "plain_tensors": config is not None}
    options["types"] = config is None or config.name in TYPED_MODELS
    options["sparse_feats"] = config is not None and config.takes_sparse_feats
    norm = read_feat_norm(run, settings) or "none"
    graph: Any = load(parts, **options, feat_norm=norm, say=say_on_stderr if speak else None)
    with raise_together(graph.comm):
        if config is not None:
            network = model_for(config, graph, run_task(settings))
        else:
            network = adapt(copied(module))  # type: ignore[arg-type]
            if not sees_rows(network, graph):
                distribute(network, graph)
        load_best(run, network.to(graph.plain.weight_dtype))
    network.eval()
    task = rows_of_task(graph, settings.get("train", {}).get("target"))
    watched = LastLayer(network) if embeddings and run_task(settings) in ON_VERTICES else None
    with torch.no_grad():
        made = run_model(network, graph)
        return task, network, made if watched is None else watched.rows(task)


def rows_of_other(
    run: str, settings: dict[str, Any], data: Any, module: nn.Module | None = None, embeddings: bool = False
) -> torch.Tensor:
    """Scores [N, C] of another graph, in its order, or embeddings [N, D]; in this process."""
    task, there = run_task(settings), settings.get("data", {}).get("graph")
    if task not in ON_VERTICES and not embeddings:
        raise InputError(f"predict(data) is for tasks {' and '.join(ON_VERTICES)}: this run is of task {task}")
    if there is None:
        raise InputError(f"{run} does not say what graph it was trained on: train again")
    if is_parts(data):
        raise InputError(
            f"{data} is a partition folder: give the graph, or use distgnn predict {run} {data} --out FILE"
        )
    graph = load_graph(data, findings=Findings())
    for name, kind in WIDTHS.items() if not there.get("types") else ():
        found = int(getattr(graph, {"num_relations": "num_edge_types"}.get(name, name)))
        if int(there.get(name, 0)) != found:
            raise InputError(f"this graph has {found} {kind}, and the one of the training {there.get(name, 0)}")
    if settings.get("model", {}).get("weighted") and graph.edge_weight is None:
        raise InputError("this graph has no edge weights, and the model was trained with them (weighted): give them")
    cut = CutConfig(direction=there["direction"], self_loops=there["self_loops"])
    cut = replace(cut, normalize_feats=there.get("normalize_feats", "none"))
    with tempfile.TemporaryDirectory(prefix=".distgnn-predict-") as folder:
        parts, out = str(Path(folder) / "parts"), str(Path(folder) / "rows.npy")
        partition_graph(_with_classes(graph, there), 1, parts, cut, say=lambda line: None)
        write_rows_of_run(run, settings, parts, module, out, embeddings)
        return torch.from_numpy(np.load(out))


def write_rows_of_run(
    run: str, settings: dict[str, Any], parts: str, module: nn.Module | None, out: str, embeddings: bool
) -> None:
    """Write what the run's best weights give for this rank's part. Collective: yes."""
    graph, network, rows = best_rows(run, settings, parts, False, module, embeddings)
    write_best(graph, network, rows, None if embeddings else TrainConfig(task=run_task(settings)), out)


def _with_classes(graph: GraphData, there: dict[str, Any]) -> GraphData:
    """The graph with as many classes as the run's, whatever labels it has; without labels all are unknown."""
    count, several = int(there["num_classes"]), bool(there["multilabel"])
    if not there["labels"] or graph.types:
        return graph
    if graph.labels is None:
        unknown = np.zeros((graph.num_nodes, count), np.int64) if several else np.full(graph.num_nodes, -1)
        return replace(graph, labels=unknown, num_label_classes=None if several else count)
    if graph.multilabel != several or graph.num_classes > count:
        kinds = {False: "one label", True: "several labels"}
        raise InputError(
            f"this graph has {graph.num_classes} classes, {kinds[graph.multilabel]} of each vertex, and the one of the "
            f"training {count}, {kinds[several]}: leave the labels out"
        )
    return graph if several else replace(graph, num_label_classes=count)
