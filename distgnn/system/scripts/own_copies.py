"""Files of a user's script on ranks: rank 0 writes them, the other ranks keep copies of their own.

    rank 0          writes out/best.pt, with Python's own functions
    rank 1          writes FOLDER/rank-1/home/me/out/best.pt, and reads it back there

All ranks write the same, so a rank that reads its copy reads what one process would. No rank waits for another. What a
rank has not written it finds on the disk: `if rank == 0:` stays right. At the job's end a file that rank 0
has not written goes to its place, unless rank 0 has written one like it (`publish`).

Python's functions on files are replaced in these ranks, before the script goes on (`keep_copies`), for the script and
for the libraries that it calls; files of this program, of numba and of `tempfile` stay where they are. What a library
writes below Python (HDF5, Arrow) is not seen. Of a file that was there before the job, and that rank 0 has changed
meanwhile, another rank that has not touched it yet sees the change.
"""

import builtins
import errno
import functools
import importlib
import inspect
import io
import math
import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from types import FrameType
from typing import Any

from distgnn.system import output

# "FOLDER:SECONDS", the folder of a job and when it began; "all": each rank writes for itself
FILES = "DISTGNN_FILES"
RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
OURS = ("distgnn", "numba", "llvmlite", "mpi4py", "tempfile", "torch._inductor")  # whose files stay where they are
LEFT = ("/dev/", "/proc/", "/sys/")
RUNNER = os.path.join(os.path.dirname(__file__), "run_script.py")  # of a script: "__main__" there
STDLIB = os.path.dirname(os.__file__) + os.sep
SOME_NUMBER = re.compile(r"[0-9a-f]{8,}|[0-9]+")  # of a time, a process, or a random name
FOLDERS = ("dir_fd", "src_dir_fd", "dst_dir_fd")
SIBLING_SECONDS = 3.0  # until a name with a rank's number is taken as one of all ranks
BELOW = {  # functions that open files below Python: the place of the name
    "torch": {"save": 1, "load": 0},
    "torch.jit": {"save": 1, "load": 0},
    "safetensors.torch": {"save_file": 1, "load_file": 0},
    "safetensors.numpy": {"save_file": 1, "load_file": 0},
    "sqlite3": {"connect": 0},
    "sqlite3.dbapi2": {"connect": 0},
}


def keep_copies() -> None:
    """Let this process keep its own copies, where it is a rank but the first of a user's script; once."""
    folder, _, began = os.environ.get(FILES, "").rpartition(":")
    rank = next((os.environ[name] for name in RANKS if name in os.environ), "0")
    if folder and rank not in ("", "0") and not hasattr(builtins.open, "copies"):
        copies = Copies(os.path.join(folder, f"rank-{rank}"), float(began))
        copies.replace()
        importlib.import_module("torch")  # which the script needs, and whose functions are replaced, too
        copies.replace_below()
        if os.environ.get("DISTGNN_PRINT") == "once":
            output.hold(f"rank {rank}: ")


def publish(folder: str) -> None:
    """Move what ranks but the first have written for themselves to its place, when the job has ended.

    That is a name with a rank's number beside rank 0's own, part_1.csv beside part_0.csv, and one like which there is
    nothing. Names with a time or the number of a process, as TensorBoard's, have one like them, and are left out.
    """
    for number in sorted((rank.rpartition("-")[2] for rank in os.listdir(folder)), key=int):  # the lowest has the place
        root = os.path.join(folder, f"rank-{number}")
        for below, _, files in os.walk(root):
            for file in files:
                full = os.path.join(below, file)[len(root) :]
                if not os.path.lexists(full) and _is_own(full, number):
                    os.makedirs(os.path.dirname(full), exist_ok=True)
                    shutil.move(root + full, full)


def _is_own(full: str, number: str) -> bool:
    """Is this a name that one rank alone has written?"""
    token = re.compile(rf"(?<![0-9])(0*){number}(?![0-9])")
    folder, name = os.path.split(full)
    if any(os.path.lexists(full[: one.start()] + one[1] + "0" + full[one.end() :]) for one in token.finditer(full)):
        return True
    there = os.listdir(folder) if os.path.isdir(folder) else []
    return SOME_NUMBER.sub("#", name) not in {SOME_NUMBER.sub("#", one) for one in there}


class Copies:
    """What one rank wrote and removed. Args: root: its folder; began: when the job did, in seconds."""

    def __init__(self, root: str, began: float):
        self.root, self.began = root, began
        self.gone: dict[str, float] = {}  # removed names: what was there then is not seen, what rank 0 makes later is
        self._was_written: set[str] = set()  # names that this rank has written and removed
        caches = (os.environ.get(name) for name in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "DISTGNN_CACHE"))
        self._left = (*LEFT, *(f"{one}/" for one in (*caches, os.path.expanduser("~/.cache")) if one))
        self._done: set[str] = set()
        self._own: dict[str, bool] = {}  # names with this rank's number: is it this rank's alone?
        self._number = re.compile(rf"(?<![0-9])(0*){root.rpartition('-')[2]}(?![0-9])")
        self._plain: dict[str, Any] = {"lstat": os.lstat}

    # Names

    def place(self, path: Any) -> str | None:
        """The absolute name that all ranks share; None: the name is left as it is."""
        if isinstance(path, int) or path is None:
            return None
        full = os.path.abspath(os.fsdecode(path))
        if full.startswith((self.root, *self._left)) or "/__pycache__/" in full:
            return None
        asks = _who_asks()
        if asks == "tempfile" and self._on_disk(full) is None:  # about to be made, for this rank alone
            self._own[full] = True
        own = any(own and f"{full}/".startswith(f"{one}/") for one, own in self._own.items())
        return None if asks or own else full

    def is_own(self, full: str) -> bool:
        """Is a name with this rank's number one that rank 0 has with its own, part_1.csv beside part_0.csv?

        Waits until rank 0 has written either. A name of which this rank has written that with 0 too counts something
        else: epoch_1.pt after epoch_0.pt, though that is removed by now.
        """
        found = self._own.get(full)
        if found is None:
            begin = len(os.path.commonpath([full, os.getcwd()]))
            tokens = list(self._number.finditer(full, begin))
            names = {f"{full[: one.start()]}{one[1]}0{full[one.end() :]}" for one in tokens}
            names |= {full[:begin] + self._number.sub(lambda one: f"{one[1]}0", full[begin:])} if tokens else set()
            if any(os.path.lexists(self.root + one) or one in self._was_written for one in names):
                names = set()
            found, end = False, time.monotonic() + SIBLING_SECONDS
            while names and not found and not self._is_new(full) and time.monotonic() < end:
                found = any(map(self._is_new, names))
                time.sleep(0.0 if found else 0.005)
            self._own[full] = found
        return found

    def _is_new(self, full: str) -> bool:
        found = self._on_disk(full)
        return found is not None and found.st_ctime >= self.began

    def is_seen(self, full: str) -> bool:
        """Is it on the disk, and not removed by this rank?"""
        found = self._on_disk(full)
        while found is not None and full != "/":
            if found.st_ctime < self.gone.get(full, 0.0):
                return False
            full = os.path.dirname(full)
        return found is not None

    def _on_disk(self, full: str) -> os.stat_result | None:
        try:
            return self._plain["lstat"](full)
        except OSError:
            return None

    def read(self, path: Any) -> Any:
        """Where to find what has this name."""
        full = self.place(path)
        if full is None:
            return path
        mine = self.root + full
        there = not os.path.lexists(mine) and (self.is_seen(full) or self._on_disk(full) is None)
        return path if there else mine

    def write(self, path: Any, keep: bool = True) -> Any:
        """Where to write what has this name. Args: keep: what is there is not lost."""
        full = self.place(path)
        found = None if full is None else self._on_disk(full)
        if full is None or (found is not None and not (stat.S_ISREG(found.st_mode) or stat.S_ISLNK(found.st_mode))):
            return path  # a device, a pipe, a folder
        mine = self.root + full
        if not os.path.lexists(mine):
            if self.is_own(full):
                return path
            os.makedirs(os.path.dirname(mine), exist_ok=True)
            if keep and self.is_seen(full):
                with suppress(FileNotFoundError):  # rank 0 is ahead, and removes it just now
                    shutil.copy2(full, mine)
        return mine

    # Functions in place of Python's: of the name, and of what they replace

    def open(self, plain: Any, file: Any, mode: str = "r", *args: Any, **named: Any) -> Any:
        writes = any(letter in mode for letter in "wax+")
        found = self.write(file, "a" in mode or "r" in mode) if writes else self.read(file)
        return plain(found, mode, *args, **named)

    def open_number(self, plain: Any, path: Any, flags: int, *args: Any, **named: Any) -> int:
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        return plain(self.write(path, not flags & os.O_TRUNC) if writes else self.read(path), flags, *args, **named)

    def reading(self, plain: Any, path: Any = ".", *args: Any, **named: Any) -> Any:
        return plain(self.read(path), *args, **named)

    def chdir(self, plain: Any, path: Any) -> None:
        """Into the folder on the disk, where it is there already: names in it are then those of all ranks."""
        full = self.place(path)
        plain(path if full is None or self.is_seen(full) else self.read(path))

    def changing(self, plain: Any, path: Any, *args: Any, **named: Any) -> Any:
        return plain(self.write(path), *args, **named)

    def listdir(self, plain: Any, path: Any = ".") -> list[Any]:
        full = self.place(path)
        if full is None:
            return plain(path)
        mine = self.root + full
        writes = os.path.isdir(mine)  # this rank, too: what is new there it will write itself, rank 0 is ahead
        names = plain(mine) if writes else []
        if self.is_seen(full) or not writes:
            there = [(one, os.path.join(full, one)) for one in plain(full)]
            names += [one for one, path in there if self.is_seen(path) and not (writes and self._is_new(path))]
        found = dict.fromkeys(names)
        return [os.fsencode(one) for one in found] if isinstance(path, bytes) else list(found)

    def scandir(self, plain: Any, path: Any = ".") -> Any:
        return plain(path) if self.place(path) is None else Listing(os.fsdecode(path), os.listdir(path))

    def mkdir(self, plain: Any, path: Any, *args: Any, **named: Any) -> None:
        full = self.place(path)
        if full is None or self.is_own(full):
            return plain(path, *args, **named)
        before = self.is_seen(full) and not self._is_new(full)  # else rank 0 is ahead
        if before or os.path.lexists(self.root + full):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        os.makedirs(self.root + full)
        return None

    def remove(self, plain: Any, path: Any, *args: Any, **named: Any) -> None:
        full = self.place(path)
        if full is None:
            return plain(path, *args, **named)
        mine = self.root + full
        if os.path.lexists(mine):
            self._forget(full)
            shutil.rmtree(mine) if os.path.isdir(mine) and not os.path.islink(mine) else plain(mine)
            self._drop(full)
        elif full in self.gone and not self.is_seen(full):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        else:
            self.gone[full] = self.began
        return None

    def rmtree(self, plain: Any, path: Any, *args: Any, **named: Any) -> None:
        full = self.place(path)
        if full is None:
            return plain(path, *args, **named)
        self._forget(full)
        shutil.rmtree(self.root + full, ignore_errors=True)
        self.gone[full] = self.began
        return None

    def _forget(self, full: str) -> None:
        """What this rank made in a folder is gone now, the rest since the job began."""
        for folder, _, files in os.walk(self.root + full):
            self._was_written.add(folder[len(self.root) :])
            for file in files:
                self._drop(os.path.join(folder, file)[len(self.root) :])

    def _drop(self, full: str) -> None:
        """A name that this rank has written is gone, and what the disk has under it: no clock says what is older."""
        found = self._on_disk(full)
        self._was_written.add(full)
        self.gone[full] = self.began if found is None else max(self.began, math.nextafter(found.st_ctime, math.inf))

    def rename(self, plain: Any, source: Any, target: Any, **named: Any) -> None:
        old, new = self.place(source), self.place(target)
        if old is None and new is None:
            return plain(source, target, **named)
        self._copy(self.read(source), target if new is None else self.root + new)
        if old is None or os.path.lexists(self.root + old) or self.is_seen(old):
            os.remove(source)
        return None

    def link(self, plain: Any, source: Any, target: Any, **named: Any) -> None:
        full = self.place(target)
        if full is None:
            return plain(source, target, **named)
        there = os.path.join(os.path.dirname(full), os.fsdecode(source))  # of a symbolic link
        self._copy(self.read(source if os.path.lexists(self.read(source)) else there), self.root + full)
        return None

    def _copy(self, found: Any, where: Any) -> None:
        os.makedirs(os.path.dirname(os.fsdecode(where)) or ".", exist_ok=True)
        with suppress(FileNotFoundError):  # rank 0 is ahead, and has moved it
            shutil.copytree(found, where, dirs_exist_ok=True) if os.path.isdir(found) else shutil.copy2(found, where)

    def below(self, plain: Any, place: int, *args: Any, **named: Any) -> Any:
        """A function whose file is opened below Python."""
        is_name = len(args) > place and isinstance(args[place], str | os.PathLike)
        if not is_name or str(args[place]).startswith((":", "file:")):  # SQLite's memory, and addresses
            return plain(*args, **named)
        here = self.read if plain.__name__.startswith("load") else self.write
        return plain(*args[:place], here(args[place]), *args[place + 1 :], **named)

    # Putting them in place

    def replace(self) -> None:
        """In this process; functions of libraries that are loaded later: `replace_below`."""
        self._set(io, "open", self.open)
        builtins.open = io.open
        builtins.open.copies = self  # type: ignore[attr-defined]
        self._set(os, "open", self.open_number)
        for name in ("stat", "lstat", "access", "readlink", "listxattr", "getxattr"):
            self._set(os, name, self.reading)
        for name in ("chmod", "chown", "utime", "truncate", "setxattr"):
            self._set(os, name, self.changing)
        named = {"remove": "unlink", "rename": "replace", "link": "symlink"}
        for name in ("chdir", "listdir", "scandir", "mkdir", "remove", "rename", "link"):
            self._set(os, name, getattr(self, name))
            if name in named:
                self._set(os, named[name], getattr(self, name))
        self._set(os, "rmdir", self.remove)
        self._set(shutil, "rmtree", self.rmtree)
        self.replace_below()

    def replace_below(self) -> None:
        for module, names in BELOW.items():
            if module in sys.modules and module not in self._done:
                self._done.add(module)
                for name, place in names.items():
                    ours = functools.partial(self.below, getattr(sys.modules[module], name), place)
                    self._set(sys.modules[module], name, lambda plain, *args, ours=ours, **named: ours(*args, **named))

    def _set(self, owner: Any, name: str, ours: Callable[..., Any]) -> None:
        plain = getattr(owner, name)
        self._plain.setdefault(name, plain)

        @functools.wraps(plain)
        def run(*args: Any, **named: Any) -> Any:
            if any(named.get(one) is not None for one in FOLDERS):  # a name below an open folder, as `shutil` has them
                return plain(*args, **named)
            return ours(plain, *args, **named)

        if plain in os.supports_follow_symlinks:
            os.supports_follow_symlinks.add(run)
        setattr(owner, name, run)


class Listing(Iterator[Any], AbstractContextManager[Any]):
    """As what `os.scandir` gives."""

    def __init__(self, folder: str, names: list[Any]):
        self._entries = iter([Entry(folder, os.fsdecode(name)) for name in names])

    def __next__(self) -> "Entry":
        return next(self._entries)

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is open."""


class Entry(os.PathLike[str]):
    """As `os.DirEntry`."""

    def __init__(self, folder: str, name: str):
        self.name, self.path = name, os.path.join(folder, name)

    def __fspath__(self) -> str:
        return self.path

    def is_symlink(self) -> bool:
        return os.path.islink(self.path)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return os.path.isdir(self.path) and (follow_symlinks or not self.is_symlink())

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return os.path.isfile(self.path) and (follow_symlinks or not self.is_symlink())

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.path) if follow_symlinks else os.lstat(self.path)

    def inode(self) -> int:
        return self.stat().st_ino


def _who_asks() -> str:
    """Who of `OURS` asks for a file, by itself or through Python's library; empty: the user, or another library."""
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        name, file = str(frame.f_globals.get("__name__")), frame.f_code.co_filename
        if file != __file__:
            if name.startswith(OURS) and file != RUNNER:
                return name
            if file == RUNNER or not file.startswith((STDLIB, "<frozen")) or "site-packages" in file:
                return ""
        frame = frame.f_back
    return ""
