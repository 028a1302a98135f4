"""Progress on standard error: a bar, or phases; lines where there is no terminal."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from distgnn.fitting.compiling import compiling
from distgnn.system.output import plain
from distgnn.system.units import human_count, human_seconds


def error_console() -> Console:
    """A console on standard error; under a launcher it knows the launcher's terminal."""
    size = os.environ.get("DISTGNN_TERMINAL")
    if not size:
        return Console(file=sys.stderr)
    columns, lines = (int(number) for number in size.split("x"))
    return Console(file=sys.stderr, force_terminal=True, width=columns, height=lines)


@contextmanager
def progress_bar(title: str, total: int, visible: bool) -> Iterator[Any]:
    """A progress bar; yields `advance(text, done=None)`: `done` sets it, without it goes one on.

    Without a terminal a line is printed now and then instead.
    """
    console = error_console()
    if not visible or not console.is_terminal:
        count = 0

        def say(text: str, done: int | None = None) -> None:
            nonlocal count
            count = done = count + 1 if done is None else done
            if visible and (done == total or done % max(1, total // 10) == 0):  # about ten lines over the whole work
                console.print(as_text(f"{title} {done}/{total}  {text}"), soft_wrap=True)

        with compiling(visible):
            yield say
        return
    columns = _text_column("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress(*columns, _text_column("{task.fields[text]}"), console=console) as bars:
        task = bars.add_task(plain(title), total=total, text="")

        def advance(text: str, done: int | None = None) -> None:
            bars.update(task, text=text, advance=1 if done is None else None, completed=done)

        with compiling(True, bars):
            yield advance


@contextmanager
def phases(visible: bool) -> Iterator[Any]:
    """Progress in phases; yields `advance(phase, done, total)`. Without a terminal: a line per finished phase."""
    console = error_console()
    if not visible or not console.is_terminal:
        began: dict[str, float] = {}

        def say(phase: str, done: int, total: int) -> None:
            now = time.perf_counter()
            seconds = now - began.setdefault(phase, now)
            if visible and done == total:
                rate = f", {human_count(total / seconds)}/s" if total >= 1000 and seconds > 0 else ""
                console.print(as_text(f"{phase}: {human_seconds(seconds)}{rate}"))

        with compiling(visible):
            yield say
        return
    times = TimeElapsedColumn(), TimeRemainingColumn(), _RateColumn()
    with Progress(_text_column("{task.description:10}"), BarColumn(), *times, console=console) as bars:
        tasks = {}

        def advance(phase: str, done: int, total: int) -> None:
            if phase not in tasks:
                tasks[phase] = bars.add_task(phase)
            bars.update(tasks[phase], completed=done, total=total)

        with compiling(True, bars):
            yield advance


class _RateColumn(ProgressColumn):
    """Steps a second: rows, vertices or parts, whatever the phase counts."""

    def render(self, task: Any) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if not speed or task.total < 1000 else f"{human_count(speed)}/s")


def as_text(words: str) -> Text:
    """Text as it is: names of graphs and folders are neither rich's markup nor terminal control."""
    return Text(plain(words))


def _text_column(template: str) -> TextColumn:
    return TextColumn(template, markup=False)
