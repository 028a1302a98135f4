"""Loggers: callbacks on rank 0 that report every epoch, to the console, a CSV file or TensorBoard."""

import csv
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from distgnn.config.task import SPLITS, human_metric
from distgnn.system.output import plain, progress_stream
from distgnn.system.units import human_seconds
from distgnn.train.run.callbacks import Callback, Callbacks

LINE_SECONDS = 10.0  # without a terminal a line at least so often, and ten over all epochs
BAR_SECONDS = 0.1
BAR_WIDTH = 24
COLUMNS = ("epoch", "loss", "seconds", "wait_seconds", "sent_bytes")


def make_loggers(trainer: Any) -> Callbacks:
    """The loggers that the settings name, on rank 0, where they write; `on_epoch` takes the place of the console."""
    if trainer.graph.rank > 0:
        return Callbacks()
    folder = Path(trainer.config.run_dir or "")
    makers: dict[str, Callable[[], Callback]] = {
        "console": ConsoleLogger,
        "csv": lambda: CsvLogger(folder / "metrics.csv"),
        "tensorboard": lambda: TensorBoardLogger(folder / "tensorboard"),
    }
    names = dict.fromkeys(trainer.config.loggers)
    return Callbacks(makers[name]() for name in names if name != "console" or trainer.on_epoch is None)


class ConsoleLogger(Callback):
    """A bar on a terminal, else a line now and then, on standard error. Of several seeds or folds it has their name.

    A validation value that is older than the epoch says from which it is. Epochs count from 1.
    """

    def __init__(self) -> None:
        self._bar = bool(os.environ.get("DISTGNN_TERMINAL")) or progress_stream().isatty()

    def on_train_start(self, trainer: Any, record: dict[str, Any]) -> None:
        self._began = self._told = time.monotonic()
        self._done_before, self._value, self._evaluated = len(trainer.records), "", 0
        name = Path(trainer.config.run_dir or "").name
        self._title = f"{name}, epoch" if name.startswith(("seed-", "fold-")) else "epoch"

    def text_of(self, trainer: Any, record: dict[str, Any]) -> str:
        """Words about this record; it is to be given every one."""
        value, done, own = record.get(trainer.best_by), record["epoch"] + 1, trainer.best_by != "valid_metric"
        if value is not None:
            self._value = f"{trainer.best_by} {value:.4f}" if own else f"valid {human_metric(trainer.metric, value)}"
            self._evaluated = done
        text = f"loss {record['loss']:.4f}  {human_seconds(record['seconds'])}/epoch"
        since = f" (epoch {self._evaluated})" if self._evaluated < done else ""
        return f"{text}  {self._value}{since}" if self._value else text

    def on_train_epoch_end(self, trainer: Any, record: dict[str, Any]) -> None:
        done, total, now = record["epoch"] + 1, trainer.config.epochs, time.monotonic()
        text, since = self.text_of(trainer, record), now - self._told
        seldom = done % max(1, total // 10) == 0 or since >= LINE_SECONDS
        if not (done == total or (since >= BAR_SECONDS if self._bar else seldom)):
            return
        self._told = now
        left = (now - self._began) / max(done - self._done_before, 1) * (total - done)
        if left >= 1:
            text += f"  {left:.0f} s left" if left < 100 else f"  {left / 60:.0f} min left"
        title = plain(f"{self._title} {done}/{total}")
        if self._bar:  # the cursor goes back to the left: other lines then replace the bar
            filled = BAR_WIDTH * done // total
            self._write(f"\r\x1b[K{title} [{'=' * filled}{' ' * (BAR_WIDTH - filled)}] {plain(text)}\r")
        else:
            self._write(f"{title}  {plain(text)}\n")

    def on_train_end(self, trainer: Any, record: dict[str, Any]) -> None:
        if self._bar:
            self._write("\n")

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a closed standard error does not end a run
            progress_stream().write(text)
            progress_stream().flush()


class CsvLogger(Callback):
    """`metrics.csv`: a line per epoch; metrics are empty where nothing was evaluated. A resumed run goes on in it."""

    def __init__(self, path: Path):
        self.path = path
        self._file: TextIO | None = None

    def on_train_start(self, trainer: Any, record: dict[str, Any]) -> None:
        classes = trainer.config.task in ("node", "edge") and not trainer.graph.multilabel
        kinds = ("metric", "accuracy") if classes else ("metric",)
        columns = [*COLUMNS, *(f"{split}_{kind}" for kind in kinds for split in SPLITS), *trainer.own_metrics]
        columns += ["grad_norm"] if trainer.config.clip_grad else []
        columns += ["logits_error", "gradient_error"] if trainer.config.verify_every else []
        self._file = open(self.path, "w", encoding="utf-8", newline="")
        self._writer = csv.DictWriter(self._file, columns, restval="", extrasaction="ignore")
        self._writer.writeheader()
        self._writer.writerows(trainer.records)
        self._file.flush()

    def on_train_epoch_end(self, trainer: Any, record: dict[str, Any]) -> None:
        if self._file is not None:
            self._writer.writerow(record)
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class TensorBoardLogger(Callback):
    """Event files in `tensorboard/`: each number of an epoch's record as a scalar."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._writer: Any = None

    def on_train_start(self, trainer: Any, record: dict[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(self.folder), purge_step=len(trainer.records) or None)

    def on_train_epoch_end(self, trainer: Any, record: dict[str, Any]) -> None:
        for name, value in record.items():
            if name != "epoch" and isinstance(value, int | float):
                self._writer.add_scalar(name, value, record["epoch"])
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
