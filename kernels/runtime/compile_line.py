"""One line on standard error while kernels are compiled: "compiling kernels (once per machine) 12".

Nothing is said where all kernels come from the cache, or where little has to be compiled. How many kernels a run needs
is not known before it has called them: there is no total.
"""

import contextlib
import os
from collections.abc import Callable, Iterator

from distgnn.kernels.runtime import jit
from distgnn.system.output import progress_stream

TITLE = "compiling kernels (once per machine)"
PATIENCE = 0.5  # seconds of compiling that are not worth a line

Show = Callable[[int, bool], None]  # show(number of kernels compiled so far, whether this was the last)


@contextlib.contextmanager
def compile_line(show: Show | None = None, *, visible: bool = True) -> Iterator[None]:
    """Show what is compiled while the block runs.

    Args:
        show: called under numba's compiler lock, first when compiling has taken half a second and once more at the end
            of the block; it must call no kernel. Default: a line on standard error, unless an outer block shows it.
        visible: False: nothing is shown in the block, nor by blocks inside without a `show`.
    """
    if show is None and visible and any(not isinstance(block.show, _OneLine) for block in _blocks):
        yield  # the outer block shows it
        return
    block = _begin(show or _StderrLine(), visible)
    try:
        yield
    finally:
        _blocks.remove(block)
        block.end()


def compile_line_from_now_on(*, visible: bool) -> None:
    """Show compiling outside all blocks too, such as in a training loop of the user's: one line, once."""
    if not _blocks:
        _begin(_OneLine(), visible)
    elif isinstance(_blocks[0].show, _OneLine):
        _blocks[0].visible = visible


def _begin(show: Show, visible: bool) -> "_Block":
    if _tell not in jit.listeners:
        jit.listeners.append(_tell)
    _blocks.append(_Block(show, visible))
    return _blocks[-1]


class _Block:
    """What has been compiled since the block began."""

    def __init__(self, show: Show, visible: bool):
        self.show, self.visible = show, visible
        self.before, self.seconds, self.shown = jit.compilation().compiled, 0.0, False

    def tell(self, seconds: float) -> None:
        self.seconds += seconds
        if self.visible and self.seconds > PATIENCE:
            self.shown = True
            self.show(jit.compilation().compiled - self.before, False)

    def end(self) -> None:
        if self.shown:
            self.show(jit.compilation().compiled - self.before, True)


class _StderrLine:
    """Rewritten in place on a terminal; elsewhere one line at the start and one at the end."""

    def __init__(self) -> None:
        self.started = False

    def __call__(self, compiled: int, ended: bool) -> None:
        terminal = progress_stream().isatty() or bool(os.environ.get("DISTGNN_TERMINAL"))  # behind mpiexec's pipe
        text = ("\r" if terminal else "") + f"distgnn: {TITLE} {compiled}"
        if ended:
            print(f"{text}, done", file=progress_stream(), flush=True)
        elif terminal or not self.started:
            print(text, end="" if terminal else " …\n", file=progress_stream(), flush=True)
        self.started = True


class _OneLine:
    """Where nobody knows which kernel is the last: printed once."""

    def __init__(self) -> None:
        self.started = False

    def __call__(self, compiled: int, ended: bool) -> None:
        if not self.started:
            print(f"distgnn: {TITLE} …", file=progress_stream(), flush=True)
        self.started = True


def _tell(seconds: float) -> None:
    if _blocks:
        _blocks[-1].tell(seconds)


_blocks: list[_Block] = []  # the innermost is told
