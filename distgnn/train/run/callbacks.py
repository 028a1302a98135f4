"""Callbacks, whom the trainer tells what happens, and loggers, which are callbacks on rank 0.

Loggers: callbacks on rank 0 that report every epoch, to the console, a CSV file or TensorBoard.
"""

import csv
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TextIO

from distgnn.config.task import SPLITS, human_metric
from distgnn.errors import InputError
from distgnn.system.output import plain, progress_stream
from distgnn.system.units import human_seconds

EVENTS = ("on_train_start", "on_validation_end", "on_train_epoch_end", "on_train_end")


class Callback:
    """Base class of callbacks; any object with some of these methods is one.

    Notes:
        Names are Lightning's; in place of its module they get the epoch's record. Other names in "on_…" are refused:
        nothing would call them. The methods are called on every rank, in the same order, so they may be collective;
        look at `trainer.graph.rank` before printing or writing. With `state_dict()` and `load_state_dict(state)` a
        callback's state is part of checkpoints: numbers, text, tensors, lists and dicts. Rank 0's is written, every
        rank gets it.

    Example:
        >>> class Epochs(dg.Callback):
        ...     def on_validation_end(self, trainer, record):
        ...         print("evaluated after epoch", record["epoch"])
        >>> model = dg.nn.GraphSAGE(graph.num_feats, 8, graph.num_classes, num_layers=2)
        >>> result = dg.Trainer(model, graph, dg.TrainConfig(epochs=10, log=None), callbacks=[Epochs()]).fit()
        evaluated after epoch 4
        evaluated after epoch 9
    """

    def on_train_start(self, trainer: Any, record: dict[str, Any]) -> None:
        """Before the first epoch; `record` is the last epoch's where a run is resumed, else empty."""

    def on_validation_end(self, trainer: Any, record: dict[str, Any]) -> None:
        """After an evaluation, before `on_train_epoch_end`; `record` has the metrics."""

    def on_train_epoch_end(self, trainer: Any, record: dict[str, Any]) -> None:
        """After each epoch (one optimiser step) with its record: a line of metrics.jsonl."""

    def on_train_end(self, trainer: Any, record: dict[str, Any]) -> None:
        """At the end of `fit`, with the summary; the model has its best weights. Not after an error or a signal."""


class Callbacks:
    """Several callbacks, called in their order."""

    def __init__(self, callbacks: Iterable[Any] = ()):
        self._all = list(callbacks)
        for one in self._all:
            if isinstance(one, type) or not any(callable(getattr(one, event, None)) for event in EVENTS):
                raise InputError(f"callback {one!r} is no object with any of {', '.join(EVENTS)}{_instead(one)}")
            if unknown := _instead(one):
                raise InputError(f"callback {type(one).__name__} has a method that is never called{unknown}")
        self._with_state = [one for one in self._all if hasattr(one, "state_dict") and hasattr(one, "load_state_dict")]

    def call(self, event: str, trainer: Any, record: dict[str, Any]) -> None:
        for callback in self._all:
            if hasattr(callback, event):
                getattr(callback, event)(trainer, record)

    def close(self) -> None:
        """Close the files of those that have some; a second time is nothing."""
        for callback in self._all:
            if hasattr(callback, "close"):
                callback.close()

    @property
    def names(self) -> str:
        """Classes of those with a state."""
        return ", ".join(type(one).__name__ for one in self._with_state)

    def objects(self) -> dict[str, Any]:
        """States, as a checkpoint keeps them."""
        return {"callbacks": [one.state_dict() for one in self._with_state]} if self._with_state else {}

    def load_objects(self, state: dict[str, Any]) -> None:
        """Hand out what `objects` gave. Raises: KeyError or ValueError where it does not fit."""
        for one, saved in zip(self._with_state, state["callbacks"] if self._with_state else (), strict=True):
            one.load_state_dict(saved)


def _instead(callback: Any) -> str:
    """What to write in place of the first method of a callback that looks like an event and is none."""
    for name in dir(callback):
        if name.startswith("on_") and name not in EVENTS and callable(getattr(callback, name, None)):
            near = next(iter(get_close_matches(name, EVENTS, 1, 0.5)), None)
            return f": {name}" + (f" (did you mean {near}?)" if near else "")
    return ""


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
