"""The partition folder on disk.

parts/
    partition.json            what was cut, how, how well; size and SHA-256 of every file below; its own SHA-256
    part-0/                   all a rank reads besides partition.json: the arrays of partition/core/part_arrays.py
    part-1/ …                 as .npy files, mapped when they are read
"""

from __future__ import annotations

from pathlib import Path

FORMAT_VERSION = 1
MANIFEST = "partition.json"


def part_folder(folder: Path, part_id: int) -> Path:
    """Where a part lies: made from its number, never from a name in a file."""
    return Path(folder) / f"part-{part_id}"
