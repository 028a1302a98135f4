"""How much memory this process may still take."""

import os
from pathlib import Path


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
