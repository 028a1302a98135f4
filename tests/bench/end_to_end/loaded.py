"""Resident memory of each rank before training: with libraries imported, and with its part loaded.

    mpiexec -n 4 python tests/bench/end_to_end/loaded.py parts/

Prints one line for all ranks, in GB.
"""

import sys
from pathlib import Path

import distgnn as dg


def resident_bytes() -> int:
    """Resident memory of this process now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def main() -> None:
    """Load and print."""
    import distgnn.graph  # noqa: F401

    imported = resident_bytes()
    graph = dg.load(sys.argv[1])
    loaded = resident_bytes()
    everyone = graph.comm.gather((imported, loaded))
    if graph.rank == 0:
        imports, parts = (
            " ".join(f"{bytes_ / 1e9:.2f}" for bytes_ in column) for column in zip(*everyone, strict=True)
        )
        print(f"libraries {imports} GB; part loaded {parts} GB", flush=True)


if __name__ == "__main__":
    main()
