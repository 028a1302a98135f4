"""FitResult: what `dg.fit` gives, read from the run folder that the ranks wrote; and how it is kept.

What a run's best weights give: of a partition folder of its graph, or of another graph with the same columns.
"""

import json
import shutil
import tempfile
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import raise_together
from distgnn.config import CutConfig, TrainConfig
from distgnn.config.task import LOWER_IS_BETTER, human_metric
from distgnn.config.together import TYPED_MODELS
from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError, RunError
from distgnn.fitting.cut_cache import give_up, hold
from distgnn.fitting.source import cut_alone, is_parts
from distgnn.fitting.user_model import adapt, arguments_of, copied, without_compile
from distgnn.graph.loader import load, say_on_stderr
from distgnn.graph.task_rows import rows_of_task
from distgnn.nn import distribute, model_for
from distgnn.partition import read_manifest
from distgnn.system.atomic import new_folder, read_text, sync_file
from distgnn.system.calls.launch import call_on_ranks
from distgnn.train.checkpoint.weights import load_best, read_feat_norm
from distgnn.train.export.plain_model import with_feat_norm
from distgnn.train.predict import ON_VERTICES, LastLayer, write_best
from distgnn.train.run.run_folder import (
    PREDICTIONS,
    best_weights,
    model_config,
    names_file,
    read_config,
    read_metrics,
    run_dtype,
    run_files,
    run_task,
)
from distgnn.train.users_model import run_model, sees_rows

WIDTHS = {
    "num_feats": "features",
    "num_edge_feats": "edge features",
    "num_relations": "edge types",
    "num_node_types": "vertex types",
}
LEFT_OUT = shutil.ignore_patterns(".lock", "epoch-*", "merged", "*.partial", ".*")


class History(list[dict[str, Any]]):
    """One record for each epoch: loss, seconds, and metrics where it was evaluated."""

    def to_pandas(self) -> Any:
        """The records as a pandas DataFrame, a row for each epoch. Raises: InputError where pandas is not there."""
        try:
            import pandas
        except ImportError:
            raise InputError("to_pandas needs the package pandas: pip install pandas") from None
        return pandas.DataFrame.from_records(list(self), index="epoch")


class FitResult:
    """A trained model, how it came about, and what it predicts.

    Args:
        run: the run folder; module: the user's own untrained module; library: whose plain models are liked, "pyg" or
            "dgl"; temporary: the folder is removed with this object.

    Example:
        >>> result = dg.FitResult("run")
        >>> result.best_epoch, len(result.losses), "test_accuracy" in result.summary
        (0, 1, True)
    """

    def __init__(self, run: str | Path, module: nn.Module | None = None, library: str = "pyg", temporary: bool = False):
        self.run: Path = Path(run)
        self._module, self._library = module, library
        self.of: FitResults | None = None  # the runs that it is one of
        self._config = read_config(str(run))
        try:
            self.summary: dict[str, Any] = json.loads(read_text(self.run / "summary.json"))
        except (OSError, ValueError) as error:
            raise RunError(f"{run} has no whole summary.json: the run did not finish ({error})") from error
        self.history: History = History(read_metrics(self.run / "metrics.jsonl"))
        if temporary:
            weakref.finalize(self, give_up, self.run, hold(self.run))

    def __repr__(self) -> str:
        found = [(split, self.summary.get(f"{split}_metric")) for split in ("valid", "test")]
        words = [f"epochs={len(self.history)}, loss={self.losses[-1]:.4g}"] if self.history else []
        name = self.summary["metric"]
        words += [f"{split} {name} {human_metric(name, value)}" for split, value in found if value is not None]
        return f"FitResult({', '.join(words)} at the best epoch, {self.best_epoch + 1})"

    @property
    def losses(self) -> list[float]:
        """Training loss of each epoch, over the whole graph."""
        return [record["loss"] for record in self.history]

    @property
    def best_epoch(self) -> int:
        """The epoch, from 0, of the best validation value; its weights are kept."""
        return int(self.summary["best_epoch"])

    @property
    def test_accuracy(self) -> float | None:
        """Share of test vertices whose class is right, with the best weights; None where that is no metric."""
        return self.summary.get("test_accuracy")

    @property
    def test_metric(self) -> float | None:
        """The metric that `summary["metric"]` names, of the test split, with the best weights."""
        return self.summary.get("test_metric")

    def predict(self, data: Any = None) -> torch.Tensor:
        """Scores of all vertices [N, C] in the order of the data; of tasks on pairs, of the test pairs.

        Args: data: another graph, as `fit` takes it, with columns as in the training; labels may be missing. It is
            computed in this process. None: the graph of the training.
        Raises: InputError where its columns are others, or the task is on pairs.
        """
        if data is not None:
            self._check_module()
            self._there()
            return rows_of_other(str(self.run), self._config, data, self._module)
        file = self._there() / PREDICTIONS
        if not file.is_file():
            raise RunError(f"{self.run} keeps no predictions: distgnn predict {self.run} PARTS --out FILE makes them")
        return torch.from_numpy(np.load(file, allow_pickle=False))

    def embeddings(self, data: Any = None) -> torch.Tensor:
        """What the last layer is given for each vertex, float32 [N, D], in the order of the data.

        Args: data: as of `predict`; None: the graph of the training, on as many ranks as its parts.
        Raises: RunError where its parts are gone (the cache was cleared); InputError for a model without layers inside.
        """
        run = str(self._there())
        self._check_module()
        if data is not None:
            return rows_of_other(run, self._config, data, self._module, True)
        parts = self._config.get("data", {}).get("parts", "")
        if not is_parts(parts):
            raise RunError(f"the parts of the training ({parts}) are gone: give the graph, embeddings(data)")
        with tempfile.TemporaryDirectory(prefix=".distgnn-predict-") as folder:
            file, count = str(Path(folder) / "rows.npy"), read_manifest(parts)["num_parts"]
            call_on_ranks(write_rows_of_run, (run, self._config, parts, self._module, file, True), count)
            return torch.from_numpy(np.load(file))

    @property
    def node_names(self) -> np.ndarray | None:
        """[N] what the vertex of each row of `predict` was called, where the data said it (`node_names`, renumber)."""
        file = names_file(self._there() / PREDICTIONS)
        return np.load(file, allow_pickle=False) if file.is_file() else None

    @property
    def model(self) -> nn.Module:
        """The trained module without ranks, in evaluation mode: the user's own, or one of PyG's or DGL's layers.

        Raises: RunError where neither library is there, or the task has no plain model.
        """
        run = str(self._there())
        if self._module is None:
            self._check_module()
            from distgnn.train.export.dgl import to_dgl
            from distgnn.train.export.pyg import to_pyg

            failed: list[Exception] = []
            for make in [to_pyg, to_dgl] if self._library == "pyg" else [to_dgl, to_pyg]:
                try:
                    return make(run)
                except (ImportError, InputError) as error:
                    failed.append(error)
            raise RunError(f"no library is here that has this model: {failed[0]}; {failed[1]}")
        model = copied(self._module)
        load_best(run, model)
        norm = read_feat_norm(run, self._config)
        if norm is None:
            return model.eval()
        place = arguments_of(model).index("feats")
        return with_feat_norm(model.eval(), norm, place, "x")

    def _there(self) -> Path:
        """The run folder. Raises: RunError where it was removed."""
        if not self.run.is_dir():
            raise RunError(f"{self.run} was removed, and with it weights and predictions: save() keeps them elsewhere")
        return self.run

    def _check_module(self) -> None:
        if self._module is None and "model" not in self._config:
            run = str(self.run)
            raise RunError(f"{run} was trained with a module of your own: dg.load_result({run!r}, model=Model(...))")

    def save(self, path: str | Path, overwrite: bool = False) -> Path:
        """Keep the run folder with its predictions at `path`; `load_result`, `distgnn predict` and `dg.to_pyg` read it.

        Raises: InputError where something is there, unless `overwrite` and it is a run folder.
        """
        with new_folder(path, run_files, overwrite) as folder:
            shutil.copytree(self._there(), folder, ignore=LEFT_OUT, dirs_exist_ok=True)
            for file in folder.rglob("*"):
                if file.is_file():
                    sync_file(file)
        return Path(path)


class FitResults(list[FitResult]):
    """The results of several seeds, or folds, over one cut, in their order.

    Args: as of `FitResult`.
    Attributes: summary: of the first, with means over all and deviations (`test_metric`, `test_metric_std`, …).
    """

    def __init__(self, run: str | Path, module: nn.Module | None = None, library: str = "pyg", temporary: bool = False):
        self.run, self.summary = Path(run), FitResult(run).summary
        super().__init__(FitResult(self.run / name, module, library) for name in self.names)
        for one in self:
            one.of = self  # it keeps the folder
        if temporary:
            weakref.finalize(self, give_up, self.run, hold(self.run))

    @property
    def names(self) -> list[str]:
        """What the runs are called: "seed-0", … or "fold-0", …"""
        if "folds" in self.summary:
            return [f"fold-{place}" for place in range(self.summary["folds"])]
        return [f"seed-{seed}" for seed in self.summary["seeds"]]

    @property
    def metrics(self) -> dict[str, dict[str, Any]]:
        """By run, the metrics with its best weights."""
        keep = ("best_epoch", "final_loss", "test_metric", "valid_metric")
        pairs = zip(self.names, self, strict=True)
        return {name: {key: one.summary[key] for key in keep if key in one.summary} for name, one in pairs}

    def __repr__(self) -> str:
        return f"FitResults({self})"

    def __str__(self) -> str:
        name, words = self.summary["metric"], []
        scale = 1 if name in LOWER_IS_BETTER else 100
        for split in ("test", "valid"):
            mean = self.summary.get(f"{split}_metric")
            if mean is not None:
                deviation = scale * self.summary[f"{split}_metric_std"]
                words.append(f"{split} {name} {human_metric(name, mean)} ± {deviation:.2f}")
        return f"{len(self)} {'folds' if 'folds' in self.summary else 'seeds'}: {', '.join(words)}"


def load_result(path: str | Path, model: nn.Module | None = None) -> Any:
    """A result that `FitResult.save` kept, or any run folder. Nothing in it is executed.

    Returns: FitResult; of several seeds or folds FitResults.

    Args: model: a module of the user's own class, which gets the weights; needed for `FitResult.model` only.

    Raises: RunError for a folder that is none, or weights of another model.

    Example:
        >>> dg.load_result("run").best_epoch
        0
    """
    model = without_compile(model)
    result = FitResult(path, model)
    if {"seeds", "folds"} & result.summary.keys():
        return FitResults(path, model)
    if model is not None:
        load_best(str(path), copied(model))
    if not best_weights(path).is_file():
        raise RunError(f"{path} has no weights: {best_weights(path)} is missing")
    return result


def best_rows(
    run: str, settings: dict[str, Any], parts: str, speak: bool, module: Any = None, embeddings: bool = False
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
            network = adapt(copied(module))
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
    with cut_alone(_with_classes(graph, there), cut) as folder:
        out = f"{folder}/rows.npy"
        write_rows_of_run(run, settings, f"{folder}/parts", module, out, embeddings)
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
