"""Checkpoint folders on disk: each appears whole or not at all, and all content is validated before use.

    run/checkpoint/
        best.safetensors             weights at the best validation epoch (see run_folder)
        epoch-00000050/              complete as soon as it has this name: written as .epoch-00000050.partial, renamed
            checkpoint.json          epochs done, settings, graph, stopping; size and SHA-256 of each file, its own
            model.safetensors        weights and buffers after the last of these epochs
            adam.safetensors         the optimiser's means, squares and step counts; the file has the optimiser's name
                                     (one of an extra: all that its step keeps)
            objects.safetensors      tensors of a torch optimiser, its scheduler and of callbacks; their numbers are in
                                     checkpoint.json. A torch optimiser has no file of its own
            best.safetensors         weights at the best evaluation so far (absent before the first evaluation)
            random.safetensors       torch's random state of each rank, uint8 [P, bytes]
            rank-0.safetensors …     held and pending rows of a delayed schedule, one file per rank (absent under cd-0)

The newest two are kept. File names are made here, never taken from a file.
"""

import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from distgnn.config.train import OPTIMIZERS
from distgnn.errors import RunError
from distgnn.system.atomic import open_regular, read_text, sync_folder

FORMAT_VERSION = 1
STATE = "checkpoint.json"
COMMON_FILES = ("model", *OPTIMIZERS, "objects", "best", "random")
KEPT = 2
BLOCK_BYTES = 1 << 20  # read at once
MOST_STATE_BYTES = 1 << 24
NAME = re.compile(r"epoch-(\d{8,12})")


def checkpoint_path(run: Path, epochs_done: int) -> Path:
    return Path(run) / "checkpoint" / f"epoch-{epochs_done:08d}"


def find_checkpoints(run: Path) -> list[Path]:
    """Complete checkpoints of a run folder, newest first."""
    folder = Path(run) / "checkpoint"
    found = [path for path in folder.iterdir() if NAME.fullmatch(path.name)] if folder.is_dir() else []
    return sorted((path for path in found if path.is_dir()), key=epochs_of, reverse=True)


def epochs_of(path: Path) -> int:
    return int(path.name.removeprefix("epoch-"))


def begin(run: Path, epochs_done: int) -> Path:
    """Make the folder that the files are written into; what an earlier crash left there goes."""
    target = checkpoint_path(run, epochs_done)
    clean(run)
    partial = target.with_name(f".{target.name}.partial")
    partial.mkdir(parents=True)
    return partial


def clean(run: Path) -> None:
    """Remove what a crash left behind: folders that never got their name, and those whose removal was cut short."""
    for path in (Path(run) / "checkpoint").glob(".epoch-*"):
        shutil.rmtree(path, ignore_errors=True)


def write_file(folder: Path, name: str, content: bytes) -> dict[str, Any]:
    """Write and sync one file of a checkpoint; returns its entry {bytes, sha256}."""
    with open(folder / f"{name}.safetensors", "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def write_arrays(folder: Path, name: str, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """As `write_file`, from arrays, without their bytes as a whole. Raises: OSError."""
    path, digest = folder / f"{name}.safetensors", hashlib.sha256()
    try:
        safetensors.numpy.save_file({one: np.ascontiguousarray(array) for one, array in arrays.items()}, path)
    except SafetensorError as error:
        raise OSError(str(error)) from error
    with open(path, "rb") as stream:
        os.fsync(stream.fileno())
        for block in iter(lambda: stream.read(BLOCK_BYTES), b""):
            digest.update(block)
        return {"bytes": stream.tell(), "sha256": digest.hexdigest()}


def commit(run: Path, partial: Path, epochs_done: int, state: dict[str, Any]) -> Path:
    """Write checkpoint.json, sync, and give the folder its name; then older ones than the newest two go."""
    state = state | {"format_version": FORMAT_VERSION, "epochs_done": epochs_done}
    with open(partial / STATE, "w", encoding="utf-8") as stream:
        json.dump(state | {"sha256": _digest(state)}, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    sync_folder(partial)
    target = checkpoint_path(run, epochs_done)
    if target.exists():
        remove(target)
    partial.rename(target)
    sync_folder(target.parent)
    for old in find_checkpoints(run)[KEPT:]:
        remove(old)
    return target


def remove(path: Path) -> None:
    """Remove a checkpoint: it loses its name first, on the disk too, so that no half of one is ever found."""
    gone = path.with_name(f".{path.name}.removed")
    shutil.rmtree(gone, ignore_errors=True)
    path.rename(gone)
    sync_folder(path.parent)
    shutil.rmtree(gone, ignore_errors=True)


def read_state(path: Path) -> dict[str, Any]:
    """checkpoint.json, checked. Raises: RunError naming the file and what is wrong with it."""
    file = path / STATE
    try:
        if file.stat().st_size > MOST_STATE_BYTES:
            raise RunError(f"{file} is damaged: {file.stat().st_size} bytes are more than any checkpoint's")
        state = json.loads(read_text(file))
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{file} is damaged: {error}") from error
    version = state.get("format_version") if isinstance(state, dict) else None
    if type(version) is not int:
        raise RunError(f"{file} is damaged: it has no format_version")
    if version != FORMAT_VERSION:
        raise RunError(f"{file}: format version {version} is not {FORMAT_VERSION}: start the run anew")
    if state.get("sha256") != _digest(state):
        raise RunError(f"{file} is damaged: its checksum is wrong")
    files = state.get("files")
    counts = [state.get(name) for name in ("epochs_done", "ranks")]
    good = all(type(count) is int and count >= 0 for count in counts) and isinstance(files, dict)
    if not good or not all(isinstance(state.get(name), dict) for name in ("settings", "graph", "stopping")):
        raise RunError(f"{file} is damaged: a field is missing or wrong")
    if state["epochs_done"] != epochs_of(path):
        raise RunError(f"{file} is damaged: it says {state['epochs_done']} epochs")
    if "model" not in files or not (files.keys() & set(OPTIMIZERS) or "objects" in state):
        raise RunError(f"{file} is damaged: it names no weights")
    return state


def read_file(path: Path, state: dict[str, Any], name: str) -> bytes | None:
    """The bytes of one file of a checkpoint; None where it has none. Raises: RunError where they are not as written."""
    entry = state["files"].get(name)
    if entry is None:
        return None
    file = path / f"{name}.safetensors"
    try:
        size = file.stat().st_size
        if not isinstance(entry, dict) or size != entry.get("bytes"):
            raise RunError(f"{file} is damaged: it has {size} bytes, not what was written")
        with open_regular(file) as stream:
            content = stream.read()
    except OSError as error:
        raise RunError(f"{file} is damaged: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != entry.get("sha256"):
        raise RunError(f"{file} is damaged: its checksum is wrong")
    return content


def _digest(state: dict[str, Any]) -> str:
    content = {key: value for key, value in state.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
