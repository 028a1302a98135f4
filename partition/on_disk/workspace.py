"""Arrays on disk in place of memory, and a limit on what is resident of them.

A workspace lies in the folder that the run writes: whoever removes what a killed run left removes it, too.
"""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.errors import InputError
from distgnn.kernels.runtime.memory import advise

LEAST = 500_000_000  # a process with numba alone takes a third of it
SHARE_FILLED = 0.8  # of the limit: from here on mapped pages are given back
INTERVAL_SECONDS = 0.01
PAGE = 4096
# MADV_DONTNEED of Linux's mman.h.
DONTNEED = 4


class Workspace:
    """Named arrays in files of a folder, which is there while it is entered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Workspace:
        self.folder.mkdir()
        return self

    def __exit__(self, *error: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def empty(self, name: str, shape: Any, dtype: Any) -> np.ndarray:
        """A new array of zeros on disk, mapped. Raises: InputError if the disk has no room for it."""
        shape = (int(shape),) if np.ndim(shape) == 0 else tuple(int(size) for size in shape)
        path, size = self.folder / f"{name}.bin", int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
        # An empty file cannot be mapped.
        if size == 0:
            return np.zeros(shape, dtype=dtype)
        try:
            with open(path, "wb") as file:
                # Room is taken now: a full disk is an error here, where it can be told, not a bus error when a page is
                # written.
                os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise InputError(
                f"{self.folder.parent}: {error.strerror or error} ({size / 1e9:.1f} GB for {name} were to be put there)"
            ) from error
        # "r+" maps for sharing: what is written is in the file, and `MemoryLimit` may give the pages back.
        return np.asarray(np.memmap(path, dtype=dtype, mode="r+", shape=shape))

    def drop(self, *names: str) -> None:
        """Remove files; the disk has their room again when nobody has the arrays any more."""
        for name in names:
            (self.folder / f"{name}.bin").unlink(missing_ok=True)


def resident() -> tuple[int, int]:
    """Bytes resident now, and how many of them are the process's own (not of mapped files)."""
    # In pages: the address space, what is resident of it, and how much of that are mapped files.
    fields = Path("/proc/self/statm").read_bytes().split()
    pages, mapped = int(fields[1]), int(fields[2])
    return pages * PAGE, (pages - mapped) * PAGE


class MemoryLimit:
    """While it is entered, gives mapped pages back when the resident set nears `limit` (bytes)."""

    def __init__(self, limit: int) -> None:
        if limit < LEAST:
            raise InputError(f"a memory limit of {limit} bytes is too little for anything: give at least 500MB")
        self.limit = limit
        self._end = threading.Event()
        # A thread, because what maps and reads is numpy and compiled code that knows of no limit.
        self._thread = threading.Thread(target=self._watch, daemon=True, name="distgnn-memory")

    def __enter__(self) -> MemoryLimit:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.wait(INTERVAL_SECONDS):
            if resident()[0] > SHARE_FILLED * self.limit:
                self.give_back()

    def give_back(self) -> None:
        """Drop the pages of all files mapped for sharing from the resident set; their contents stay in the files."""
        # Files mapped for sharing only: their pages are in the file or will be. Private pages would be lost.
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, rights, _, _, inode, *path = line.split(maxsplit=5)
            if rights[3] != "s" or inode == "0" or not path or path[0].startswith(("/dev/", "/memfd", "/SYSV")):
                continue
            begin, end = (int(bound, 16) for bound in span.split("-"))
            advise(begin, end - begin, DONTNEED)
