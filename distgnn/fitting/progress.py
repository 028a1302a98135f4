"""Progress in phases on standard error, lines where there is no terminal; and that kernels are compiled.

A rank that shows nothing does not load rich.
"""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from distgnn.system.output import plain
from distgnn.system.units import human_count, human_seconds


@contextmanager
def compiling(visible: bool, bars: Any = None) -> Iterator[None]:
    """Say while the block runs that kernels are compiled: on a line among the bars, or on one of standard error."""
    from distgnn.kernels.runtime.compile_line import TITLE, compile_line

    lines: list[Any] = []

    def show(compiled: int, ended: bool) -> None:
        if not lines:
            lines.append(bars.add_task("", total=None, text=""))
        done = {"total": compiled, "completed": compiled} if ended else {}
        bars.update(lines[0], description=f"{TITLE} {compiled}", **done)

    with compile_line(None if bars is None else show, visible=visible):
        yield


def error_console() -> Any:
    """A console on standard error; under a launcher it knows the launcher's terminal."""
    from rich.console import Console

    size = os.environ.get("DISTGNN_TERMINAL")
    if not size:
        return Console(file=sys.stderr)
    columns, lines = (int(number) for number in size.split("x"))
    return Console(file=sys.stderr, force_terminal=True, width=columns, height=lines)


@contextmanager
def phases(visible: bool) -> Iterator[Any]:
    """Progress in phases; yields `advance(phase, done, total)`. Without a terminal: a line per finished phase."""
    console = error_console() if visible else None
    if console is None or not console.is_terminal:
        began: dict[str, float] = {}

        def say(phase: str, done: int, total: int) -> None:
            now = time.perf_counter()
            seconds = now - began.setdefault(phase, now)
            if console is not None and done == total:
                rate = f", {human_count(total / seconds)}/s" if total >= 1000 and seconds > 0 else ""
                console.print(as_text(f"{phase}: {human_seconds(seconds)}{rate}"))

        with compiling(visible):
            yield say
        return
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    class RateColumn(ProgressColumn):
        """Steps a second: rows, vertices or parts, whatever the phase counts."""

        def render(self, task: Any) -> Any:
            speed = task.finished_speed or task.speed
            return as_text("" if not speed or task.total < 1000 else f"{human_count(speed)}/s")

    names = TextColumn("{task.description:10}", markup=False)
    with Progress(
        names, BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(), RateColumn(), console=console
    ) as bars:
        tasks = {}

        def advance(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase)
            bars.update(tasks[phase], completed=done, total=total)

        with compiling(True, bars):
            yield advance


def as_text(words: str) -> Any:
    """Text as it is: names of graphs and folders are neither rich's markup nor terminal control."""
    from rich.text import Text

    return Text(plain(words))
