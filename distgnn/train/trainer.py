"""The training loop: one synchronous step per epoch over the whole graph, the same on every rank.

logits = model(graph, feats)     aggregation exchanges inside
rank_loss(...).backward()        the same exchanges, transposed
gradients summed over ranks, one optimiser step with equal weights everywhere
"""

import math
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import nn

from distgnn.comm import check_same, raise_together
from distgnn.config import TrainConfig, num_threads
from distgnn.errors import InputError, RunError, on_all_ranks
from distgnn.train.adam import Adam
from distgnn.train.gradients import GradientBuffer
from distgnn.train.loss import rank_loss, rows_of_loss
from distgnn.train.machine import peak_rss_bytes, versions
from distgnn.train.metrics import evaluate
from distgnn.train.run_folder import RunFolder
from distgnn.train.schedule import EarlyStopping, LearningRate
from distgnn.train.trace import Trace
from distgnn.train.weights import pack


@dataclass
class TrainResult:
    """What a run gave, the same on every rank.

    `records` are the lines of metrics.jsonl, `summary` is summary.json.
    """

    records: list[dict] = field(default_factory=list)
    summary: dict = field(default_factory=dict)

    @property
    def losses(self) -> list[float]:
        """Training loss of each epoch, over the whole graph."""
        return [record["loss"] for record in self.records]


class Trainer:
    """Trains a model on a DistGraph with Adam.

    Collective: the constructor, `fit`.

    Args:
        model: any torch module that takes (graph, feats) and gives logits [O, C] for owned rows. Parameters of
            rank 0 are copied to all ranks.
        graph: DistGraph with features, labels and training rows.
        config: how to train.
        on_epoch: called on rank 0 with the record of each epoch (a progress bar).
        describe: further sections for config.toml (model, data).

    Raises:
        InputError: on every rank, where the graph or the settings do not allow training.
    """

    def __init__(
        self,
        model: nn.Module,
        graph,
        config: TrainConfig | None = None,
        *,
        on_epoch: Callable[[dict], None] | None = None,
        describe: dict | None = None,
    ):
        self.model, self.graph, self.config = model.to(graph.dtype), graph, config or TrainConfig()
        with raise_together(graph.comm):
            self.config.check()
            _check_trainable(graph, self.config)
        check_same(graph.comm, self.config.as_dict(), "start every rank with the same settings")
        _warn_of_modules_per_rank(model, graph)
        self.metric = self.config.metric or ("rocauc" if graph.multilabel else "accuracy")
        self.on_epoch = on_epoch
        graph.seed = self.config.seed
        self.gradients = GradientBuffer(model, graph.comm, graph.transport.counters)
        self.trace = Trace(graph.transport.counters, graph.rank) if self.config.trace else None
        config = self.config
        self.optimizer = Adam(self.gradients.parameters, config.lr, config.weight_decay)
        self.learning_rate = LearningRate(config)
        self.stopping = EarlyStopping(config.patience)
        self._best_state: dict[str, torch.Tensor] = {}
        self.run_folder = self._open_run_folder(describe or {})

    def _open_run_folder(self, describe: dict) -> RunFolder | None:
        if self.config.run_dir is None:
            if self.config.trace:
                raise on_all_ranks(InputError("a trace is written into the run folder: give run_dir"))
            return None
        settings = {"train": self.config.as_dict() | {"metric": self.metric}} | describe
        folder = None
        with raise_together(self.graph.comm):
            if self.graph.rank == 0:
                folder = RunFolder(self.config.run_dir, settings, self.config.overwrite)
        return folder

    def fit(self) -> TrainResult:
        """Train. The model ends with the weights of the best validation epoch.

        Raises:
            RunError: on every rank, when the loss is not a number.
        """
        result = TrainResult()
        for epoch in range(self.config.epochs):
            record = self.train_epoch(epoch)
            if not math.isfinite(record["loss"]):
                raise on_all_ranks(_not_a_number(record))
            stop = False
            if epoch == self.config.epochs - 1 or (epoch + 1) % self.config.eval_every == 0:
                record |= self.evaluate()
                stop = self._keep_if_best(epoch, record)
            result.records.append(record)
            self._report(record)
            if stop:
                break
        self.graph.drain()
        self.model.load_state_dict(self._best_state)
        result.summary = self._summary(result.records)
        self._finish(result.summary)
        return result

    def evaluate(self) -> dict[str, float | None]:
        """Exact metrics of the model as it is now. Collective: yes."""
        return evaluate(self.graph, self.predict(), self.metric)

    def predict(self) -> torch.Tensor:
        """Logits of owned rows, [O, C], with the model as it is now, in evaluation mode. Collective: yes."""
        self.model.eval()
        with torch.no_grad():
            return self.model(self.graph, self.graph.feats)

    def train_epoch(self, epoch: int) -> dict:
        """One pass over the whole graph and one optimiser step; returns its record. Collective: yes."""
        graph = self.graph
        before, started = graph.transport.counters.copy(), time.perf_counter()
        graph.step = epoch
        graph.transport.start_step()
        self.model.train()
        self.gradients.zero()
        loss = rank_loss(graph, self.model(graph, graph.feats), rows_of_loss(self.model, graph))
        loss.backward()
        self.gradients.sum()
        self.optimizer.step()
        ended = time.perf_counter()
        if self.trace:
            self.trace.add_step(epoch, started, ended)
        spent = graph.transport.counters.since(before) | {"waits": graph.transport.waits}
        record = _over_ranks(graph.comm, epoch, {"loss": loss.item(), "seconds": ended - started} | spent)
        self.optimizer.lr = self.learning_rate.after(epoch, record["loss"])
        return record

    def _keep_if_best(self, epoch: int, record: dict) -> bool:
        """Keep weights that are the best so far; True when it is time to stop."""
        if self.stopping.is_best(epoch, record["valid_metric"]):
            self._best_state = {name: tensor.detach().clone() for name, tensor in self.model.state_dict().items()}
            with raise_together(self.graph.comm):
                if self.run_folder:
                    _writing(self.run_folder.path, lambda: self.run_folder.keep_best(pack(self._best_state)))
        return self.stopping.should_stop()

    def _report(self, record: dict) -> None:
        with raise_together(self.graph.comm):
            if self.run_folder:
                _writing(self.run_folder.path, lambda: self.run_folder.add_epoch(record))
        if self.on_epoch and self.graph.rank == 0:
            self.on_epoch(record)

    def _finish(self, summary: dict) -> None:
        with raise_together(self.graph.comm):
            if self.trace:
                _writing(self.config.run_dir, lambda: self.trace.write(Path(self.config.run_dir) / "trace"))
            if self.run_folder:
                _writing(self.run_folder.path, lambda: self.run_folder.finish(summary))

    def _summary(self, records: list[dict]) -> dict:
        best = records[self.stopping.best_epoch]
        timed = [record["seconds"] for record in records[1:]] or [records[0]["seconds"]]
        bytes_per_epoch = [record["sent_bytes"] for record in records[1:]] or [records[0]["sent_bytes"]]
        waits = [record["wait_seconds_mean"] for record in records[1:]] or [records[0]["wait_seconds_mean"]]
        chosen = {name: best.get(name) for name in ("test_metric", "valid_metric", "test_accuracy", "valid_accuracy")}
        return {
            "metric": self.metric,
            **{name: value for name, value in chosen.items() if not (name.endswith("accuracy") and value is None)},
            "best_epoch": best["epoch"],
            "epochs": len(records),
            "epoch_seconds_median": statistics.median(timed),
            "wait_share": sum(waits) / sum(timed),
            "sent_bytes_per_epoch": int(statistics.median(bytes_per_epoch)),
            "peak_rss_bytes": self.graph.comm.allgather(peak_rss_bytes()),
            "final_loss": records[-1]["loss"],
            "ranks": self.graph.num_ranks,
            "threads": num_threads(),
            "seed": self.config.seed,
            "versions": versions(),
        }


def _over_ranks(comm, epoch: int, mine: dict) -> dict:
    """One record from each rank's numbers: sums, maxima and means."""
    ranks = comm.allgather(mine)
    every = {name: [rank[name] for rank in ranks] for name in mine}
    return {
        "epoch": epoch,
        "loss": math.fsum(every["loss"]),
        "seconds": max(every["seconds"]),
        "aggregate_seconds": max(every["aggregate_seconds"]),
        "aggregate_seconds_mean": statistics.fmean(every["aggregate_seconds"]),
        "wait_seconds": max(every["wait_seconds"]),
        "wait_seconds_mean": statistics.fmean(every["wait_seconds"]),
        "wait_seconds_min": min(every["wait_seconds"]),
        "all_reduce_seconds": max(every["all_reduce_seconds"]),
        "sent_bytes": sum(every["sent_bytes"]),
        "exchange_waits": _waits_over_ranks(every["waits"]),
    }


def _waits_over_ranks(waits: list[dict[str, float]]) -> dict[str, list[float]]:
    """Seconds waited for each exchange of the step, [min, mean, max] over ranks; 0 where a rank did not wait."""
    names = dict.fromkeys(name for rank in waits for name in rank)
    every = {name: [rank.get(name, 0.0) for rank in waits] for name in names}
    return {name: [min(times), statistics.fmean(times), max(times)] for name, times in every.items()}


def _not_a_number(record: dict) -> RunError:
    return RunError(f"the loss is {record['loss']} in epoch {record['epoch']}: lower --lr, or check the features")


def _check_trainable(graph, config: TrainConfig) -> None:
    if graph.feats is None:
        raise InputError("the graph has no features: training needs at least one feature per vertex")
    if graph.labels is None:
        raise InputError("the graph has no labels: training needs labels")
    if graph.num_labelled("train") == 0:
        raise InputError("no training vertex has a label: give a train split with labelled vertices")
    if config.metric == "rocauc" and not graph.multilabel and graph.num_classes != 2:
        raise InputError(
            f"metric rocauc needs two classes or several tasks: this graph has {graph.num_classes} classes"
        )


def _warn_of_modules_per_rank(model: nn.Module, graph) -> None:
    kinds = (nn.modules.batchnorm._BatchNorm, nn.Dropout)
    names = [name for name, module in model.named_modules() if isinstance(module, kinds) and getattr(module, "p", 1)]
    if names and graph.num_ranks > 1 and graph.rank == 0:
        warnings.warn(
            f"{', '.join(names)}: torch's own module works per rank, so results depend on the number of ranks; "
            "call distgnn.nn.distribute(model, graph) first",
            stacklevel=3,
        )


def _writing(path, write: Callable[[], None]) -> None:
    """Run a write; a full or read-only disk is one line."""
    try:
        write()
    except OSError as error:
        raise RunError(f"cannot write to the run folder {path}: {error.strerror or error}") from error
