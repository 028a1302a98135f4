"""Read .npy and .npz arrays that nobody has checked: no pickle, mapped where the format allows, one-line errors."""

import json
import struct
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np

from distgnn.errors import GraphFormatError, InputError
from distgnn.system.free_memory import available_bytes

MOST_PACKED = 1032  # bytes that deflate can make of one


def damaged(path: Path, error: Exception) -> GraphFormatError:
    """The error for a file that does not read."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if "pickle" in reason or "magic string" in reason:
        reason = "it holds Python objects or is no array file"
    return GraphFormatError(f"{path}: damaged or not the expected file ({reason[:160]}); write or download it again")


def is_present(path: Path) -> bool:
    """Whether there is such a file. Raises: InputError for a pipe, a device or a folder: reading one may never end."""
    if path.is_file():
        return True
    if path.exists():
        raise InputError(f"{path}: expected a regular file, found a folder, a pipe or a device")
    return False


def check_file(path: Path) -> None:
    """Raise InputError if a file is missing, or is no regular file."""
    if not is_present(path):
        raise InputError(f"{path}: no such file")


def check_room(path: Path, num_bytes: int) -> None:
    """Raise InputError if a compressed file needs more memory than there is: it may unpack to 1032 times its size."""
    free = available_bytes()
    if num_bytes > free:
        raise InputError(
            f"{path}: unpacks to more than the {free / 1e9:.3g} GB of memory that are free "
            f"(at least {num_bytes / 1e9:.3g} GB): store it uncompressed as .npy, which is mapped"
        )


def check_header(path: Path) -> None:
    """Raise ValueError for a .npy file whose header promises what the file cannot hold, or what no array can be."""
    with open(path, "rb") as stream:
        _, needed = _read_header(stream)
        if stream.tell() + needed > path.stat().st_size:
            raise ValueError("the array is shorter than its header says")


def read_npy(path: Path) -> np.ndarray:
    """An array mapped from a .npy file (read-only), never unpickled."""
    check_file(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check_header(path)
            return np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # numpy's header parser raises nearly anything on damaged bytes
        raise damaged(path, error) from error


def read_npz(path: Path, required: tuple[str, ...] = ()) -> dict[str, np.ndarray]:
    """All arrays of a .npz file; uncompressed members are mapped where they lie, others are read."""
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            missing = [name for name in required if name not in members]
            if missing:
                raise GraphFormatError(f"{path}: lacks the array {missing[0]!r}; it holds {', '.join(sorted(members))}")
            return {name: _read_member(path, archive, info) for name, info in members.items()}
    except (GraphFormatError, InputError):
        raise
    except Exception as error:  # as above, and zipfile and zlib besides
        raise damaged(path, error) from error


def npz_shapes(path: Path, required: tuple[str, ...]) -> dict[str, tuple[int, ...]]:
    """The shapes of some arrays of a .npz file, which are not read."""
    check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            shapes = {}
            for name in required:
                with archive.open(f"{name}.npy") as stream:
                    shapes[name] = _read_header(stream)[0][0]
            return shapes
    except Exception as error:  # as above
        raise damaged(path, error) from error


def _read_header(stream: IO[bytes]) -> tuple[tuple[Any, bool, np.dtype], int]:
    """(shape, order, type) of an array, and the bytes that it fills by its header; nothing is made yet."""
    version = np.lib.format.read_magic(stream)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"unknown array format version {version}")
    shape, fortran, dtype = readers[version](stream)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if dtype.itemsize == 0:
        raise ValueError("its entries are 0 bytes wide")  # mapping one ends the process: numpy divides by the width
    if any(size < 0 for size in shape):
        raise ValueError(f"an array cannot have the shape {shape}")
    return (shape, fortran, dtype), int(np.prod(shape, dtype=object)) * dtype.itemsize


def _read_member(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    mapped = info.compress_type == zipfile.ZIP_STORED and info.file_size > 1 << 16
    if not mapped and info.file_size > MOST_PACKED * info.compress_size + 1024:
        raise ValueError(f"{info.filename} says that it unpacks to {info.file_size} bytes, which it cannot")
    with archive.open(info) as stream:
        (shape, fortran, dtype), needed = _read_header(stream)
        header_bytes = stream.tell()
    if header_bytes * mapped + needed > info.file_size:
        raise ValueError("an array is shorter than its header says")
    if mapped:  # where it lies: the local header says where its bytes begin
        with open(path, "rb") as file:
            file.seek(info.header_offset)
            name_bytes, extra_bytes = struct.unpack("<HH", file.read(30)[26:30])
        offset = info.header_offset + 30 + name_bytes + extra_bytes + header_bytes
        return np.memmap(path, dtype=dtype, mode="r", offset=offset, shape=shape, order="F" if fortran else "C")
    check_room(path, needed)
    with archive.open(info) as stream:
        return np.lib.format.read_array(stream, allow_pickle=False)


def read_json(path: Path) -> dict[str, Any]:
    check_file(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError, RecursionError) as error:
        raise damaged(path, error) from error
    if not isinstance(content, dict):
        raise GraphFormatError(f"{path}: expected a JSON object, found {type(content).__name__}")
    return content
