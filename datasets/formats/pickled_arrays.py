"""What numpy puts into a pickle, read by stand-ins: plain numbers, and no more of them than the pickle has bytes.

A pickle can run any program when it is read, and numpy's own classes believe what one says of their insides. The
readers of Planetoid's files and of torch's know no other names than these and a few of their own.
"""

import pickle
import pickletools
import re
from typing import Any

import numpy as np


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


def _latin1_bytes(text: str, _encoding: str) -> bytes:
    """Stands for `_codecs.encode`, by which Python 3 writes bytes into a pickle that Python 2 can read."""
    return text.encode("latin1")


NUMPY_NAMES: dict[tuple[str, str], Any] = {
    ("_codecs", "encode"): _latin1_bytes,
    ("numpy", "dtype"): PickledDtype,
    ("numpy", "ndarray"): PickledArray,
    **dict.fromkeys([(f"numpy.{core}.multiarray", "_reconstruct") for core in ("core", "_core")], PickledArray),
}


def check_instructions(content: Any, num_bytes: int) -> None:
    """Look through a pickle (bytes or a stream) before it is run.

    Raises: ValueError for one that asks for more places of its memory than it has bytes.
    """
    for instruction, argument, _ in pickletools.genops(content):
        if instruction.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > num_bytes:
            raise ValueError(f"it asks for {argument} places of memory")
