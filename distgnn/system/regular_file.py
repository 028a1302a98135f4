"""Text of a file that others named: only a regular file is read. A pipe waits for a writer, and a device has no end."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from distgnn.errors import InputError

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
