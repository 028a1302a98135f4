"""What never changes is aggregated once: results for constant rows, looked up by tensor identity and version.

Input features are the same in every epoch, so the first aggregation of a model is computed and exchanged once.
A tensor that needs no gradient is remembered weakly when it is first aggregated and its result is kept from the
second time on; the graph's own features are kept from the first time. Rows that are made anew (input dropout,
hidden layers in evaluation) are never met twice and cost one weak reference.

All ranks decide together (one integer): identity is a local matter, and a rank that alone skipped an exchange
would leave the others waiting.
"""

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from distgnn.ops.function import constants, is_same, version_of
from distgnn.ops.sums import min_over_ranks

UNKNOWN, MET_BEFORE, KEPT = 0, 1, 2


@dataclass(frozen=True)
class _Key:
    """A tensor in one state: dead once the tensor is gone, different once it is written to.

    One that was made in inference mode has no state that could be known: it is never the one that was met.
    """

    tensor: weakref.ref | None  # None: no tensor
    version: int | None

    @classmethod
    def of(cls, tensor: torch.Tensor | None) -> "_Key":
        return cls(None if tensor is None else weakref.ref(tensor), version_of(tensor))

    def is_now(self, tensor: torch.Tensor | None) -> bool:
        if tensor is None or self.tensor is None:
            return tensor is None and self.tensor is None
        seen: Any = self.tensor()
        return seen is tensor and self.version is not None and self.version == version_of(tensor)

    @property
    def is_dead(self) -> bool:
        return self.tensor is not None and self.tensor() is None


@dataclass
class _Entry:
    rows: _Key
    edge_weight: _Key
    scales: tuple
    result: torch.Tensor
    result_version: int | None


class ConstantRows:
    """Results of aggregating constant rows.

    Collective: `get` (every rank calls it at the same point of its program).

    Args:
        comm: communicator of the graph.
        enabled: False keeps nothing (`cache_first=False`, the paper's form).
    """

    def __init__(self, comm: Any, enabled: bool = True):
        self.comm = comm
        self.enabled = enabled
        self._expected: list[_Key] = []
        self._met: list[_Key] = []
        self._entries: list[_Entry] = []

    def expect(self, rows: torch.Tensor) -> None:
        """Tell that `rows` will be aggregated again and again: keep from the first time."""
        self._expected.append(_Key.of(rows))

    def is_expected(self, rows: torch.Tensor) -> bool:
        """Were these rows announced with `expect` (on every rank)? Collective: yes."""
        here = self.enabled and any(key.is_now(rows) for key in self._expected)
        return bool(min_over_ranks(self.comm, int(here)))

    def get(
        self,
        rows: torch.Tensor,
        edge_weight: torch.Tensor | None,
        scales: tuple[Any, ...],
        compute: Callable[[bool], torch.Tensor],
        loops: object = None,
    ) -> torch.Tensor:
        """The kept result for these rows, or what `compute(will it be kept)` gives."""
        if not self.enabled or rows.requires_grad:  # a fused optimiser writes to weights without a new version
            return compute(False)
        self._met = [key for key in self._met if not key.is_dead]
        self._entries = [entry for entry in self._entries if not entry.rows.is_dead]
        scales = *scales, loops
        entry = self._find(rows, edge_weight, scales)
        met = any(key.is_now(rows) for key in self._expected + self._met)
        state = min_over_ranks(self.comm, KEPT if entry else MET_BEFORE if met else UNKNOWN)
        if state == KEPT and entry:
            return entry.result
        if state == MET_BEFORE:
            with constants():
                result = compute(True)
            if entry:  # not on every rank
                self._entries.remove(entry)
            keys = _Key.of(rows), _Key.of(edge_weight)
            self._entries.append(_Entry(*keys, scales, result, version_of(result)))
            return result
        result = compute(False)
        if not met:
            self._met.append(_Key.of(rows))
        return result

    def holds(self, result: torch.Tensor) -> bool:
        """Is this memory of a kept result? This rank's answer."""
        return any(entry.result.data_ptr() == result.data_ptr() for entry in self._entries)

    def _find(self, rows: torch.Tensor, edge_weight: torch.Tensor | None, scales: tuple) -> _Entry | None:
        for entry in self._entries:
            untouched = is_same(entry.result, entry.result_version)
            if untouched and entry.scales == scales and entry.rows.is_now(rows):
                if entry.edge_weight.is_now(edge_weight):
                    return entry
        return None
