"""Row kernels at memory speed: numpy arrays in and out, compiled by numba, parallel over target rows.

Ids int32 or int64; rows C-contiguous float32, float64 or bfloat16 (as uint16 bit patterns). Every kernel has a
slow twin in `reference`.
"""

if __name__ != "distgnn.kernels":
    raise ImportError("this folder is the package distgnn.kernels: import that name")

from . import reference
from .aggregate import spmm
from .arcs import sddmm
from .checks import self_check, warm
from .masks import dropout
from .memory import keep_freed_memory
from .rows import add_rows, pack_rows
from .structure import csr_from_edges, transpose_csr
from .threads import get_num_threads, set_num_threads

__all__ = [
    "add_rows",
    "csr_from_edges",
    "dropout",
    "get_num_threads",
    "keep_freed_memory",
    "pack_rows",
    "reference",
    "sddmm",
    "self_check",
    "set_num_threads",
    "spmm",
    "transpose_csr",
    "warm",
]
