"""The training loop, its losses, metrics and run folder.

Names are imported when they are first used: reading a run folder needs no torch.
"""

import importlib
from typing import Any

_PLACES = {
    "Callback": "distgnn.train.run.callbacks",
    "TrainResult": "distgnn.train.run.outputs",
    "Trainer": "distgnn.train.trainer",
    "load_best": "distgnn.train.checkpoint.weights",
}

__all__ = ["Callback", "TrainResult", "Trainer", "load_best"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
