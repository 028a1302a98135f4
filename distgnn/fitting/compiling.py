"""The line, or the bar, that says that kernels are compiled. A rank that shows nothing needs no library for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


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


@contextmanager
def silent_progress() -> Iterator[Callable[..., None]]:
    """In the place of `progress.progress_bar` where nothing is shown."""
    with compiling(False):
        yield lambda *_: None
