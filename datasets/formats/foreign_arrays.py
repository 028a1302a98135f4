"""Arrays in other programs' files: numpy's pickles, DGL's and torch's tensors; nothing in a file is executed.

A pickle can run any program when it is read, and numpy's own classes believe what one says of their insides. The
readers of Planetoid's files and of torch's know no other names than these and a few of their own; most of these are
stand-ins. Anything else, in any place of a file, is refused before it is looked up.

What `dgl.data.utils.save_tensors` writes: u64 magic, u64 count, u64 count, then for each tensor u64 length of its name,
name, u64 magic, u64 0, i32 device, i32 device id, i32 D, u8 kind, u8 bits, u16 lanes, i64 [D] shape, i64 bytes, content

What `torch.save` writes:

    archive/data.pkl, archive/data/0 …      since torch 1.6: a zip archive, tensors beside the pickle
    pickle pickle pickle pickle             before: magic number, version, system, then the object (arrays only)
"""

import functools
import io
import math
import pickle
import pickletools
import re
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from distgnn.datasets.array_files import check_file, check_room, damaged
from distgnn.errors import GraphFormatError, InputError

Names = dict[tuple[str, str], Any]  # (module, name) -> what stands for it


class PickledDtype:
    """Stands for numpy's dtype: plain numbers only."""

    def __init__(self, name: str, *_: Any):
        if not re.fullmatch("[biuf][1248]", name):
            raise pickle.UnpicklingError(f"it has numbers of the type {name[:40]!r}")
        self.dtype: np.dtype[Any] = np.dtype(name)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.dtype = self.dtype.newbyteorder(">" if state[1] == ">" else "<")


class PickledArray:
    """Stands for numpy's array, of which a pickle could ask any size: `array` has as many numbers as it has bytes."""

    array: np.ndarray = np.empty(0)

    def __init__(self, *_: Any):
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, shape, kind, by_columns, content = state
        content = content.encode("latin1") if isinstance(content, str) else content
        self.array = np.frombuffer(content, kind.dtype).reshape(shape, order="F" if by_columns else "C")


NUMPY_NAMES: Names = {
    ("_codecs", "encode"): lambda text, _: text.encode("latin1"),  # how Python 3 writes bytes that Python 2 can read
    ("numpy", "dtype"): PickledDtype,
    ("numpy", "ndarray"): PickledArray,
    **dict.fromkeys([(f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")], PickledArray),
}


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream: Any, names: Names, persistent: Callable[..., Any] | None):
        super().__init__(stream, encoding="latin1")
        self._names, self._persistent = names, persistent

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._names:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which no array needs")
        return self._names[module, name]

    def persistent_load(self, pid: Any) -> Any:
        if self._persistent is None:
            raise pickle.UnpicklingError("it names an object outside of the file")
        return self._persistent(*pid)


def load_pickle(stream: Any, names: Names, persistent: Callable[..., Any] | None = None) -> Any:
    """The next object of a stream (or of bytes) of `names` and plain containers, looked through before it is run.

    Args: persistent: makes what lies beside the pickle of the words that name it.
    Raises: ValueError for one that asks for more places of its memory than it has bytes, and nearly anything for a
        damaged one.
    """
    stream = io.BytesIO(stream) if isinstance(stream, bytes) else stream
    start, size = stream.tell(), stream.seek(0, io.SEEK_END)
    stream.seek(start)
    for instruction, argument, _ in pickletools.genops(stream):
        if instruction.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > size:
            raise ValueError(f"it asks for {argument} places of memory")
    stream.seek(start)
    return _Unpickler(stream, names, persistent).load()


FILE, TENSOR = 0xDD5A9FBE3FA2443F, 0xDD5E40F096B4A13F
KINDS = {0: "i", 1: "u", 2: "f"}
MOST_TENSORS, MOST_DIMENSIONS = 1 << 16, 8


def read_dgl_tensors(path: Path) -> dict[str, np.ndarray]:
    """Name -> array. Raises: InputError for a missing file, GraphFormatError for a damaged one."""
    check_file(path)
    try:
        content = path.read_bytes()
        magic, count, again = struct.unpack_from("<QQQ", content)
        if magic != FILE or count > MOST_TENSORS or again != count:
            raise ValueError("no file of DGL's tensors")
        found, place = {}, 24
        for _ in range(count):
            (length,) = struct.unpack_from("<Q", content, place)
            if length > len(content):
                raise ValueError("a name is longer than the file")
            name = content[place + 8 : place + 8 + length].decode()
            place += 8 + length
            magic, _, _, _, dimensions, kind, bits, lanes = struct.unpack_from("<QQiiiBBH", content, place)
            place += 32
            if magic != TENSOR or not 0 <= dimensions <= MOST_DIMENSIONS or lanes != 1:
                raise ValueError("no tensor where one should be")
            shape = struct.unpack_from(f"<{dimensions}q", content, place)
            (size,) = struct.unpack_from("<q", content, place + 8 * dimensions)
            place += 8 * dimensions + 8
            dtype = np.dtype(f"<{KINDS[kind]}{bits // 8}")
            values = int(np.prod(shape, dtype=object))
            if min((0, *shape)) < 0 or values * dtype.itemsize != size or place + size > len(content):
                raise ValueError("a tensor is shorter than its header says")
            found[name] = np.frombuffer(content, dtype, values, place).reshape(shape)
            place += size
        return found
    except (ValueError, struct.error, TypeError, KeyError, OSError, UnicodeDecodeError) as error:
        raise damaged(path, error) from error


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
