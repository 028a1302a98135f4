"""A folder that appears whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

from distgnn.errors import InputError

AT_FDCWD, RENAME_EXCHANGE = -100, 2


@contextlib.contextmanager
def new_folder(out: str | Path, marker: str, overwrite: bool = False) -> Iterator[Path]:
    """Yield an empty temporary folder beside `out`; move it there at the end, remove it after any error.

    Args:
        out: where the folder shall be; missing parents are made.
        marker: a file that shows that an existing folder is one of ours and may be replaced.
        overwrite: whether an existing folder is replaced; the old one stays until the new one is whole.
    Raises: InputError if `out` exists, cannot be written, or the disk is full.
    Notes: every file must be synced by its writer; the folders are synced here, then renamed.
    """
    target = Path(out).absolute()
    remove_stale(target)
    check_target(out, marker, overwrite)
    temporary = target.with_name(f".{target.name}.partial-{_process_name()}")
    made: list[Path] = []
    try:
        made = _make_parents(target.parent)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        yield temporary
        _sync_tree(temporary)
        _move(temporary, target)
        sync_folder(target.parent)
        made = []
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _process_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}"


def remove_stale(target: Path) -> None:
    """Remove what processes of this machine that were killed left beside `target`.

    A folder that was set aside by a process that died before its own was in place is put back.
    """
    for kind in ("partial", "old"):
        prefix = f".{target.name}.{kind}-{socket.gethostname()}-"
        for path in target.parent.glob(glob.escape(prefix) + "*"):
            number = path.name.removeprefix(prefix)
            if not number.isdigit() or _is_alive(int(number)):
                continue
            if kind == "old" and not os.path.lexists(target):
                with contextlib.suppress(OSError):
                    path.rename(target)
            else:
                shutil.rmtree(path, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def check_target(out: str | Path, marker: str, overwrite: bool) -> None:
    """Raise InputError unless a new folder may take the place of `out`."""
    target = Path(out).absolute()
    if not target.name:
        raise InputError(f"cannot write {out}: it names no folder")
    if not os.path.lexists(target):
        return
    if not overwrite:
        raise InputError(f"{out} exists already: choose another place, or replace it with --overwrite")
    if not target.is_dir() or target.is_symlink():
        raise InputError(f"{out} is not a folder: it is not overwritten")
    if any(target.iterdir()) and not (target / marker).is_file():
        raise InputError(f"{out} holds no {marker}: it is not ours and is not overwritten")


def _make_parents(parent: Path) -> list[Path]:
    """Make missing folders; return them, innermost first."""
    missing = []
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
    return missing


def _move(temporary: Path, target: Path) -> None:
    """Rename into place. What was there changes places with it in one step where it can, and is removed last."""
    if not target.exists():
        temporary.rename(target)
        return
    old = target.with_name(f".{target.name}.old-{_process_name()}")
    if _exchange(temporary, target):
        temporary.rename(old)
    else:
        target.rename(old)
        try:
            temporary.rename(target)
        except OSError:
            old.rename(target)
            raise
    shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change names at one instant (Linux, most file systems); False where that cannot be done."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    return rename is not None and rename(AT_FDCWD, bytes(one), AT_FDCWD, bytes(other), RENAME_EXCHANGE) == 0


def _sync_tree(folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        if path.is_dir():
            sync_folder(path)
    sync_folder(folder)


def sync_file(path: Path) -> None:
    """Wait until a file is on the disk.

    Raises: OSError where it cannot be, a full disk among others.
    """
    with open(path, "rb+") as stream:
        os.fsync(stream.fileno())


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, where the file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
