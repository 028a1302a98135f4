"""Records: one line of numbers per epoch over all ranks, and the summary of a run."""

import math
import statistics
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from distgnn.system.sizes import peak_rss_bytes
from distgnn.train.metrics import OF_TASKS
from distgnn.train.run.machine import versions

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
