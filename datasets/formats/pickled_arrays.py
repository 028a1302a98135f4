"""Pickles of numpy arrays, read by stand-ins: plain numbers, and no more of them than the pickle has bytes.

A pickle can run any program when it is read, and numpy's own classes believe what one says of their insides. The
readers of Planetoid's files and of torch's know no other names than these and a few of their own.
"""

import io
import pickle
import pickletools
import re
from collections.abc import Callable
from typing import Any

import numpy as np

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
