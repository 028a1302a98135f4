"""Where a run's numbers go: records of epochs, the run folder, loggers on rank 0, and callbacks on every rank.

Records: one line of numbers per epoch over all ranks, and the summary of a run.
"""

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from distgnn.comm import raise_together
from distgnn.errors import InputError, RunError, on_all_ranks
from distgnn.system.atomic import replace_file
from distgnn.system.output import say
from distgnn.system.units import peak_rss_bytes
from distgnn.train.checkpoint.weights import feat_norm_file, pack_feat_norm
from distgnn.train.metrics import OF_TASKS
from distgnn.train.run.callbacks import Callbacks, make_loggers
from distgnn.train.run.machine import versions
from distgnn.train.run.run_folder import RunFolder, writing

CHOSEN = ("test_metric", "valid_metric", "test_accuracy", "valid_accuracy")


@dataclass(repr=False)
class TrainResult:
    """What a run gave, the same on every rank.

    `records` are the lines of metrics.jsonl, `summary` is summary.json.

    Example:
        >>> model = dg.nn.GraphSAGE(graph.num_feats, 8, graph.num_classes, num_layers=2)
        >>> result = dg.Trainer(model, graph, dg.TrainConfig(epochs=6, log=None)).fit()
        >>> len(result.losses), result.summary["metric"]
        (6, 'accuracy')
        >>> [record["epoch"] for record in result.records if "valid_metric" in record]
        [4, 5]
    """

    records: list[dict[str, Any]] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        words = [f"epochs={len(self.records)}"] + ([f"loss={self.losses[-1]:.4g}"] if self.records else [])
        found = {name: self.summary.get(f"{name}_metric") for name in ("valid", "test")}
        words += [f"{name} {self.summary['metric']}={value:.4f}" for name, value in found.items() if value is not None]
        return f"TrainResult({', '.join(words)})"

    @property
    def losses(self) -> list[float]:
        """Training loss of each epoch, over the whole graph."""
        return [record["loss"] for record in self.records]


def over_ranks(comm: Any, epoch: int, mine: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """One record from each rank's numbers (sums, maxima and means), and a received signal (or 0). Collective: yes."""
    ranks = comm.allgather(mine)
    every = {name: [rank[name] for rank in ranks] for name in mine}
    # Seconds waited for each exchange of the step; 0 where a rank did not wait
    names = dict.fromkeys(name for waits in every["waits"] for name in waits)
    waited = {name: [waits.get(name, 0.0) for waits in every["waits"]] for name in names}
    record = {
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
        "exchange_waits": {name: [min(t), statistics.fmean(t), max(t)] for name, t in waited.items()},
    }
    return record, max(every["signal"])


def summarize(trainer: Any, records: list[dict[str, Any]]) -> dict[str, Any]:
    """What summary.json says of a run. Collective: yes."""
    comm, best = trainer.graph.comm, trainer.best_record
    timed = records[1:] or records
    # The first epoch also sends what is kept from then on
    sent = trainer.sent_to[1:] or trainer.sent_to or [np.zeros(comm.size)]
    verified: dict[str, Any] = next((record for record in reversed(records) if "gradient_error" in record), {})
    summary = {
        "metric": trainer.metric,
        **{name: best.get(name) for name in CHOSEN if not (name.endswith("accuracy") and best.get(name) is None)},
        "best_epoch": best["epoch"],
        "epochs": records[-1]["epoch"] + 1,
        "epoch_seconds_median": statistics.median(record["seconds"] for record in timed),
        "wait_share": sum(r["wait_seconds_mean"] for r in timed) / sum(r["seconds"] for r in timed),
        "sent_bytes_per_epoch": int(statistics.median(record["sent_bytes"] for record in timed)),
        "pair_bytes_per_epoch": comm.allgather([int(value) for value in np.median(sent, axis=0)]),
        "peak_rss_bytes": comm.allgather(peak_rss_bytes()),
        "final_loss": records[-1]["loss"],
        **{name: verified[name] for name in ("logits_error", "gradient_error") if name in verified},
        "ranks": comm.size,
        "threads": torch.get_num_threads(),
        "seed": trainer.config.seed,
        "versions": versions(),
        **{name: best.get(name) for name in trainer.own_metrics},
        **{name: best[name] for name in OF_TASKS if name in best},
    }
    return summary | ({"memory": trainer.whole.memory_report().as_dict()} if trainer.config.memory_report else {})


class Outputs:
    """The outputs of a trainer. What cannot be written is an error of all ranks.

    Collective: all methods and the constructor. Args: settings: sections of config.toml beside [train].
    """

    def __init__(self, trainer: Any, callbacks: Callbacks, settings: dict[str, Any]):
        self._trainer, self._comm, config = trainer, trainer.graph.comm, trainer.config
        self._callbacks, self._loggers = callbacks, Callbacks()
        self.folder: RunFolder | None = None
        if config.run_dir is None:
            files = [name for name in config.loggers if name != "console"] + ["a trace"] * config.trace
            if files:
                raise on_all_ranks(InputError(f"{files[0]} is written into the run folder: give run_dir"))
            return
        train = config.as_dict() | {"metric": config.metric or trainer.metric}
        train.pop("resume", None)
        with raise_together(self._comm):
            if trainer.graph.rank == 0:
                sections = {"train": {}} | settings | {"train": train}  # it comes first
                self.folder = RunFolder(config.run_dir, sections, config.overwrite, config.resume)

    def write(self, work: Callable[[RunFolder], object]) -> None:
        with raise_together(self._comm):
            if self.folder is not None:
                with writing(self.folder.path):
                    work(self.folder)

    def start(self, record: dict[str, Any]) -> None:
        """Before the first epoch; `record` is the last one of a resumed run."""
        norm = self._trainer.graph.feat_norm
        if norm is not None:
            self.write(lambda folder: replace_file(feat_norm_file(folder.path), pack_feat_norm(norm)))
        self._loggers = make_loggers(self._trainer)
        self._log("on_train_start", record)
        self._callbacks.call("on_train_start", self._trainer, record)

    def add_epoch(self, record: dict[str, Any]) -> None:
        with raise_together(self._comm), writing(self._trainer.config.run_dir):
            if self.folder is not None:
                self.folder.add_epoch(record)
            self._loggers.call("on_train_epoch_end", self._trainer, record)
        if self._trainer.on_epoch and self._trainer.graph.rank == 0:
            self._trainer.on_epoch(record)
        self._callbacks.call("on_train_epoch_end", self._trainer, record)

    def finish(self, summary: dict[str, Any]) -> None:
        """Write what comes last: the summary, then the trace, without which a run is whole."""
        self._log("on_train_end", summary)
        self._loggers.close()
        self.write(lambda folder: folder.finish(summary))
        if self._trainer.trace and self._trainer.config.run_dir is not None:
            events = self._trainer.trace.gather(self._comm)
            if self.folder is not None:
                try:
                    with writing(self.folder.path):
                        (self.folder.path / "trace").mkdir(exist_ok=True)
                        replace_file(self.folder.path / "trace" / "trace.json", events)
                except RunError as error:
                    say(f"{error}: the run is whole but for its trace")
        self._callbacks.call("on_train_end", self._trainer, summary)

    def close(self) -> None:
        """After an error: nothing more will be written. Not collective."""
        self._loggers.close()
        if self.folder:
            self.folder.close()

    def _log(self, event: str, record: dict[str, Any]) -> None:
        with raise_together(self._comm), writing(self._trainer.config.run_dir):
            self._loggers.call(event, self._trainer, record)
