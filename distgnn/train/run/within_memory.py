"""How a run stays within a memory: `--memory auto` keeps all rows, then takes `--remat`, then `--offload`.

None of them changes a number of the result. The estimate decides (estimate.py), on all ranks alike.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from distgnn.config import Settings
from distgnn.errors import InputError, RunError
from distgnn.system.units import human_bytes, parse_bytes
from distgnn.train.run.estimate import estimate_blocks, needs

AUTO = "auto"


@dataclass(frozen=True)
class MemoryLimit:
    """What `--memory` says: bytes of a rank (None: what is free), and whether the run may choose how to keep within."""

    bytes: int | None = None
    chooses: bool = False

    @classmethod
    def parse(cls, text: str | int | None) -> "MemoryLimit":
        """From None, "8GB", "auto" or "auto:8GB". Raises: InputError."""
        name, _, size = str(text).partition(":")
        if name.strip().lower() == AUTO:
            return cls(parse_bytes(size) if size else None, True)
        return cls(None if text is None else parse_bytes(text))


def choose(comm: Any, manifest: dict[str, Any], settings: Settings, limit: MemoryLimit) -> tuple[Settings, str]:
    """The first way that fits, else the last, and the line that says so; the settings as they are without auto.

    Collective: yes.
    """
    if not limit.chooses:
        return settings, ""
    line = ""
    for words, one in _ways(settings, manifest["graph"]):
        needed, together, free = needs(comm, manifest, one.sections(), limit.bytes)
        most, least = max(comm.allgather(needed)), min(comm.allgather(free))
        line = f"memory auto: {words} (about {human_bytes(most)} a rank; {human_bytes(least)} are there)"
        if all(comm.allgather(together <= free)):
            return one, line
    return one, line


def _ways(settings: Settings, graph: dict[str, Any]) -> Iterator[tuple[str, Settings]]:
    """All rows in memory, remat where the model and the exchanges allow it, files."""
    folder, settings = settings.train.offload, replace(settings, train=replace(settings.train, offload=None))
    yield "--remat" if settings.model.remat else "all rows stay in memory", settings
    if not settings.model.remat:
        again = replace(settings, model=replace(settings.model, remat=True))
        try:
            again.checked().check_graph(graph)
            yield "--remat", again
        except InputError:
            pass
    if not folder:  # one that is there, on the disk that the run folder will be on
        path = Path(settings.train.run_dir or "runs").absolute()
        folder = str(next(one for one in (path, *path.parents) if one.is_dir()))
    yield f"--offload {folder}", replace(settings, train=replace(settings.train, offload=folder))


def check_disk(comm: Any, manifest: dict[str, Any], settings: Settings, by_name: bool) -> str:
    """The line on the disk that `--offload` needs; empty without. Collective: yes.

    Args: by_name: is the model one of ours, whose rows are known?
    """
    folder = settings.train.offload
    if folder is None:
        return ""
    from mpi4py import MPI

    from distgnn.comm import raise_together
    from distgnn.ops.file_memory import check_folder, free_bytes, is_memory

    with raise_together(comm):
        check_folder(folder)
    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    mine = disk_bytes(manifest, comm.rank, settings) if by_name else 0
    needed, free = sum(here.allgather(mine)), min(here.allgather(free_bytes(folder)))
    here.Free()
    with raise_together(comm):
        if needed > free:
            raise RunError(
                f"offload needs about {human_bytes(needed)} of {folder}, which has {human_bytes(free)} left: free some "
                "room, or name a folder of another disk"
            )
    most, least = max(comm.allgather(needed)), min(comm.allgather(free))
    size = f"about {human_bytes(most)}" if by_name else "the rows that your model keeps"
    note = f"; {folder} is a tmpfs, whose files are memory: name a folder of a disk" if is_memory(folder) else ""
    return f"offload: {size} in files of {folder} on each machine ({human_bytes(least)} are free){note}"


def disk_bytes(manifest: dict[str, Any], part_id: int, settings: Settings) -> int:
    """What a rank writes into files: hidden rows that it does not keep in memory, those at work, and features."""
    from distgnn.ops.buffers import WORKING  # the module starts MPI

    kept, offloaded = (
        estimate_blocks(manifest, part_id, replace(settings, train=replace(settings.train, offload=folder)).sections())
        for folder in (None, settings.train.offload)
    )
    columns = WORKING * settings.model.hidden_feats + 2 * manifest["graph"]["num_feats"]  # features, and their sums
    numbers = manifest["parts"][part_id]["owned"] * columns
    item = 2 if settings.run.dtype == "bfloat16" else 4
    return int(kept["hidden rows"] - offloaded["hidden rows"] + item * numbers)
