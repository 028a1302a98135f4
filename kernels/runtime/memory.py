"""Large blocks go back to the system when they are freed; small ones stay with malloc.

By itself glibc keeps freed blocks of up to 32 MB. Results of one model have many sizes, and come and go in another
order in each epoch: kept blocks are broken, and new ones are taken. Measured, GraphSAGE 3 x 256 of `dgl.nn` on 75,000
vertices, five epochs, 2 cores of Zen 3, busy: peak over an empty process's, and CPU seconds of an epoch:
    all freed blocks kept (what stood here)   1,964 MB, growing    user 2.9, system 0.48
    glibc by itself                             994 MB             user 2.9, system 0.6
    none over 4 MB kept                         966 MB             user 2.8, system 0.46
    the same on 20,000 vertices                 696, 747, 331 MB   user 0.7, system 0.01, 0.02, 0.07
Rows of our own layers lie in blocks that are used again (distgnn/ops/buffers.py), so they pay nothing for it.

Pages of 2 MB make a fresh block cheap: one of 256 MiB is 128 faults instead of 65,536, and gathering rows needs fewer
page entries. numpy asks for them by itself; torch does if THP_MEM_ALLOC_ENABLE=1 is in the environment when it
is loaded, which `distgnn` and the ranks it starts have (launch.torch_environment). Measured (2 cores of Zen 5,
262,144 x 256 float32, RMAT with 8.4 M arcs, medians of 7, fresh results):
    torch.relu               small pages 55.3 ms     large pages 14.9 ms
    matrix product           small pages  224 ms     large pages  178 ms
    sum over the arcs        small pages 91.7 ms     large pages 77.3 ms
Where torch was loaded before, the epoch above takes 0.9 s more of system time.
(GLIBC_TUNABLES=glibc.malloc.hugetlb=1 instead: relu 330 ms, all of a block's pages are zeroed anew.)
"""

import ctypes
import mmap
import platform
from collections.abc import Collection
from pathlib import Path
from typing import Any

COMPILING_BYTES = 256 << 20
M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3  # malloc.h
LARGE, HEAP = 4 << 20, 64 << 20  # bytes: of a block that goes back; of the heap that is taken, or kept, at a time
NODES = Path("/sys/devices/system/node")
POLICY_CALLS = {"x86_64": (238, 239), "aarch64": (237, 236)}  # set_mempolicy, get_mempolicy: unistd.h of each
MPOL_DEFAULT, MPOL_INTERLEAVE = 0, 3  # mempolicy.h
MOST_NODES = 1024  # bits of a mask; Linux has no more


def give_back_freed_memory() -> bool:
    """Hand what is free now back to the kernel, once: after work at the start that needed more than what follows.

    Returns: True if some was handed back.
    """
    malloc_trim = _of_c("malloc_trim")
    return malloc_trim is not None and malloc_trim(0) == 1


def _of_c(name: str) -> Any:
    """A function of the C library by its name; None where there is none."""
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError, TypeError):
        return None


def advise(start: int, num_bytes: int, advice: int) -> bool:
    """madvise(2) on memory that no Python object owns as a map. Returns: False where the system cannot, or refuses."""
    madvise = _of_c("madvise")
    if madvise is None:
        return False
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return int(madvise(start, num_bytes, advice)) == 0


def memory_nodes(cores: Collection[int], folder: Path = NODES) -> list[int]:
    """The nodes that have memory and any of these cores, ascending; empty where the system does not say."""
    try:
        with_memory = numbers(Path(folder, "has_memory").read_text())
        of_cores = {node: numbers(Path(folder, f"node{node}", "cpulist").read_text()) for node in with_memory}
    except (OSError, ValueError):
        return []
    return sorted(node for node, theirs in of_cores.items() if not theirs.isdisjoint(cores))


def numbers(text: str) -> set[int]:
    """What the system writes as "0-2,8": {0, 1, 2, 8}."""
    bounds = [list(map(int, piece.split("-"))) for piece in text.strip().split(",") if piece]
    return {number for piece in bounds for number in range(piece[0], piece[-1] + 1)}


def spread_pages(nodes: Collection[int]) -> bool:
    """Have fresh pages of this thread, and of threads that it starts from now on, lie on these nodes in turn.

    Returns: True if it did; False where another policy was chosen before (numactl), or the system cannot, or refuses.
    """
    policy = page_policy()
    if policy is None or policy[0] != MPOL_DEFAULT:
        return False
    return _set_policy(MPOL_INTERLEAVE, nodes)


def keep_pages_near() -> bool:
    """Have fresh pages of this thread lie where they are first written, as by default. Returns: True if it did."""
    return _set_policy(MPOL_DEFAULT, ())


def _set_policy(mode: int, nodes: Collection[int]) -> bool:
    return _policy_call(0, ctypes.c_int(mode), _mask(nodes), ctypes.c_ulong(MOST_NODES + 1)) == 0


def page_policy() -> tuple[int, list[int]] | None:
    """(mode, nodes) of this thread's fresh pages, as get_mempolicy(2) numbers them; None where it cannot be read."""
    mode, mask = ctypes.c_int(), _mask(())
    if _policy_call(1, ctypes.byref(mode), mask, ctypes.c_ulong(MOST_NODES), None, ctypes.c_ulong(0)):
        return None
    bits = int.from_bytes(bytes(mask), "little")
    return mode.value, [node for node in range(MOST_NODES) if bits >> node & 1]


def _mask(nodes: Collection[int]) -> ctypes.Array[ctypes.c_uint8]:
    """Node k is bit k, from the lowest on; both processors of POLICY_CALLS keep the lowest byte first."""
    return (ctypes.c_uint8 * (MOST_NODES // 8))(*sum(1 << node for node in nodes).to_bytes(MOST_NODES // 8, "little"))


def _policy_call(which: int, *arguments: object) -> int:
    """A system call of POLICY_CALLS, without libnuma, which few machines have. Returns: 0, or -1 where it failed."""
    syscall, numbers_of = _of_c("syscall"), POLICY_CALLS.get(platform.machine())
    if syscall is None or numbers_of is None:  # no Linux, or another processor
        return -1
    return int(syscall(ctypes.c_long(numbers_of[which]), *arguments))


def check_room(count: int = COMPILING_BYTES) -> None:
    """Raise MemoryError unless this process may map `count` bytes more (`ulimit -v`).

    Notes: numba loads scipy when it compiles. OpenBLAS in it asks for its buffers again and again, for ever, where it
        gets none; LLVM ends the process.
    """
    try:
        mmap.mmap(-1, count).close()
    except OSError as error:
        raise MemoryError(f"compiling a kernel needs {count >> 20} MiB of addresses") from error


def return_large_blocks() -> bool:
    """Tell glibc's malloc to give large blocks back when they are freed, for the rest of this process.

    Returns: True if it did, False on another C library.
    """
    mallopt = _of_c("mallopt")
    if mallopt is None:
        return False
    # A list, not a generator: all three are set even if one is refused.
    settings = (M_MMAP_THRESHOLD, LARGE), (M_TRIM_THRESHOLD, HEAP), (M_TOP_PAD, HEAP)
    return all([mallopt(name, value) == 1 for name, value in settings])
