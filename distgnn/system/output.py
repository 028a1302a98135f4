"""Output that never ends a run: text made safe for a terminal, and standard streams that may be closed or full."""

import errno
import inspect
import io
import os
import sys
import threading
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from distgnn.errors import InputError

ESCAPED = ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")  # control, format (text direction), surrogates, private use, separators

ERROR = "distgnn: error: "  # the head of a line on an error
LOST = "distgnn: standard output could not be written ({}); the work itself is not affected"


def plain(text: object) -> str:
    """One line without terminal control: what could move the cursor or cannot be encoded becomes a \\x1b or \\ud800."""
    text = str(text)
    if text.isascii() and text.isprintable():
        return text
    letters = ((letter, unicodedata.category(letter) in ESCAPED) for letter in text)
    return "".join(
        letter.encode("unicode_escape", "backslashreplace").decode("ascii") if escaped else letter
        for letter, escaped in letters
    )


def in_notebook() -> bool:
    """Whether this process shows what it displays below a cell."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel")


def progress_stream() -> TextIO:
    """Where progress goes: standard error; below a cell, which shows errors in red, standard output."""
    return sys.stdout if in_notebook() else sys.stderr


def say(text: object, head: str = "distgnn: ") -> None:
    """A line on standard error, without terminal control."""
    print(f"{head}{plain(text)}", file=progress_stream(), flush=True)


class NoInput(io.TextIOBase):
    """Standard input of a rank: it is at its end, and who asks for a line of it (`input`, a debugger) is told."""

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> str:
        return ""

    def __next__(self) -> str:  # type: ignore[override]
        raise StopIteration

    def readline(self, size: int = -1) -> str:  # type: ignore[override]
        raise InputError(
            "ranks have no standard input: give the script an argument, or run it alone for input() and breakpoint(), "
            "python SCRIPT on a folder of one part"
        )


class Held:
    """Standard error of a rank that says what the first one says: kept, and shown where the rank fails."""

    def __init__(self, stream: TextIO, head: str):
        self._stream, self._head, self._text = stream, head, ""
        self.passes = False

    def write(self, text: str) -> int:
        frame = inspect.currentframe()
        caller = frame.f_back if frame is not None else None
        name = "" if caller is None else str(caller.f_globals.get("__name__"))
        if self.passes or caller is None or name.startswith(("distgnn.", "traceback")):  # uncaught, or a line of ours
            self.show()
            return self._stream.write(text)
        self._text = (self._text + text)[-LONGEST_HELD:]
        return len(text)

    def show(self) -> None:
        """Write what was kept, each line of it once, with the rank in front."""
        lines, self._text = dict.fromkeys(self._text.splitlines()), ""
        self._stream.writelines(f"{self._head}{line}\n" for line in lines if line.strip())
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


LONGEST_HELD = 1 << 16


def hold(head: str) -> None:
    """From now on Python's standard error of this process is kept. Args: head: of each line, once it is shown."""
    sys.stderr = cast(TextIO, Held(sys.stderr, head))


def show_held() -> None:
    """This process fails: show what was kept, and what follows."""
    if isinstance(sys.stderr, Held):
        sys.stderr.show()
        sys.stderr.passes = True


class LenientStream:
    """A standard stream that drops what cannot be written; `error` keeps why."""

    def __init__(self, stream: TextIO):
        self._stream = stream
        self.error: OSError | None = None
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    def write(self, text: str) -> int:
        self._try(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, work: Any) -> None:
        if self.error is not None:
            return
        try:
            work()
        except OSError as error:
            self.error = error
            with suppress(OSError, ValueError):  # what is still in buffers is written to nowhere when Python ends
                target = os.open(os.devnull, os.O_WRONLY)
                os.dup2(target, self._stream.fileno())
                os.close(target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def fill_closed() -> None:
    """Closed standard streams lead to nowhere: the next file that is opened would get their numbers."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
            os.set_inheritable(number, True)


@contextmanager
def lenient_output() -> Iterator[None]:
    """Within, standard output and error may be closed or full: the work goes on, and one line says what was lost."""
    fill_closed()
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w", encoding="utf-8", closefd=False))
    before = sys.stdout, sys.stderr
    out, err = LenientStream(sys.stdout), LenientStream(sys.stderr)
    sys.stdout, sys.stderr = cast(TextIO, out), cast(TextIO, err)
    try:
        yield
    finally:
        out.flush()
        if out.error is not None and out.error.errno != errno.EPIPE:  # a reader that went away (head) is no news
            reason = out.error.strerror or out.error
            print(LOST.format(reason), file=err)
        err.flush()
        sys.stdout, sys.stderr = before


class Relay(threading.Thread):
    """Passes on what another process writes into a pipe; once its target cannot be written, the rest is dropped.

    mpiexec ends its ranks with an error where its standard output is closed or full. Behind this pipe it never is.

    Args: last: what follows these lines, they, and an empty line before them are dropped, too. Only where all of their
        first line is there may the rest follow, and is waited for: a prompt that ends with "=" is shown at once.
    """

    def __init__(self, source: int, target: int, last: bytes):
        super().__init__(daemon=True)
        self.source, self.target, self.last, self.error = source, target, last, 0
        self.start()

    def run(self) -> None:
        """Until the other end is closed."""
        held = b""
        while chunk := os.read(self.source, 1 << 16):
            held = self._pass_on(held + chunk)
        self._write(held)
        os.close(self.source)

    def _pass_on(self, text: bytes) -> bytes:
        """Write what is not the beginning of `last`; returns the rest."""
        if self.last in text:
            self._write(text[: text.index(self.last)].removesuffix(b"\n"))
            self.error = self.error or errno.EPIPE
            return b""
        sizes = range(len(self.last), self.last.index(b"\n") - 1, -1)
        begun = next((size for size in sizes if text.endswith(self.last[:size])), 0)
        self._write(text[: len(text) - begun])
        return text[len(text) - begun :]

    def _write(self, text: bytes) -> None:
        try:
            while text and not self.error:
                text = text[os.write(self.target, text) :]
        except OSError as error:
            self.error = error.errno or errno.EIO

    def finish(self, seconds: float) -> None:
        """Wait for the last lines, and say what was lost."""
        self.join(seconds)
        if self.error not in (0, errno.EPIPE):
            print(LOST.format(os.strerror(self.error)), file=sys.stderr)
