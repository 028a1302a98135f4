"""What a measured number depends on: the processor's name, with its generation where the name does not tell."""

import platform
from pathlib import Path

# AMD's family and ranges of models (its processors are called EPYC or Ryzen in all generations).
GENERATIONS = {23: "Zen 2", 25: "Zen 3", 26: "Zen 5"}
OTHERS = {23: (range(0x30), "Zen"), 25: ((*range(0x10, 0x20), *range(0x60, 0x80), *range(0xA0, 0xB0)), "Zen 4")}


def processor() -> str:
    """As "AMD EPYC (Zen 4)"; the system's name alone where nothing more is known."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    return describe(text) or platform.processor()


def describe(cpuinfo: str) -> str:
    """The first processor of Linux's /proc/cpuinfo; empty where it has no name."""
    lines = [line.split(":", 1) for line in cpuinfo.split("\n\n")[0].splitlines() if ":" in line]
    facts = {name.strip(): value.strip() for name, value in lines}
    name = facts.get("model name", "")
    generation = _generation(facts) if facts.get("vendor_id") == "AuthenticAMD" else None
    return name if generation is None else f"{name} ({generation})"


def _generation(facts: dict[str, str]) -> str | None:
    family, model = (int(facts.get(name, "0")) for name in ("cpu family", "model"))
    models, other = OTHERS.get(family, ((), None))
    return other if model in models else GENERATIONS.get(family)
