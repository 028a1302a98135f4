"""Files and folders that appear whole or not at all, and text of regular files that others named.

```
parts/                                   the folder
.parts.partial-HOST-PID/                 being written; locked: no leftover of a crash
.parts.old-HOST-PID/                     the one that was replaced, until it is removed
```

Text of a file that others named: only a regular file is read. A pipe waits for a writer, and a device has no end.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import glob
import os
import shutil
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from distgnn.errors import DistGNNError, InputError

LONGEST = 255  # bytes of a name, of file systems
OF_KINDS = (  # ends of names that say how a file is read
    ".csv .feather .h5 .hdf5 .html .json .jsonl .npy .npz .parquet .pickle .pkl .png .pt .pth .safetensors .svg .tsv "
    ".xls .xlsx .xml .yaml .yml"
).split()
NOT_REGULAR = "not a regular file, but a pipe, a device or a socket"


def check_name(path: str | Path, end: str = "") -> None:
    """Raise InputError for a name that is too long, or that says another kind of file than `end` does."""
    name = max(Path(path).parts, key=len, default="")
    if len(os.fsencode(name)) > LONGEST:
        raise InputError(f"the name {name[:20]}… has {len(os.fsencode(name))} bytes: at most {LONGEST} are taken")
    found = Path(path).suffix.lower()
    if end and found != end and found in OF_KINDS:
        raise InputError(f"{path}: what is written is {end}, and the name says {found}: end it in {end}")


def open_regular(path: str | Path) -> BinaryIO:
    """An open file, for reading bytes; never waits.

    Raises: OSError where there is none or it cannot be read, and for all that is no regular file.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, NOT_REGULAR, str(path))


def read_text(path: str | Path, errors: str = "strict") -> str:
    """The whole of a regular file, decoded as UTF-8.

    Raises: as `open_regular`; UnicodeDecodeError, a ValueError, with `errors` "strict".
    """
    with open_regular(path) as stream:
        return stream.read().decode("utf-8", errors)


AT_FDCWD, RENAME_NOREPLACE, RENAME_EXCHANGE = -100, 1, 2

# What a folder of ours holds, by its own marker: names of files relative to it. Raises DistGNNError where the folder
# has no valid marker.
OurFiles = Callable[[Path], set[str]]


@contextlib.contextmanager
def new_folder(out: str | Path, kind: OurFiles | None, overwrite: bool = False) -> Iterator[Path]:
    """Yield an empty temporary folder beside `out`; move it there at the end, remove it after any error.

    Args:
        out: where the folder shall be; missing parents are made.
        kind: how to know that an existing folder is one of ours, and holds nothing else, and may be replaced; None:
            an existing folder is never replaced.
        overwrite: whether an existing folder is replaced; the old one stays until the new one is whole.
    Raises: InputError if `out` exists or appears meanwhile, is not ours, cannot be written, or the disk is full.
    Notes: every file must be synced by its writer; the folders are synced here, then renamed.
    """
    target = Path(out).absolute()
    remove_stale(target)
    check_target(out, kind, overwrite)
    temporary: Path | None = None
    made: list[Path] = []
    lock = None
    try:
        made = [folder for folder in target.parents if not folder.exists()]  # innermost first
        for folder in reversed(made):
            folder.mkdir(exist_ok=True)
        temporary = _make_temporary(target)
        lock = lock_file(temporary)
        yield temporary
        for path in temporary.iterdir():
            if path.is_dir():
                sync_folder(path)
        sync_folder(temporary)
        if not _move_new(temporary, target):
            if not overwrite:
                raise InputError(f"{out} was written by another process meanwhile: choose another place")
            check_target(out, kind, overwrite)  # again: it may have changed since the work began
            _replace(temporary, target)
        sync_folder(target.parent)
        made = []
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror or error}") from error
    finally:
        if temporary is not None:
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
        flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(handle), os.stat(path)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    except OSError:
        os.close(handle)
        raise
    return handle


def flock(handle: int, how: int) -> bool:
    """As `fcntl.flock`; False on a file system without locks: there is no protection.

    Raises: BlockingIOError where another process holds it, and LOCK_NB is given.
    Notes: NFS locks for writing only what is open for writing, and says EBADF.
    """
    try:
        fcntl.flock(handle, how)
    except BlockingIOError:
        raise
    except OSError:
        return False
    return True


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
            if not number.isdigit() or _in_use(path, int(number)):
                continue
            if kind == "old" and not os.path.lexists(target):
                with contextlib.suppress(OSError):
                    path.rename(target)
            else:
                shutil.rmtree(path, ignore_errors=True)


def _in_use(path: Path, process: int) -> bool:
    """Does its process live, or one hold it whose number says nothing here (in another container)?"""
    try:
        os.kill(process, 0)
        return True
    except ProcessLookupError:
        pass
    except (OSError, OverflowError):
        return True
    try:
        os.close(lock_file(path))
    except OSError as error:
        return isinstance(error, BlockingIOError)
    return False


def check_target(out: str | Path, kind: OurFiles | None, overwrite: bool) -> None:
    """Raise InputError unless a new folder may take the place of `out`."""
    target = Path(out).absolute()
    if not target.name:
        raise InputError(f"cannot write {out}: it names no folder")
    check_name(target)
    if not os.path.lexists(target):
        return
    if not overwrite or kind is None:
        hint = "" if kind is None else ", or replace it with --overwrite (from Python: overwrite=True)"
        raise InputError(f"{out} exists already: choose another place{hint}")
    if not target.is_dir() or target.is_symlink():
        raise InputError(f"{out} is not a folder: it is not overwritten")
    if not any(target.iterdir()):
        return
    why = why_foreign(target, kind)
    if why is not None:
        raise InputError(f"{out} was not written by this program ({why}): it is left alone and not overwritten")


def why_foreign(folder: Path, our_files: OurFiles) -> str | None:
    """Why a folder is not ours: its marker, or the first entry that is no file of ours. Empty folders are nothing."""
    try:
        ours = our_files(folder)
    except DistGNNError as error:
        return str(error)
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not (path.is_dir() or (path.is_file() and name in ours)):
            return f"{name} in it is not one of ours"
    return None


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


def replace_file(path: Path, content: bytes, sync: bool = True) -> None:
    """Write `content` beside `path`, and rename it into place; sync: it also outlasts a power cut."""
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "wb") as stream:
            stream.write(content)
            stream.flush()
            if sync:
                os.fsync(stream.fileno())
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def sync_file(path: Path) -> None:
    """Wait until a file is on the disk. Raises: OSError where it cannot be, a full disk among others."""
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
