"""Read arrays that `torch.save` wrote, without torch, and without running anything that a file names.

A file is a pickle; what it may name is what makes numpy arrays (as in Planetoid's files) and tensors, and most of that
is a stand-in. Anything else, in any place of the file, is refused before it is looked up.

    archive/data.pkl, archive/data/0 …      since torch 1.6: a zip archive, tensors beside the pickle
    pickle pickle pickle pickle             before: magic number, version, system, then the object (arrays only)
"""

import functools
import math
import zipfile
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from distgnn.datasets.array_files import check_file, check_room, damaged
from distgnn.datasets.formats.pickled_arrays import NUMPY_NAMES, Names, PickledArray, load_pickle
from distgnn.errors import GraphFormatError, InputError

STORAGES: dict[str, Any] = {
    "LongStorage": np.int64, "IntStorage": np.int32, "ShortStorage": np.int16, "ByteStorage": np.uint8,
    "CharStorage": np.int8, "FloatStorage": np.float32, "DoubleStorage": np.float64, "BoolStorage": np.bool_,
}  # fmt: skip


def read_torch_arrays(path: Path, key: str | None = None) -> dict[str, np.ndarray]:
    """The arrays and tensors of the dictionary that a file holds; what is no array is left out.

    Args: key: read the dictionary that lies under this key of the file's; a single tensor is under "".
    """
    check_file(path)
    try:
        with open(path, "rb") as stream:
            if stream.read(2) == b"PK":
                with zipfile.ZipFile(stream) as archive:
                    content = _read_archive(path, archive)
            else:
                stream.seek(0)
                for _ in range(4):  # magic number, version of the form, facts about the system, the object
                    content = load_pickle(stream, KNOWN, functools.partial(_refuse_old, path))
    except (GraphFormatError, InputError):
        raise
    except Exception as error:  # damaged pickles raise nearly anything
        raise damaged(path, error) from error
    if isinstance(content, PickledArray | np.ndarray):
        content = {"": content}
    if key is not None and isinstance(content, dict):
        content = content.get(key)
    if not isinstance(content, dict):
        raise GraphFormatError(f"{path}: expected a dictionary of arrays, found {type(content).__name__}")
    made = {name: value.array if isinstance(value, PickledArray) else value for name, value in content.items()}
    return {
        str(name): value for name, value in made.items() if isinstance(value, np.ndarray) and value.dtype.kind in "biuf"
    }


def _read_archive(path: Path, archive: zipfile.ZipFile) -> Any:
    names = {name.partition("/")[2]: name for name in archive.namelist()}
    check_room(path, sum(info.file_size for info in archive.infolist()))

    def storage(kind: str, dtype: Any, key: str, _device: str, count: int) -> Any:
        if kind != "storage":
            return None
        return np.frombuffer(archive.read(names[f"data/{key!s}"]), dtype=dtype)[: int(count)]

    return load_pickle(archive.read(names["data.pkl"]), KNOWN, storage)


def _refuse_old(path: Path, *_: Any) -> NoReturn:
    raise GraphFormatError(f"{path}: tensors in the form of before torch 1.6 are not read: save it again")


def _strided(storage: np.ndarray, offset: int, size: tuple[Any, ...], stride: tuple[Any, ...], *_: Any) -> np.ndarray:
    """A tensor over a storage; both ends of it must lie inside, and it cannot have more numbers."""
    last = offset + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    outside = last >= len(storage) or math.prod(size) > len(storage)
    if min((offset, *size, *stride, 0)) < 0 or (0 not in size and outside):
        raise ValueError(f"a tensor of shape {size} is larger than its storage")
    strides = tuple(step * storage.itemsize for step in stride)
    return np.lib.stride_tricks.as_strided(storage[offset:], tuple(size), strides).copy()


KNOWN: Names = {
    **NUMPY_NAMES,
    **{("torch", name): dtype for name, dtype in STORAGES.items()},
    ("torch._utils", "_rebuild_tensor_v2"): _strided,
    ("collections", "OrderedDict"): dict,
    ("__builtin__", "bytes"): lambda: b"",  # as protocol 2 has an empty array's; of no other size
}
