"""Turns the calls of a stand-in communicator and the timed blocks of a step into the events of a recording."""

from typing import Any

import numpy as np

from distgnn.replay.recording import Event
from distgnn.replay.stand_in import Log
from distgnn.train.run.trace import Trace

NAMED = ("aggregate", "pack")


class Recorder(Trace):
    """Stands where the trainer keeps its trace: it hears of timed blocks, and of every step when it ends.

    Args: transport: of the graph; its exchanges are numbered from the start of a step; log: of the stand-in.
    """

    def __init__(self, transport: Any, log: Log):
        super().__init__(transport.counters, transport.rank)
        self._transport, self._log = transport, log
        self.epochs: list[list[Event]] = []
        self.sent_to: list[list[int]] = []
        self._starts: list[int] = []  # of each epoch: what had been started before
        self.begin()

    def begin(self) -> None:
        """The next step begins: forget what came before it."""
        self._log.calls.clear()
        self._blocks.clear()
        self._first_call, self._first_started = self._transport.num_calls, self._log.num_started

    def add_step(self, epoch: int, started: float, ended: float) -> None:
        """One training step is over: keep its events."""
        if self._log.on:
            self._starts.append(self._first_started)
            events: list[Event] = []
            blocks = sorted(block for block in self._blocks if block[0] in NAMED)
            blocks.sort(key=lambda block: block[1])
            free = started
            for kind, details, entered, left in self._log.calls:
                if entered < started or left > ended:
                    continue
                if kind in ("send", "receive"):
                    details = (details[0] - self._first_call, *details[1:])  # tag, rank, bytes
                elif kind == "wait":
                    details = ([self._age(number) for number in details],)
                events += [*_compute(blocks, free, entered), (kind, *details)]
                free = left
            self.epochs.append(events + _compute(blocks, free, ended))
            self.sent_to.append([int(count) for count in self._transport.sent_to])

    def _age(self, number: int) -> list[int]:
        """How many epochs ago a thing was started, and its place there; -1 where that was not recorded."""
        place = int(np.searchsorted(self._starts, number, side="right")) - 1
        if place < 0:
            return [-1, 0]
        return [len(self._starts) - 1 - place, number - self._starts[place]]


def _compute(blocks: list[tuple[str, float, float]], first: float, last: float) -> list[Event]:
    """What was computed between two times, by name."""
    events: list[Event] = []
    while blocks and blocks[0][2] <= first:
        blocks.pop(0)
    free = first
    for name, start, end in blocks:
        if start >= last:
            break
        if start > free:
            events.append(("compute", "dense", start - free))
        events.append(("compute", name, min(end, last) - max(start, free)))
        free = min(end, last)
    if last > free:
        events.append(("compute", "dense", last - free))
    return events
