"""Progress in phases on standard error, on a line that is rewritten on a terminal; and that kernels are compiled."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from distgnn.system.output import plain, progress_stream
from distgnn.system.units import human_count, human_seconds

LINE_SECONDS = 0.1  # between two states of the line


@contextmanager
def compiling(visible: bool) -> Iterator[None]:
    """Say while the block runs that kernels are compiled: on a line of standard error."""
    from distgnn.kernels.runtime.compile_line import compile_line

    with compile_line(visible=visible):
        yield


@contextmanager
def phases(visible: bool) -> Iterator[Callable[[str, int, int], None]]:
    """Progress in phases; yields `advance(phase, done, total)`: a line per finished phase, and before it on a terminal
    how far it is."""
    began: dict[str, float] = {}
    terminal = bool(os.environ.get("DISTGNN_TERMINAL")) or progress_stream().isatty()
    told = 0.0

    def advance(phase: str, done: int, total: int) -> None:
        nonlocal told
        now = time.perf_counter()
        seconds = now - began.setdefault(phase, now)
        if not visible or (done < total and (not terminal or now - told < LINE_SECONDS)):
            return
        told, line = now, f"{plain(phase)}: {human_seconds(seconds)}"
        if done < total:
            left = human_seconds(seconds / done * (total - done)) if done else "?"
            line = f"{plain(phase)}: {100 * done // total} %, {left} left"
        elif total >= 1000 and seconds > 0:
            line += f", {human_count(total / seconds)}/s"
        with suppress(OSError):  # a closed standard error ends nothing
            stream = progress_stream()
            stream.write(("\r\x1b[K" if terminal else "") + line + ("\n" if done == total else "\r"))
            stream.flush()

    with compiling(visible):
        yield advance
