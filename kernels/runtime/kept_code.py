"""Kept machine code: one file for each kernel and signature, which is whole or not used.

    digest     32 bytes   SHA-256 of the rest
    identity   32 bytes   SHA-256 of what it was made from and for: versions, source files, signature, processor
    code                  pickle of numba's form of a compiled kernel

numba keeps an index of numbered files, and loads whatever they hold: a cut file ends every later run, and half of a
machine code is executed. Here the name follows from the signature, a file is written under another name and renamed,
and nothing of a file is unpickled before its digest and its owner are known.
"""

import hashlib
import os
import pickle
import platform
import tempfile
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.serialize import dumps

from distgnn.kernels.runtime.trust import doubt_of

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
