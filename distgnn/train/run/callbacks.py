"""Callbacks: objects that the trainer tells what happens, under Lightning's names."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from distgnn.errors import InputError

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
