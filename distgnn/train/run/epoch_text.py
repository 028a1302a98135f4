"""What the console says of an epoch, from `distgnn train` and from a script alike."""

from typing import Any

from distgnn.system.units import human_metric, human_seconds


class EpochText:
    """Words about each epoch; a validation value that is older than the epoch says from which it is.

    Args: best_by: name in the records of what picks the best epoch; metric: what `valid_metric` is.
    """

    def __init__(self, best_by: str = "valid_metric", metric: str = "accuracy"):
        self._best_by, self._metric, self._value, self._evaluated = best_by, metric, "", 0

    def of(self, record: dict[str, Any]) -> str:
        """Words about this record; it is to be given every one. Epochs count from 1."""
        value, done = record.get(self._best_by), record["epoch"] + 1
        if value is not None:
            own = self._best_by != "valid_metric"
            self._value = f"{self._best_by} {value:.4f}" if own else f"valid {human_metric(self._metric, value)}"
            self._evaluated = done
        text = f"loss {record['loss']:.4f}  {human_seconds(record['seconds'])}/epoch"
        if not self._value:
            return text
        return f"{text}  {self._value}" + (f" (epoch {self._evaluated})" if self._evaluated < done else "")
