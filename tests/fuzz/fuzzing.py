"""Fuzzing: files of a valid folder are damaged, its reader reads them, and the outcome is judged.

A reader passes an input if it returns, or raises a `DistGNNError`; anything else (another exception, a peak of memory
far beyond the size of the files, a file that is written) is a finding. Checksums are made right again after most
mutations, so that the checks behind them are reached too.
"""

import os
import random
import shutil
import signal
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mutations import MUTATIONS, flip_bytes

from distgnn.errors import DistGNNError

FREE_BYTES = 96 << 20  # of memory, whatever the size of the files (a block of a table is 4 MB of text)
BYTES_PER_BYTE = 5000  # gzip packs up to 1032 : 1, and a digit and a comma become 8 bytes
HANGS = 120.0  # seconds


@dataclass
class Target:
    """One kind of folder: its valid files, the reader, and how checksums are made right again."""

    name: str
    folder: Path
    read: Callable[[Path], object]
    repair: Callable[[Path, set[Path]], None] | None = None
    files: dict[Path, bytes] = field(default_factory=dict)

    def __post_init__(self):
        self.files = {path: path.read_bytes() for path in sorted(self.folder.rglob("*")) if path.is_file()}
        self.read(self.folder)  # valid as it stands

    def restore(self, changed: set[Path]) -> None:
        for path in changed:
            _remove(path)
            path.write_bytes(self.files[path])


class Hang(BaseException):
    """No `Exception`: a reader that catches everything does not catch it."""


@contextmanager
def no_hang(seconds: float = HANGS) -> Iterator[None]:
    """Raise `Hang` in what takes longer than any reader of these small files."""

    def stop(*_):
        raise Hang(f"no end after {seconds:g} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def try_one(target: Target, rng: random.Random) -> str:
    """Mutate, read, restore; returns "read", "refused", or a finding that says what happened."""
    touched: set[Path] = set()
    changed = mutate_folder(target, rng, touched)
    if tracemalloc.is_tracing():
        tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    size = sum(path.stat().st_size for path in target.files if path.is_file())
    try:
        with no_hang():
            target.read(target.folder)
        outcome = "read"
    except DistGNNError as error:
        outcome = "refused" if str(error) and "\n" not in str(error) else f"finding: no single line: {error!r}"
    except BaseException as error:
        outcome = f"finding: {type(error).__name__}: {error} after {changed}"
    if tracemalloc.is_tracing():
        peak = tracemalloc.get_traced_memory()[1] - before
        if peak > FREE_BYTES + BYTES_PER_BYTE * size:
            outcome = f"finding: {peak} bytes of memory for {size} bytes of files after {changed}"
    target.restore(touched)
    return outcome


def files_below(root: Path) -> set[Path]:
    """All files; what a reader adds to them it may not have made."""
    return {path for path in root.rglob("*") if path.is_file()}


def _remove(path: Path) -> None:
    """A file, or what `_replace_by_no_file` made of it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _replace_by_no_file(path: Path, rng: random.Random) -> str:
    """A pipe that nobody writes to, a device, or a folder takes the place of a file."""
    _remove(path)
    kind = rng.choice(("a pipe", "a device", "a folder"))
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a device":
        path.symlink_to("/dev/null")
    else:
        path.mkdir()
    return f"is {kind}"


def mutate_folder(target: Target, rng: random.Random, touched: set[Path]) -> str:
    """Change one or two files, or take one away; adds them to `touched` and returns what was done."""
    done = []
    for _ in range(rng.choice((1, 1, 1, 2))):
        path = rng.choice(list(target.files))
        touched.add(path)
        if rng.random() < 0.03:
            _remove(path)
            done.append(f"{path.name} removed")
            continue
        if rng.random() < 0.03:
            done.append(f"{path.name} {_replace_by_no_file(path, rng)}")
            continue
        content = path.read_bytes() if path.is_file() else target.files[path]
        _remove(path)
        kind = rng.choice(MUTATIONS.get(path.suffix, (flip_bytes,)))
        path.write_bytes(kind(content, rng))
        done.append(f"{path.name} {kind.__name__}")
    # What repairs reads files as they are, and would wait for a pipe.
    if target.repair and all(path.is_file() for path in touched if path.exists()) and rng.random() < 0.8:
        try:
            target.repair(target.folder, touched)
        except (ValueError, KeyError, TypeError, OSError, AttributeError, IndexError, RecursionError):
            pass
    return ", ".join(done)
