"""Kept machine code: one file for each kernel and signature, which is whole or not used.

    digest     32 bytes   SHA-256 of the rest
    identity   32 bytes   SHA-256 of what it was made from and for: versions, source files, signature, processor
    code                  pickle of numba's form of a compiled kernel

numba keeps an index of numbered files, and loads whatever they hold: a cut file ends every later run, and half of a
machine code is executed. Here the name follows from the signature, a file is written under another name and renamed,
and nothing of a file is unpickled before its digest and its owner are known.

Whose machine code is executed: a folder of compiled kernels that somebody else can write is not read.

numba's cache is a folder of pickles. Trusted is what belongs to this user, to root, or to the owner of the program's
own files (who decides what is executed anyway), and what nobody else can write: neither everybody, nor a group with
other members. A group of one's own, as many systems give every user, is no other.
"""

import functools
import hashlib
import os
import pickle
import platform
import stat
import tempfile
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.serialize import dumps

try:
    import grp
    import pwd
except ImportError:  # pragma: no cover - Windows
    grp = pwd = None  # type: ignore[assignment]


@functools.cache
def doubt(folder: str, source: str) -> str | None:
    """Why the kernels in `folder` may be somebody else's; None where there is no reason to think so.

    Args: source: file of the program's own, whose owner is trusted.
    """
    if grp is None:
        return None
    try:
        return doubt_of(os.stat(folder), source, "the folder")
    except OSError:
        return None


def doubt_of(found: os.stat_result, source: str, what: str) -> str | None:
    """The same of a folder or an open file, which a reason calls `what`. Raises: OSError without the source."""
    if grp is None:
        return None
    if found.st_uid not in (os.geteuid(), 0, os.stat(source).st_uid):
        return f"{what} belongs to {_user(found.st_uid)}"
    if found.st_mode & stat.S_IWOTH:
        return "everybody can write there"
    if found.st_mode & stat.S_IWGRP and not _own_group(found.st_gid, found.st_uid):
        return f"group {found.st_gid} can write there"
    return None


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _own_group(gid: int, uid: int) -> bool:
    """Whether a group has no members but its owner."""
    try:
        group, name = grp.getgrgid(gid), pwd.getpwuid(uid).pw_name
    except KeyError:
        return False
    return group.gr_name == name and set(group.gr_mem) <= {name}


DIGEST = 32
VERSIONS = (platform.python_version(), numba.__version__, llvmlite.__version__)


class DamagedError(Exception):
    """A file of kept code that cannot be used; its text names the file and says why."""


class KeptCode:
    """The kept forms of one kernel. In place of numba's `IndexDataCacheFile`, for loading and saving.

    Args:
        name: of the kernel's files; stamp: of all source files that the machine code was made from.
        source: file of the program's own, whose owner is trusted beside this user and root.
    """

    def __init__(self, folder: Path, name: str, stamp: str, source: str):
        self.folder, self.name, self.stamp, self.source = folder, name, stamp, source

    def file_of(self, key: Any) -> Path:
        """Where the code for a signature and a processor is kept."""
        return self.folder / f"{self.name}.{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"

    def load(self, key: Any) -> Any:
        """What `save` was given, or None where there is nothing of this program. Raises: DamagedError."""
        file = self.file_of(key)
        try:
            with open(file, "rb") as stream:
                reason = doubt_of(os.fstat(stream.fileno()), self.source, "it")
                content = stream.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise DamagedError(f"{file} cannot be read ({error.strerror})") from error
        if reason is not None:
            raise DamagedError(f"{file} is not read ({reason})")
        rest = content[DIGEST:]
        if len(rest) < DIGEST or content[:DIGEST] != hashlib.sha256(rest).digest():
            raise DamagedError(f"{file} is damaged ({len(content)} bytes)")
        return pickle.loads(rest[DIGEST:]) if rest[:DIGEST] == self._identity(key) else None

    def save(self, key: Any, code: Any) -> None:
        """Keep the code for a key, in place of any other. Raises: OSError."""
        file, rest = self.file_of(key), self._identity(key) + dumps(code)
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(f"{file.name}.*.part"):  # of a writer that was killed: the lock is ours
            left.unlink(missing_ok=True)
        number, part = tempfile.mkstemp(".part", f"{file.name}.", self.folder)
        try:
            with open(number, "wb") as stream:
                stream.write(hashlib.sha256(rest).digest() + rest)
            os.chmod(part, 0o644)
            os.replace(part, file)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise

    def _identity(self, key: Any) -> bytes:
        return hashlib.sha256(repr((VERSIONS, self.stamp, key)).encode()).digest()
