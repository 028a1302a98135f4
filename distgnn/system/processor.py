"""What measured numbers depend on: the machine, its processor, and its generation where the name does not tell."""

import os
import platform
from pathlib import Path
from typing import Any

# AMD's family and ranges of models (its processors are called EPYC or Ryzen in all generations).
GENERATIONS = {23: "Zen 2", 25: "Zen 3", 26: "Zen 5"}
OTHERS: dict[int, tuple[Any, str]] = {
    23: (range(0x30), "Zen"),
    25: ((*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0)), "Zen 4"),
}

# Linux on Arm gives no name, but numbers of the maker (0x41: Arm itself) and of the design.
ARM = {"0xd0c": "Neoverse N1", "0xd40": "Neoverse V1", "0xd49": "Neoverse N2", "0xd4f": "Neoverse V2"}


def machine() -> dict[str, Any]:
    """What a reader needs to judge measured numbers."""
    return {"cpu": processor(), "cores": os.cpu_count(), "system": platform.platform()}


def processor() -> str:
    """As "AMD EPYC (Zen 4)" or "Neoverse V1"; the system's name alone where nothing more is known."""
    try:
        found = describe(Path("/proc/cpuinfo").read_text())
    except OSError:
        found = ""
    return found or platform.processor() or platform.machine()


def describe(cpuinfo: str) -> str:
    """The first processor of Linux's /proc/cpuinfo; empty where it has no name."""
    lines = [line.split(":", 1) for line in cpuinfo.split("\n\n")[0].splitlines() if ":" in line]
    facts = {name.strip(): value.strip() for name, value in lines}
    name, maker, part = (facts.get(key) for key in ("model name", "CPU implementer", "CPU part"))
    if name is None and maker is not None and part is not None:
        name = ARM[part] if maker == "0x41" and part in ARM else f"Arm, maker {maker}, part {part}"
    generation = None
    if facts.get("vendor_id") == "AuthenticAMD":
        family, model = (int(facts.get(key, "0")) for key in ("cpu family", "model"))
        models, other = OTHERS.get(family, ((), None))
        generation = other if model in models else GENERATIONS.get(family)
    return f"{name or ''} ({generation})" if generation is not None else name or ""
