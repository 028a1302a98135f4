"""How much memory this process may still take, and which errors say that there was none left."""

import errno
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

from distgnn.system.jobs.rank_log import note
from distgnn.system.units import human_bytes

# How libraries say it whose errors have no kind of their own: torch; the dynamic linker; Python's threads; MPI.
NO_MEMORY = re.compile(
    r"can't allocate memory|cannot allocate memory|not enough memory|out of memory|failed to map segment|bad_alloc"
    r"|can't start new thread|unable to allocate|insufficient memory|MPI_ERR_NO_MEM",
    re.IGNORECASE,
)
LESS_MEMORY = "take more parts, --dtype bfloat16, --remat or fewer --hidden-feats"


def available_bytes() -> int:
    """Memory that this process may still take: free on the machine, cut by its control groups' limits."""
    free = 1 << 62
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        if hasattr(os, "sysconf"):
            free = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        groups = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return max(free, 0)
    for _, controllers, path in (group for group in groups if len(group) == 3):
        if controllers in ("", "memory"):
            root = Path("/sys/fs/cgroup") / controllers
            places = [root, *(root / below for below in _below(path))]
            free = min([free, *(_free_in_group(folder) for folder in places)])
    return max(free, 0)


def _below(path: str) -> list[str]:
    names = [name for name in path.split("/") if name]
    return ["/".join(names[: count + 1]) for count in range(len(names))]


def _free_in_group(folder: Path) -> int:
    """What the limit of a control group (version 2 or 1) leaves, cached files counted as free; much without a limit."""
    for limit, used in (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes")):
        try:
            most, taken = (folder / limit).read_text().strip(), int((folder / used).read_text())
            words = (folder / "memory.stat").read_text().split()
            cached = int(words[words.index("inactive_file") + 1]) if "inactive_file" in words else 0
            return int(most) - taken + cached if most != "max" else 1 << 62
        except (OSError, ValueError):
            continue
    return 1 << 62


def no_memory(error: BaseException, rank: int) -> str | None:
    """The line on an error that says that memory could not be had; None for other errors.

    Notes: `error.phase` is what the rank was doing; else its phase now.
    """
    said = [str(one) for one in _chain(error) if _is_shortage(one)]
    if not said:
        return None
    phase = getattr(error, "phase", note.phase)
    doing = f" in {phase}" if phase else ""
    reason = (said[-1].strip().splitlines() or [type(error).__name__])[0].strip()
    limit = address_limit()
    limited = f" with at most {human_bytes(limit)} of addresses (ulimit -v)" if limit is not None else ""
    what = f"raise the limit, or {LESS_MEMORY}" if limited else LESS_MEMORY
    return f"no memory for rank {rank} on host {platform.node()}{doing}{limited}: {reason}: {what}"


def address_limit() -> int | None:
    """Bytes of addresses that this process may have (`ulimit -v`); None where there is no limit."""
    try:
        import resource
    except ImportError:
        return None
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it was raised from or after, the first last."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _is_shortage(error: BaseException) -> bool:
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    if NO_MEMORY.search(str(error)) is not None:
        return isinstance(error, (RuntimeError, OSError, ImportError))
    # Under a limit libraries that cannot be mapped seem to be missing.
    return address_limit() is not None and isinstance(error, OSError) and "shared object" in str(error)
