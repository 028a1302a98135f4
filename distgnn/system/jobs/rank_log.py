"""One log per rank in the run folder: where it ran, what it met, and how it ended.

    run/logs/rank-0.log          lines, appended over all parts of a run
    run/logs/rank-0.status       what the rank is doing now, one JSON object, replaced (see watchdog)

A rank that does not see the run folder of rank 0 makes one of its own on its machine.

What a rank does, its parent can read after the rank has died, from a page of memory that both have (`note`). The parent
makes the page, and names it in DISTGNN_NOTE_FD (keeper.py).
"""

import mmap
import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from distgnn.errors import DistGNNError
from distgnn.system.jobs.keeper import NOTE_BYTES, NOTE_VARIABLE


class RankLog:
    """The log of one rank. Without a run folder nothing is written.

    Notes: a log that cannot be written (a full disk) never ends a run.
    """

    def __init__(self, run: str | None, rank: int):
        self.rank = rank
        self.folder = Path(run) / "logs" if run is not None else None
        if self.folder is not None:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
            except OSError:
                self.folder = None

    def write(self, text: str) -> None:
        if self.folder is None:
            return
        path = self.folder / f"rank-{self.rank}.log"
        note.set(log=str(path))
        with suppress(OSError), open(path, "a", encoding="utf-8", errors="backslashreplace") as stream:
            stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")

    def failure(self, error: BaseException, phase: str) -> None:
        """Append an error; one of ours with its traceback."""
        kind = type(error).__name__
        trace = "" if isinstance(error, DistGNNError) else "\n" + "".join(traceback.format_exception(error))
        self.write(f"ended in {phase}: {kind}: {error}{trace}")

    def set_status(self, content: str) -> None:
        if self.folder is None:
            return
        path = self.folder / f"rank-{self.rank}.status"
        with suppress(OSError):
            partial = path.with_suffix(".partial")
            partial.write_text(content, encoding="utf-8")
            os.replace(partial, path)

    def status_of(self, rank: int) -> str | None:
        """What another rank wrote last; None where nothing can be read."""
        if self.folder is not None:
            with suppress(OSError):
                return (self.folder / f"rank-{rank}.status").read_text(encoding="utf-8")
        return None

    def remove_statuses(self) -> None:
        """All ranks are done. Of a folder that nothing else is in, nothing is left."""
        if self.folder is not None:
            for path in self.folder.glob("rank-*.status"):
                path.unlink(missing_ok=True)
            with suppress(OSError):  # not empty
                self.folder.rmdir()
                self.folder.parent.rmdir()


class PhaseNote:
    """The phase of this process, the path of its log, and whether others need it.

    Attributes: phase: of a run that tells its phases; doing: where any other program was seen last; stage: JOINED
        from the first graph on, ENDS when no rank waits for it any more; limit: seconds for which it may be stopped.
    """

    def __init__(self) -> None:
        self.phase = self.doing = self.log = self.stage = self.limit = ""
        self._page: mmap.mmap | None = None
        self._opened = False

    def set(self, **attributes: str) -> None:
        """Note what the rank does from now on, and where its log is; the others stay as before."""
        vars(self).update(attributes)
        number = os.environ.get(NOTE_VARIABLE, "")
        if not self._opened and number.isdigit():
            with suppress(OSError, ValueError):  # closed: a process that a rank has started
                self._page = mmap.mmap(int(number), NOTE_BYTES)
        self._opened = True
        if self._page is not None:
            words = [self.stage, self.limit, self.phase or self.doing, self.log]
            text = "\n".join(words).encode(errors="backslashreplace")
            self._page[:NOTE_BYTES] = text[: NOTE_BYTES - 1].ljust(NOTE_BYTES, b"\0")

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """The block, or the function, is a phase; an error that leaves it says so."""
        before = self.phase
        self.set(phase=phase)
        try:
            yield
        except Exception as error:
            if not hasattr(error, "phase"):
                error.phase = phase  # type: ignore[attr-defined]
            raise
        finally:
            self.set(phase=before)


note: PhaseNote = PhaseNote()
