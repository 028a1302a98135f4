"""The border: what callers hand in becomes what kernels take, or a ValueError that says what was wrong."""

import math

import numpy as np
from numpy.typing import DTypeLike

from distgnn.kernels.runtime.tuning import held_tuning

CACHE_LINE = 64
FLOATS = (np.float32, np.float64)
ROWS = (*FLOATS, np.uint16)  # uint16: bfloat16 bit patterns


class _Writable:
    """A view on memory under a dtype that claims to be writable; keeps its owner alive."""

    def __init__(self, array: np.ndarray) -> None:
        # (address, read-only): the same address with the second set to False. np.asarray builds an array on it, without
        # a copy.
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface
        self.owner = array


def thaw(array: np.ndarray) -> np.ndarray:
    """The same memory as a plain writable C-contiguous ndarray.

    numba compiles a second version of a kernel for read-only (memory-mapped) arrays. Kernels never write their
    inputs, so for these the flag is dropped instead.
    """
    array = np.ascontiguousarray(array)
    # A view into a packed record: rare, and a copy is cheaper than a kernel for unaligned arrays.
    if not array.flags.aligned:
        array = array.copy()
    if not array.flags.writeable:
        return np.asarray(_Writable(array))
    return array if type(array) is np.ndarray else array.view(np.ndarray)


def indptr_array(indptr: np.ndarray) -> np.ndarray:
    """int64 [R + 1]; a slice of a longer indptr is fine."""
    # Always int64: V + 1 numbers, and one compiled kernel instead of two.
    indptr = thaw(np.asarray(indptr, np.int64))
    if indptr.ndim != 1 or len(indptr) == 0:
        raise ValueError(f"indptr must have shape [num_rows + 1], got {indptr.shape}")
    return indptr


def index_array(indices: np.ndarray, name: str = "indices") -> np.ndarray:
    """int32 or int64 [E], kept in the width it has."""
    indices = np.asarray(indices)
    if indices.dtype not in (np.int32, np.int64):
        if indices.dtype.kind not in "iu" and indices.size:
            raise ValueError(f"{name} must be integers, got {indices.dtype}")
        indices = indices.astype(np.int64)
    if indices.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {indices.shape}")
    return thaw(indices)


def row_array(feats: np.ndarray | None, name: str = "feats", dtypes: tuple = FLOATS) -> np.ndarray:
    """float32 or float64 [N, D], C-contiguous."""
    feats = np.asarray(feats)
    if feats.ndim != 2:
        raise ValueError(f"{name} must have shape [rows, width], got {feats.shape}")
    # No silent conversion of rows: it would double the memory of the largest arrays there are.
    if feats.dtype not in dtypes:
        raise ValueError(f"{name} must be {' or '.join(np.dtype(d).name for d in dtypes)}, got {feats.dtype}")
    return thaw(feats)


def flat_rows(array: np.ndarray) -> np.ndarray:
    """[N, …] as [N, D]; by width, not -1: there may be no rows."""
    return array.reshape(len(array), math.prod(array.shape[1:]))


def widened(rows: np.ndarray) -> np.ndarray:
    """bfloat16 bit patterns as float32; anything else as it is."""
    return (rows.astype(np.uint32) << 16).view(np.float32) if rows.dtype == np.uint16 else rows


def sums_dtype(feats: np.ndarray) -> np.dtype:
    """What rows of this array are summed in."""
    return np.dtype(np.float32) if feats.dtype == np.uint16 else feats.dtype


def vector(values: np.ndarray | None, length: int, dtype: DTypeLike, name: str) -> np.ndarray:
    """[length] of `dtype`, or an empty array for None."""
    if values is None:
        return np.empty(0, dtype)
    values = thaw(np.asarray(values, dtype))
    if values.shape != (length,):
        raise ValueError(f"{name} must have shape [{length}], got {values.shape}")
    return values


def empty_rows(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """A new array whose first element begins a cache line, as torch's do and numpy's do not.

    Rows of 16 float32 and multiples then never lie across one line more than they need: gathering rows of 256 takes
    a quarter less time than from an array 16 bytes off (RMAT, 8.4 M arcs, 2 threads: 0.082 s, 0.108 s).
    """
    num_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.empty(num_bytes + CACHE_LINE, np.uint8)
    # Some bytes more than asked for, and a view from the first one that begins a line; the view keeps the whole alive.
    first = -memory.__array_interface__["data"][0] % CACHE_LINE
    return memory[first : first + num_bytes].view(dtype).reshape(shape)


def goes_past_caches(rows: np.ndarray) -> bool:
    """Is a result so large that it is better written past the caches, and does each of its rows begin with a line?"""
    return rows.nbytes >= held_tuning().past_caches and on_lines(rows)


def on_lines(rows: np.ndarray) -> bool:
    """Does each row begin with a cache line?"""
    return rows.__array_interface__["data"][0] % CACHE_LINE == 0 and rows.strides[0] % CACHE_LINE == 0


def output(
    out: np.ndarray | None, shape: tuple[int, ...], dtype: DTypeLike, name: str = "out", zero: bool = False
) -> np.ndarray:
    """A new array, or the caller's after checking that a kernel may write it in place."""
    if out is None:
        new = empty_rows(shape, dtype)
        if zero:
            new[...] = 0
        return new
    if out.shape != tuple(shape) or out.dtype != dtype:
        raise ValueError(f"{name} must be {np.dtype(dtype).name} {tuple(shape)}, got {out.dtype} {out.shape}")
    if not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned):
        raise ValueError(f"{name} must be C-contiguous, aligned and writable")
    return out
