"""A folder that appears whole or not at all, and replaces only what this program wrote.

```
parts/                                   the folder
.parts.partial-HOST-PID/                 being written; locked, so that no other process takes it for a crash's remains
.parts.old-HOST-PID/                     the one that was replaced, until it is removed
```
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import glob
import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from distgnn.errors import InputError

AT_FDCWD, RENAME_EXCHANGE = -100, 2


@dataclass(frozen=True)
class FolderKind:
    """How to know a folder that this program wrote: its marker file can be read, and every other file is one of ours.

    Args:
        marker: the file that every such folder has.
        files: regular expression for the relative paths of all its files, the marker included.
        is_marker: does the marker's content (as text) say that it is ours?
    """

    marker: str
    files: str
    is_marker: Callable[[str], bool]

    def foreign(self, folder: Path) -> str | None:
        """Why `folder` is not one that we wrote, or None. Empty folders inside count for nothing."""
        try:
            if not self.is_marker((folder / self.marker).read_text(encoding="utf-8")):
                return f"its {self.marker} is not one of ours"
        except FileNotFoundError:
            return f"no {self.marker}"
        except (OSError, ValueError, RecursionError):
            return f"its {self.marker} cannot be read"
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_symlink() or not (path.is_dir() or (path.is_file() and re.fullmatch(self.files, name))):
                return f"{name} in it is not one of ours"
        return None


def json_with(*keys: str) -> Callable[[str], bool]:
    """Is a text a JSON object with these keys?"""

    def found(text: str) -> bool:
        content = json.loads(text)
        return isinstance(content, dict) and all(key in content for key in keys)

    return found


@contextlib.contextmanager
def new_folder(out: str | Path, kind: str | FolderKind, overwrite: bool = False) -> Iterator[Path]:
    """Yield an empty temporary folder beside `out`; move it there at the end, remove it after any error.

    Args:
        out: where the folder shall be; missing parents are made.
        kind: how to know that an existing folder is one of ours and may be replaced (of a text only: the name of a
            file that it must have).
        overwrite: whether an existing folder is replaced; the old one stays until the new one is whole.
    Raises: InputError if `out` exists, cannot be written, or the disk is full; also if it came into being meanwhile.
    Notes: every file must be synced by its writer; the folders are synced here, then renamed.
    """
    target = Path(out).absolute()
    remove_stale(target)
    check_target(out, kind, overwrite)
    replaces = os.path.lexists(target)
    temporary = target.with_name(f".{target.name}.partial-{_process_name()}")
    made: list[Path] = []
    lock = None
    try:
        made = _make_parents(target.parent)
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        lock = lock_file(temporary)
        yield temporary
        _sync_tree(temporary)
        _move(temporary, target, replaces)
        sync_folder(target.parent)
        made = []
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST) and not replaces:
            raise InputError(f"{out} was written by another process meanwhile: choose another place") from error
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if lock is not None:
            os.close(lock)
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def lock_file(path: Path) -> int:
    """An open descriptor of a file or folder that holds its lock until it is closed, or the process ends.

    Raises: BlockingIOError where another process holds it; FileNotFoundError where the path is gone, or names another
        file by the time that the lock is held (whoever held it before has replaced the file).
    Notes: on a file system without locks there is no protection.
    """
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise
        except OSError:
            pass
        if not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    except OSError:
        os.close(handle)
        raise
    return handle


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
            if not number.isdigit() or _is_alive(int(number)) or _is_locked(path):
                continue
            if kind == "old" and not os.path.lexists(target):
                with contextlib.suppress(OSError):
                    path.rename(target)
            else:
                shutil.rmtree(path, ignore_errors=True)


def _is_locked(path: Path) -> bool:
    """Does a process hold it whose number says nothing here (in another container)?"""
    try:
        os.close(lock_file(path))
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def check_target(out: str | Path, kind: str | FolderKind, overwrite: bool) -> None:
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
    if isinstance(kind, str):
        why = None if (target / kind).is_file() else f"no {kind}"
    else:
        why = kind.foreign(target)
    if why is not None and any(target.iterdir()):
        raise InputError(f"{out} was not written by this program ({why}): it is left alone and not overwritten")


def _make_parents(parent: Path) -> list[Path]:
    """Make missing folders; return them, innermost first."""
    missing = []
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
    return missing


def _move(temporary: Path, target: Path, replaces: bool) -> None:
    """Rename into place. What was there changes places with it in one step where it can, and is removed last.

    A folder with files that came into being meanwhile is not replaced: the rename fails.
    """
    if not replaces or not target.exists():
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
