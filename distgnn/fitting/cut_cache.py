"""Cuts that are kept: partition folders by the content of their graph and the options of the cut, bounded in size.

    ~/.cache/distgnn/fit/           or DISTGNN_CACHE
        cuts/KEY/
            about.json              graph, options, lines to say again; its time is the last use's
            parts/                  the partition folder
            .lock                   held by who cuts, and shared by who uses it
        graphs/CONTENT.json         of a graph in files: whether it has a split, lines to say again
        runs/KEY-MODEL-…/           run folders of `dg.fit` without `out`; one that was stopped stays

Entries that were not used for the longest time go first, when all together pass DISTGNN_CACHE_SIZE.
"""

import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distgnn.errors import DistGNNError, InputError
from distgnn.partition import load_part, read_manifest
from distgnn.system.atomic import flock, replace_file
from distgnn.system.processor import available_cores
from distgnn.system.units import parse_bytes

MOST = "20GB"
WEEK = 7 * 86400.0


@dataclass(frozen=True)
class Entry:
    """A kept cut, or a run folder. Args: what: in words; used: seconds since the epoch; num_bytes: on disk."""

    path: Path
    what: str
    used: float
    num_bytes: int


def cache_root() -> Path:
    own = os.environ.get("DISTGNN_CACHE")
    if own:
        return Path(own).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "distgnn", "fit")


def most_bytes() -> int:
    """Bytes that the cache may have. Raises: InputError for a DISTGNN_CACHE_SIZE that is no size."""
    return parse_bytes(os.environ.get("DISTGNN_CACHE_SIZE") or MOST)


def entries() -> list[Entry]:
    """What is kept, the one used last first."""
    root = cache_root()
    found = []
    for path in (path for kind in ("cuts", "runs") for path in (root / kind).glob("*") if path.is_dir()):
        marker = path / ("about.json" if path.parent.name == "cuts" else "config.toml")
        what = f"run of {path.name.split('-', 1)[-1].rpartition('-')[0]}"
        if path.parent.name == "cuts":
            about = read_json(marker) or {}
            what = f"{about.get('graph', 'unfinished cut')}, {about.get('num_parts', '?')} parts"
        try:
            used = marker.stat().st_mtime
        except OSError:
            used = path.stat().st_mtime
        size = 0
        for file in path.rglob("*"):
            with suppress(OSError):  # removed meanwhile
                size += file.stat().st_size if file.is_file() else 0
        found.append(Entry(path, what, used, size))
    return sorted(found, key=lambda one: -one.used)


def clear(keep_bytes: int = 0, but: Path | None = None) -> tuple[list[Entry], list[Entry]]:
    """Remove entries, the oldest first, until at most `keep_bytes` are left; returns what went, and what is in use.

    Args: but: an entry that stays.
    """
    kept, gone, busy = entries(), [], []
    total = sum(one.num_bytes for one in kept)
    for one in reversed(kept):
        if total <= keep_bytes or one.path == but:
            continue
        if not _remove(one):
            busy.append(one)
            continue
        gone.append(one)
        total -= one.num_bytes
    return gone, busy


def _remove(entry: Entry) -> bool:
    """Remove an entry; False where somebody uses it, or may: without locks for a week."""
    folder = entry.path
    try:
        handle = _open_lock(folder)
    except OSError:
        return not folder.exists()
    try:
        if not flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB) and time.time() - entry.used < WEEK:
            return False
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def hold(folder: Path) -> int:
    """Keep an entry from being removed: a descriptor, for `give_up`."""
    handle = _open_lock(folder)
    flock(handle, fcntl.LOCK_SH)
    return handle


def _open_lock(folder: Path) -> int:
    return os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)


def give_up(folder: str | Path, handle: int | None = None) -> None:
    """Remove a run folder of the cache that nobody needs any more. Args: handle: of `hold`."""
    shutil.rmtree(folder, ignore_errors=True)
    if handle is not None:
        os.close(handle)


@contextmanager
def kept_cut(
    key: str, about: dict[str, Any], cut: Callable[[Path], list[str]], say: Callable[[str], None]
) -> Iterator[Path]:
    """The partition folder of a key, cut where there is none yet; it stays while the block runs.

    Args:
        about: what `distgnn cache` says of it; cut: writes the folder and returns lines about the graph; say: is called
            with these lines, at each use.
    """
    entry = cache_root() / "cuts" / key
    with _lock(entry, say) as handle:
        known, wrong = read_json(entry / "about.json"), _damage(entry / "parts")
        if known is not None and wrong:
            flock(handle, fcntl.LOCK_EX)  # who uses it goes on
            known, wrong = read_json(entry / "about.json"), _damage(entry / "parts")  # another may have cut it anew
        if known is None or wrong:
            if known is not None:
                say(f"the kept cut is damaged, and made anew ({wrong})")
            shutil.rmtree(entry / "parts", ignore_errors=True)
            known = about | {"lines": cut(entry / "parts")}
            replace_file(entry / "about.json", json.dumps(known, indent=1).encode())
            say(f"the cut is kept in {entry / 'parts'}")
        else:
            os.utime(entry / "about.json")
            say(f"the cut is in the cache ({entry / 'parts'})")
        for line in known["lines"]:
            say(line)
        flock(handle, fcntl.LOCK_SH)
        clear(most_bytes(), but=entry)
        yield entry / "parts"


def _damage(parts: Path) -> str:
    """What is wrong with a kept partition folder: every file is read; empty: nothing."""
    try:
        count = read_manifest(parts)["num_parts"]
        with ThreadPoolExecutor(available_cores()) as pool:
            list(pool.map(lambda part: load_part(parts, part).part_id, range(count)))
    except DistGNNError as error:
        return str(error)
    return ""


@contextmanager
def _lock(entry: Path, say: Callable[[str], None]) -> Iterator[int]:
    try:
        entry.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = _open_lock(entry)
    except OSError as error:
        raise InputError(
            f"cannot keep the cut in {entry}: {error.strerror}; set DISTGNN_CACHE to a folder that can be written"
        ) from error
    try:
        try:
            if not flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB):
                say(f"{entry.parent} is on a file system without locks: do not cut the same graph twice at a time")
        except BlockingIOError:
            if not (entry / "about.json").is_file():
                say("another process cuts this graph: waiting for it")
                flock(handle, fcntl.LOCK_EX)
            else:
                flock(handle, fcntl.LOCK_SH)
        yield handle
    finally:
        os.close(handle)


def read_json(path: Path) -> Any:
    """The content of a file of the cache; None where there is none, or it is damaged."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
