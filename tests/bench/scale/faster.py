"""Recordings of one thread as those of a socket, all computation so many times as fast: assumed, not measured."""

from collections.abc import Iterable
from dataclasses import replace

from distgnn.replay.recording import Recording


def faster(recordings: Iterable[Recording], speed: float) -> list[Recording]:
    """The same messages, with computation divided by `speed`."""
    return [
        replace(one, epochs=[[_event(event, speed) for event in events] for events in one.epochs]) for one in recordings
    ]


def _event(event: tuple, speed: float) -> tuple:
    return (*event[:2], event[2] / speed) if event[0] == "compute" else event
