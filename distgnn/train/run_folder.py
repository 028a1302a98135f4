"""The run folder: what a run was asked to do, what happened in each epoch, and the best weights.

    run/
        config.toml          complete settings: [train], [model], [data], [run]
        metrics.jsonl        one line per epoch, written as it happens
        summary.json         written last: a run without it did not finish
        checkpoint/
            best.safetensors weights at the best validation epoch, replaced whole

Only rank 0 writes. Files are replaced, never rewritten in place: a crash leaves the old or the new one.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import tomli_w

from distgnn.config import ModelConfig
from distgnn.errors import InputError, RunError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


class RunFolder:
    """The run folder of a run that is being written.

    Raises:
        InputError: when the folder exists and `overwrite` is off, or is not a run folder and so is not replaced.
    """

    def __init__(self, path: str, config: dict, overwrite: bool = False):
        self.path = Path(path)
        check_free(self.path, overwrite)
        try:
            if self.path.exists():
                shutil.rmtree(self.path)
            (self.path / "checkpoint").mkdir(parents=True)
            replace_file(self.path / "config.toml", tomli_w.dumps(config).encode())
            self._metrics = open(self.path / "metrics.jsonl", "w", encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write the run folder {self.path}: {error.strerror}") from error

    def add_epoch(self, record: dict) -> None:
        """Append one epoch to metrics.jsonl."""
        self._metrics.write(json.dumps(record) + "\n")
        self._metrics.flush()

    def keep_best(self, weights: bytes) -> None:
        """Replace the best weights (a safetensors file)."""
        replace_file(best_weights(self.path), weights)

    def finish(self, summary: dict) -> None:
        """Write summary.json and close."""
        write_summary(self.path, summary)
        self.close()

    def close(self) -> None:
        """Nothing more will be written."""
        self._metrics.close()


def exists(path: str | Path) -> bool:
    """Is there something at `path` that a user might miss? (An empty folder is nothing.)"""
    path = Path(path)
    return path.exists() and not (path.is_dir() and not any(path.iterdir()))


def check_free(path: Path, overwrite: bool) -> None:
    """Raise InputError unless `path` may become a run folder; only run folders are ever replaced."""
    if not exists(path):
        return
    if not overwrite:
        raise InputError(f"run folder {path} exists: choose another --run-dir, or add --overwrite to replace it")
    if not (path / "config.toml").is_file():
        raise InputError(f"{path} exists and is not a run folder (no config.toml): it is left alone, choose another")


def start_many(path: Path, config: dict, overwrite: bool) -> None:
    """The folder around several runs: its own config.toml; each run gets a run folder inside."""
    RunFolder(str(path), config, overwrite).close()


def replace_file(path: Path, content: bytes) -> None:
    """Write `content` beside `path`, sync it, and rename it into place."""
    partial = path.with_name(path.name + ".partial")
    try:
        with open(partial, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(partial, path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def write_summary(folder: Path, summary: dict) -> None:
    """Write summary.json, whole."""
    replace_file(folder / "summary.json", json.dumps(summary, indent=1).encode())


def best_weights(folder: str | Path) -> Path:
    """Where a run keeps its best weights."""
    return Path(folder) / "checkpoint" / "best.safetensors"


def model_config(path: str, config: dict) -> ModelConfig:
    """The [model] section of a run's config.toml.

    Raises:
        RunError: for a run whose model is not one that the program can make (it was trained from a script), or
            settings that this version does not know.
    """
    if "model" not in config:
        raise RunError(f"{path} was trained from a script: load its weights there (distgnn.train.load_best)")
    try:
        return ModelConfig(**config["model"])
    except TypeError as error:
        raise RunError(f"{path}/config.toml has a [model] section that this version cannot read: {error}") from error


def read_config(path: str) -> dict:
    """config.toml of a run folder.

    Raises:
        RunError: when there is none or it cannot be read.
    """
    file = Path(path) / "config.toml"
    if not file.is_file():
        raise RunError(f"{path} is not a run folder: it has no config.toml")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise RunError(f"{file} is damaged: {error}") from error
