"""A limit on this process's memory: what counts, and a thread that gives mapped file pages back.

What counts is the resident set, as the system counts it (VmRSS; its peak is VmHWM): memory of the process's own
(anonymous) and pages of mapped files. Mapped pages can be given back at any time, the file keeps them; the thread does
so whenever the resident set nears the limit, so the peak stays below it as long as the own memory does.
"""

from __future__ import annotations

import ctypes
import threading
from pathlib import Path

from distgnn.errors import InputError

LEAST = 500_000_000  # a process with numba alone takes a third of it
SHARE_FILLED = 0.8  # of the limit: from here on mapped pages are given back
INTERVAL_SECONDS = 0.01
PAGE = 4096
# MADV_DONTNEED of Linux's mman.h.
DONTNEED = 4


def resident() -> tuple[int, int]:
    """Bytes resident now, and how many of them are the process's own (not of mapped files)."""
    # In pages: the address space, what is resident of it, and how much of that are mapped files.
    fields = Path("/proc/self/statm").read_bytes().split()
    pages, mapped = int(fields[1]), int(fields[2])
    return pages * PAGE, (pages - mapped) * PAGE


class MemoryLimit:
    """While it is entered, gives mapped pages back when the resident set nears `limit` (bytes); keeps the peaks.

    Attributes: peak, peak_own: bytes resident at most since the last `take_peaks`, seen a hundred times a second.
    Raises: InputError for a limit of less than 500 MB.
    """

    def __init__(self, limit: int) -> None:
        if limit < LEAST:
            raise InputError(f"a memory limit of {limit} bytes is too little for anything: give at least 500MB")
        self.limit = limit
        self.peak = self.peak_own = 0
        self._end = threading.Event()
        # A thread, because what maps and reads is numpy and compiled code that knows of no limit.
        self._thread = threading.Thread(target=self._watch, daemon=True, name="distgnn-memory")
        self._madvise = ctypes.CDLL(None).madvise
        self._madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)

    def __enter__(self) -> MemoryLimit:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()

    def take_peaks(self) -> tuple[int, int]:
        """The peaks since the last call."""
        self._look()
        peaks = self.peak, self.peak_own
        self.peak = self.peak_own = 0
        return peaks

    def _watch(self) -> None:
        while not self._end.wait(INTERVAL_SECONDS):
            if self._look() > SHARE_FILLED * self.limit:
                self.give_back()

    def _look(self) -> int:
        size, own = resident()
        self.peak, self.peak_own = max(self.peak, size), max(self.peak_own, own)
        return size

    def give_back(self) -> None:
        """Drop the pages of all files mapped for sharing from the resident set; their contents stay in the files."""
        # Files mapped for sharing only: their pages are in the file or will be. Private pages would be lost.
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, rights, _, _, inode, *path = line.split(maxsplit=5)
            if rights[3] != "s" or inode == "0" or not path or path[0].startswith(("/dev/", "/memfd", "/SYSV")):
                continue
            begin, end = (int(bound, 16) for bound in span.split("-"))
            self._madvise(begin, end - begin, DONTNEED)
