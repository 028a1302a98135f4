"""Workspace: arrays on disk and finished phases, beside the output, so that a killed run can be gone on with.

    .parts.work/
        settings.json       what the run does, to which source; other settings start anew
        <phase>.json        a finished phase: its facts, and the arrays that are there from then on
        <array>.bin         an array, mapped

A folder without its phase's file holds nothing that counts. What a process wrote stays when it is killed (the system
has it); after a power cut the folder should be removed. Records carry a checksum, and arrays must have the size that
their records say: where anything is missing or damaged, the run starts anew. The numbers in arrays are not checked.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.errors import InputError
from distgnn.kernels.runtime.memory import advise
from distgnn.system.atomic import flock
from distgnn.system.regular_file import read_text

OURS = re.compile(r"lock|parts|\w+\.(json|json\.new|bin)")

LEAST = 500_000_000  # a process with numba alone takes a third of it
SHARE_FILLED = 0.8  # of the limit: from here on mapped pages are given back
INTERVAL_SECONDS = 0.01
PAGE = 4096
# MADV_DONTNEED of Linux's mman.h.
DONTNEED = 4


class Workspace:
    """One run's folder; enter it to hold it alone. An error removes it, an interrupt or a kill does not.

    Args: folder: where; settings: what JSON can hold; a folder left with the same settings is taken over.
    """

    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self.folder, self._settings = Path(folder), json.loads(json.dumps(settings))
        self._arrays: dict[str, list] = {}
        self.resumed: list[str] = []

    def __enter__(self) -> Workspace:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR, 0o666)
            # The system drops the lock when the process ends, however it ends.
            flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{self.folder}: another run is at work there") from None
        except OSError as error:
            raise InputError(f"cannot write {self.folder}: {error.strerror or error}") from error
        try:
            # Nothing that others put here is ever removed.
            foreign = sorted(path.name for path in self.folder.iterdir() if not OURS.fullmatch(path.name))
            if foreign or self.folder.is_symlink():
                what = f"{foreign[0]} in it is not one of ours" if foreign else "it is a link"
                raise InputError(f"{self.folder} is needed for work on disk, but {what}: move it away")
            # Same settings, same source: what is finished counts. Anything else starts anew.
            if self._read("settings") != self._settings or not self._take_over():
                for path in self.folder.iterdir():
                    if path.name != "lock":
                        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                self._write("settings", self._settings)
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        # Errors of the input would come again; an interrupt (no Exception) leaves the work to be gone on with.
        if kind is not None and issubclass(kind, Exception):
            self.remove()
        os.close(self._lock)

    def _take_over(self) -> bool:
        """Count what an earlier run had finished; False, and nothing, where a record or an array is not whole."""
        found = {path.stem: self._read(path.stem) for path in self.folder.glob("*.json")}
        if None in found.values():
            return False
        phases = {name: record for name, record in found.items() if "phase" in record}
        # In the order in which they were finished: of two records of a name the later one counts.
        order = sorted(phases, key=lambda name: phases[name]["number"])
        arrays: dict[str, list] = {}
        for number, name in enumerate(order):
            if phases[name]["number"] != number:  # one between is missing
                return False
            arrays |= phases[name]["arrays"]
            for gone in phases[name]["drop"]:
                arrays.pop(gone, None)
        if not all(self._is_whole(name, *kind) for name, kind in arrays.items()):
            return False
        self.resumed, self._arrays = order, arrays
        return True

    def _is_whole(self, name: str, shape: list[int], dtype: str) -> bool:
        path = self.folder / f"{name}.bin"
        return path.is_file() and path.stat().st_size == _num_bytes(shape, dtype)

    def _read(self, name: str) -> Any:
        """A record; None where there is none, or it is damaged."""
        try:
            found = json.loads(read_text(self.folder / f"{name}.json"))
            return found["record"] if found["sha256"] == _digest(found["record"]) else None
        except (OSError, ValueError, RecursionError, KeyError, TypeError):
            return None

    def _write(self, name: str, content: dict) -> None:
        temporary = self.folder / f"{name}.json.new"
        temporary.write_text(json.dumps({"sha256": _digest(content), "record": content}))
        # Renamed when whole: a record is there or it is not.
        temporary.rename(self.folder / f"{name}.json")

    def facts(self, phase: str) -> dict[str, Any] | None:
        """What `finish` was told of a phase; None if it is not finished."""
        record = self._read(phase)
        return None if record is None else record["phase"]

    def note(self, name: str, content: dict[str, Any]) -> None:
        """Keep something that is no phase's result."""
        self._write(name, {"note": content})

    def notes(self, name: str) -> dict[str, Any]:
        """What `note` was told; {} if nothing."""
        return (self._read(name) or {"note": {}})["note"]

    def finish(
        self, phase: str, facts: dict[str, Any], arrays: tuple[str, ...] = (), drop: tuple[str, ...] = ()
    ) -> None:
        """Note that a phase is done: its arrays count from now on, and those to drop go."""
        mine = {name: self._arrays[name] for name in arrays}
        self._write(phase, {"number": len(self.resumed), "phase": facts, "arrays": mine, "drop": list(drop)})
        self.resumed.append(phase)
        # Only after the record: until then an earlier phase may have to be gone on from.
        for name in drop:
            self.drop(name)

    def empty(self, name: str, shape: Any, dtype: Any) -> np.ndarray:
        """A new array of zeros on disk, mapped. Raises: InputError if the disk has no room for it."""
        shape = (int(shape),) if np.ndim(shape) == 0 else tuple(int(size) for size in shape)
        self._arrays[name] = [list(shape), np.dtype(dtype).name]
        path, size = self.folder / f"{name}.bin", _num_bytes(shape, dtype)
        try:
            with open(path, "wb") as file:
                if size:
                    # Room is taken now: a full disk is an error here, where it can be told, not a bus error when a
                    # page is written.
                    os.posix_fallocate(file.fileno(), 0, size)
        except OSError as error:
            raise InputError(
                f"{self.folder}: {error.strerror or error} ({size / 1e9:.1f} GB for {name} were to be put there)"
            ) from error
        return self.load(name)

    def load(self, name: str) -> np.ndarray:
        shape, dtype = self._arrays[name]
        # An empty file cannot be mapped.
        if 0 in shape:
            return np.zeros(shape, dtype=dtype)
        # "r+" maps for sharing: what is written is in the file, and `MemoryLimit` may give the pages back.
        return np.asarray(np.memmap(self.folder / f"{name}.bin", dtype=dtype, mode="r+", shape=tuple(shape)))

    def shorten(self, name: str, new_name: str, length: int) -> None:
        """Keep the first entries of an array [n], under another name."""
        dtype = self._arrays.pop(name)[1]
        path = self.folder / f"{name}.bin"
        os.truncate(path, length * np.dtype(dtype).itemsize)
        path.rename(self.folder / f"{new_name}.bin")
        self._arrays[new_name] = [[length], dtype]

    def has(self, name: str) -> bool:
        return (self.folder / f"{name}.bin").is_file()

    def drop(self, name: str) -> None:
        self._arrays.pop(name, None)
        (self.folder / f"{name}.bin").unlink(missing_ok=True)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _num_bytes(shape: Any, dtype: Any) -> int:
    return int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize


def resident() -> tuple[int, int]:
    """Bytes resident now, and how many of them are the process's own (not of mapped files)."""
    # In pages: the address space, what is resident of it, and how much of that are mapped files.
    fields = Path("/proc/self/statm").read_bytes().split()
    pages, mapped = int(fields[1]), int(fields[2])
    return pages * PAGE, (pages - mapped) * PAGE


class MemoryLimit:
    """While it is entered, gives mapped pages back when the resident set nears `limit` (bytes); keeps the peaks.

    Attributes: peak, peak_own: bytes resident at most since the last `take_peaks`, seen a hundred times a second.
    """

    def __init__(self, limit: int) -> None:
        if limit < LEAST:
            raise InputError(f"a memory limit of {limit} bytes is too little for anything: give at least 500MB")
        self.limit = limit
        self.peak = self.peak_own = 0
        self._end = threading.Event()
        # A thread, because what maps and reads is numpy and compiled code that knows of no limit.
        self._thread = threading.Thread(target=self._watch, daemon=True, name="distgnn-memory")

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
            advise(begin, end - begin, DONTNEED)
