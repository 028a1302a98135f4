"""Memory whose pieces move to a file and back, at the same addresses: `--offload`.

A piece in memory is anonymous pages, large ones where the kernel has them. A piece that waits is copied into the file,
and the file is mapped in its place, shared: whoever reads or writes it, whenever, finds what was there. The kernel may
then drop its pages. The file has no name from the moment it is made, so nothing is left of it however a process ends.
"""

import ctypes
import errno
import mmap
import os
import queue
import shutil
import sys
import tempfile
import threading
import weakref
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from distgnn.errors import InputError, RunError
from distgnn.system.units import human_bytes

PAGE = mmap.PAGESIZE
FIXED = 0x10  # MAP_FIXED of Linux
WRITE_NOW = 7  # sync_file_range: wait for what is on its way, write, wait


def check_folder(folder: str | None) -> None:
    """Raise InputError unless files for `--offload` can be made in a folder; None: nothing to check."""
    if folder is None:
        return
    if sys.platform != "linux":
        raise InputError("offload needs Linux, whose kernel maps a file in the place of memory: leave it out")
    if not os.path.isdir(folder):
        raise InputError(f"offload is {folder}: no such folder on this machine; make it first")
    try:
        os.close(_open_file(folder))
    except OSError as error:
        raise InputError(f"offload is {folder}: no file can be made there ({error.strerror})") from error


def free_bytes(folder: str) -> int:
    """What the disk of a folder has left."""
    return shutil.disk_usage(folder).free


def is_memory(folder: str) -> bool:
    """Is a folder on a tmpfs, whose files are memory? False where the kernel does not say."""
    device = os.stat(folder).st_dev
    name = f"{os.major(device)}:{os.minor(device)}"
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return False
    kinds = [line.rpartition(" - ")[2].split()[0] for line in lines if line.split()[2] == name]
    return any(kind in ("tmpfs", "ramfs") for kind in kinds)


def _open_file(folder: str) -> int:
    """A file without a name."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        return os.dup(file.fileno())


class Disk:
    """A folder, and a thread that writes behind and reads ahead of the computation.

    Args: folder: of a disk with room.
    """

    def __init__(self, folder: str):
        self.folder = folder
        self.moved_bytes = 0  # into files, so far
        # Its put may be called while a put is under way, as a garbage collection does.
        self._work: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._errors: list[BaseException] = []
        threading.Thread(target=_run, args=(self._work, self._errors), name="offload", daemon=True).start()
        weakref.finalize(self, self._work.put, None).atexit = False
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.mmap.restype = ctypes.c_void_p
        self._libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
        self._libc.sync_file_range.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]

    def open(self) -> int:
        try:
            return _open_file(self.folder)
        except OSError as error:
            raise self.failed(error) from error

    def close(self, file: int) -> None:
        """Close a file when the thread is done with it."""
        self._work.put(partial(os.close, file))

    def map(self, address: int, num_bytes: int, file: int | None, first: int) -> None:
        """Put pages of a file, or new ones, in the place of those at an address."""
        where = mmap.MAP_SHARED if file is not None else mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        wanted = mmap.PROT_READ | mmap.PROT_WRITE, where | FIXED, -1 if file is None else file, first
        if self._libc.mmap(address, num_bytes, *wanted) != address:
            code = ctypes.get_errno()
            raise self.failed(OSError(code, os.strerror(code)))

    def write_behind(self, file: int, first: int, num_bytes: int, wanted: Callable[[], bool]) -> None:
        """Begin to write a piece of a file, unless it is given up before."""
        self._do(partial(_write, self._libc, file, first, num_bytes, wanted))

    def read_ahead(self, file: int, first: int, num_bytes: int) -> None:
        self._do(partial(os.posix_fadvise, file, first, num_bytes, os.POSIX_FADV_WILLNEED))

    def drop(self, file: int, first: int, num_bytes: int) -> None:
        """The pages of a piece of a file may go. By the thread: the kernel may write before it lets them go."""
        self._work.put(partial(os.posix_fadvise, file, first, num_bytes, os.POSIX_FADV_DONTNEED))

    def _do(self, work: Callable[[], object]) -> None:
        """Hand work to the thread, after raising what went wrong there before."""
        if self._errors:
            raise self.failed(self._errors[0]) from self._errors[0]
        self._work.put(work)

    def failed(self, error: BaseException) -> RunError:
        """The line on an error of the disk."""
        if getattr(error, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            return RunError(
                f"offload: {self.folder} is full after {human_bytes(self.moved_bytes)}: free some room, or name a "
                "folder of another disk"
            )
        return RunError(f"offload: no file of {self.folder} can be written or read: {error}")


def _run(work: "queue.SimpleQueue[Callable[[], object] | None]", errors: list[BaseException]) -> None:
    """What the thread does. It holds no disk: that ends it when nothing else does."""
    while (one := work.get()) is not None:
        try:
            one()
        except OSError as error:
            errors.append(error)


def _write(libc: ctypes.CDLL, file: int, first: int, num_bytes: int, wanted: Callable[[], bool]) -> None:
    if wanted() and libc.sync_file_range(file, first, num_bytes, WRITE_NOW):
        code = ctypes.get_errno()
        if code not in (errno.ENOSYS, errno.EINVAL, errno.ESPIPE):
            raise OSError(code, os.strerror(code))
        os.fdatasync(file)


class FileMemory:
    """Memory [num_bytes] whose pieces can wait in a file. Pieces begin and end with a page.

    The owner of a piece moves it, between two uses of the computation. All errors are a RunError.
    """

    def __init__(self, num_bytes: int, disk: Disk):
        self._disk = disk
        self._pages = mmap.mmap(-1, num_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self._pages.madvise(mmap.MADV_HUGEPAGE)
        self.bytes: np.ndarray = np.frombuffer(self._pages, np.uint8)
        self._address = self.bytes.__array_interface__["data"][0]
        self._file = disk.open()
        weakref.finalize(self, disk.close, self._file).atexit = False  # the disk lives as long

    def begin_there(self, first: int, end: int) -> None:
        """A piece that nothing was written to is in the file from now on."""
        try:
            os.posix_fallocate(self._file, first, end - first)  # a full disk is known here, not by a signal later
        except OSError as error:
            raise self._disk.failed(error) from error
        self._disk.map(self._address + first, end - first, self._file, first)
        self._disk.moved_bytes += end - first

    def move_out(self, first: int, end: int, wanted: Callable[[], bool]) -> None:
        """Let a piece wait in the file. Args: wanted: is it still, once the disk has time for it?"""
        disk, size = self._disk, end - first
        try:
            os.posix_fallocate(self._file, first, size)  # a full disk is known here, not by a signal later
            view, done = self.bytes[first:end].data, 0
            while done < size:
                done += os.pwrite(self._file, view[done:], first + done)
            view.release()
        except OSError as error:
            raise disk.failed(error) from error
        disk.map(self._address + first, size, self._file, first)
        disk.moved_bytes += size
        disk.write_behind(self._file, first, size, wanted)

    def leave(self, first: int, end: int) -> None:
        """Take a waiting piece out of the resident set; it stays where it is."""
        self._pages.madvise(mmap.MADV_DONTNEED, first, end - first)

    def read_ahead(self, first: int, end: int) -> None:
        self._disk.read_ahead(self._file, first, end - first)

    def give_up(self, first: int, end: int) -> None:
        """What a waiting piece held is needed no more: its place is memory again."""
        self._disk.map(self._address + first, end - first, None, 0)
        self._pages.madvise(mmap.MADV_HUGEPAGE, first, end - first)
        self._disk.drop(self._file, first, end - first)
