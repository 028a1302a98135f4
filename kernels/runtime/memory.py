"""Keep freed memory: a large new array costs page faults each time, unless malloc holds on to what was freed.

glibc gives every block above some megabytes back to the kernel when it is freed; the next result of the same size is
then faulted in and zeroed page by page. Measured (2-core Zen 4, 262,144 x 256 float32, fresh results, median):
torch.relu 137 ms before, 28 ms after; filling a new numpy array 34 ms, 9 ms.
(A sum of 100 columns took 112 ms into a fresh result, 66 ms into a reused one.)
The price: memory that was used once stays with the process, up to its peak.

Pages of 2 MB do the rest: a fresh block of 256 MiB is 128 faults then instead of 65,536, and gathering rows needs
fewer page entries. numpy asks for them by itself; torch does if THP_MEM_ALLOC_ENABLE=1 is in the environment when it
is loaded, which `distgnn` and the ranks it starts have (launch.torch_environment). Measured (2 cores of Zen 5,
262,144 x 256 float32, RMAT with 8.4 M arcs, medians of 7, malloc as it is and as set here):
    torch.relu, fresh result     small pages 55.3, 51.8 ms     large pages 14.9,  7.0 ms
    matrix product, fresh        small pages  224,  220 ms     large pages  178,  178 ms
    sum over the arcs            small pages 91.7, 86.4 ms     large pages 77.3, 79.1 ms
(Keeping memory alone brought nothing to relu there: glibc places aligned blocks of one size at new addresses for some
rounds. GLIBC_TUNABLES=glibc.malloc.hugetlb=1 instead: 330 ms, all of a block's pages are zeroed anew.)
"""

import ctypes
import mmap

COMPILING_BYTES = 256 << 20
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # malloc.h


def give_back_freed_memory() -> bool:
    """Hand what is free now back to the kernel, once: after work at the start that needed more than what follows.

    Returns: True if some was handed back.
    """
    try:
        return ctypes.CDLL(None).malloc_trim(0) == 1
    except (OSError, AttributeError, TypeError):
        return False


def check_room(count: int = COMPILING_BYTES) -> None:
    """Raise MemoryError unless this process may map so many bytes more (`ulimit -v`).

    Notes: numba loads scipy when it compiles. OpenBLAS in it asks for its buffers again and again, for ever, where it
        gets none; LLVM ends the process.
    """
    try:
        mmap.mmap(-1, count).close()
    except OSError as error:
        raise MemoryError(f"compiling a kernel needs {count >> 20} MiB of addresses") from error


def keep_freed_memory() -> bool:
    """Tell glibc's malloc to keep and reuse large blocks, for the rest of this process.

    Returns: True if it did, False on another C library.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return False
    # No block by mmap (each would be returned when freed), never give back the top of the heap, and take 64 MiB at a
    # time. A list, not a generator: all three are set even if one is refused.
    settings = (M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, 2**31 - 1), (M_TOP_PAD, 64 << 20)
    return all([mallopt(name, value) == 1 for name, value in settings])
