"""A folder that appears whole or not at all."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import glob
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from distgnn.errors import DistGNNError, InputError

AT_FDCWD, RENAME_NOREPLACE, RENAME_EXCHANGE = -100, 1, 2

# What a folder of ours holds, by its own marker: names of files relative to it. Raises DistGNNError where the folder
# has no valid marker.
OurFiles = Callable[[Path], set[str]]


@contextlib.contextmanager
def new_folder(out: str | Path, our_files: OurFiles, overwrite: bool = False) -> Iterator[Path]:
    """Yield an empty temporary folder beside `out`; move it there at the end, remove it after any error.

    Args:
        out: where the folder shall be; missing parents are made.
        our_files: reads the marker of an existing folder; it is replaced only if it holds nothing else.
        overwrite: whether an existing folder is replaced; the old one stays until the new one is whole.
    Raises: InputError if `out` exists or appears meanwhile, is not ours, cannot be written, or the disk is full.
    Notes: every file must be synced by its writer; the folders are synced here, then renamed.
    """
    target = Path(out).absolute()
    remove_stale(target)
    check_target(out, our_files, overwrite)
    temporary: Path | None = None
    made: list[Path] = []
    try:
        made = _make_parents(target.parent)
        temporary = _make_temporary(target)
        with _held(temporary):
            yield temporary
            _sync_tree(temporary)
            if not _move_new(temporary, target):
                check_target(out, our_files, overwrite)  # again: it may have changed in the meantime
                _replace(temporary, target)
        sync_folder(target.parent)
        made = []
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def _make_temporary(target: Path) -> Path:
    """A new empty folder beside `target`, named after this process; a thread that has one already gets another."""
    first = target.with_name(f".{target.name}.partial-{socket.gethostname()}-{os.getpid()}")
    path, number = first, 0
    while True:
        try:
            path.mkdir()
            return path
        except FileExistsError:
            number += 1
            path = first.with_name(f"{first.name}-{number}")


def remove_stale(target: Path) -> None:
    """Remove what processes of this machine that were killed left beside `target`.

    A folder that was set aside by a process that died before its own was in place is put back.
    """
    for kind in ("partial", "old"):
        prefix = f".{target.name}.{kind}-{socket.gethostname()}-"
        for path in target.parent.glob(glob.escape(prefix) + "*"):
            number = path.name.removeprefix(prefix).partition("-")[0]
            if not number.isdigit() or _is_alive(int(number)) or _is_held(path):
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


@contextlib.contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Lock a folder while it is filled: in another process namespace its process id says nothing."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # file systems without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _is_held(folder: Path) -> bool:
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


def check_target(out: str | Path, our_files: OurFiles, overwrite: bool) -> None:
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
    if not any(target.iterdir()):
        return
    try:
        ours = our_files(target)
    except DistGNNError as error:
        raise InputError(f"{error}: {out} is not overwritten; remove it yourself if nothing in it is needed") from None
    foreign = _first_foreign(target, ours)
    if foreign is not None:
        raise InputError(f"{foreign} is not a file of ours: {out} is not overwritten; move the file, or remove {out}")


def _first_foreign(folder: Path, ours: set[str]) -> Path | None:
    """The first entry below `folder` that is neither one of these files nor a folder that holds one."""
    folders = {parent.as_posix() for name in ours for parent in Path(name).parents}
    for place, subfolders, files in os.walk(folder):
        for name in sorted([*files, *subfolders]):
            path = Path(place) / name
            known = ours if name in files else folders
            if path.is_symlink() or path.relative_to(folder).as_posix() not in known:
                return path
    return None


def _make_parents(parent: Path) -> list[Path]:
    """Make missing folders; return them, innermost first."""
    missing = []
    while not parent.exists():
        missing.append(parent)
        parent = parent.parent
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
    return missing


def _move_new(temporary: Path, target: Path) -> bool:
    """Rename into place unless something is there, in one step: of two processes, only one succeeds."""
    done = _rename(temporary, target, RENAME_NOREPLACE)
    if done is not None:
        return done
    try:
        target.mkdir()  # claims the name; a rename replaces an empty folder, and no other
    except FileExistsError:
        return False
    temporary.rename(target)
    return True


def _replace(temporary: Path, target: Path) -> None:
    """Rename into the place of a folder, which changes places with it in one step where it can, and is removed last."""
    old = target.with_name(f".{target.name}.old-" + temporary.name.removeprefix(f".{target.name}.partial-"))
    if _rename(temporary, target, RENAME_EXCHANGE):
        temporary.rename(old)
    else:
        target.rename(old)
        try:
            temporary.rename(target)
        except OSError:
            old.rename(target)
            raise
    shutil.rmtree(old, ignore_errors=True)


def _rename(one: Path, other: Path, how: int) -> bool | None:
    """Linux's renameat2: True if done, False if `other` is in the way, None where this cannot be done."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if rename is None:
        return None
    if rename(AT_FDCWD, bytes(one), AT_FDCWD, bytes(other), how) == 0:
        return True
    return False if ctypes.get_errno() == errno.EEXIST else None


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
