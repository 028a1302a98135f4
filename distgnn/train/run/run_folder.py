"""The run folder: what a run was asked to do, what happened in each epoch, and the best weights.

    run/
        seed-0/ … fold-0/ …  run folders of several seeds or folds
        config.toml          complete settings: [train], [model], [data], [run]
        metrics.jsonl        one line per epoch, written as it happens
        summary.json         written last: a run without it did not finish
        metrics.csv          the same numbers as a table, tensorboard/ as event files, where `log` says so
        predictions.npy      scores of all vertices with the best weights, where `dg.fit` made the run
        logs/rank-0.log …    what each rank met (rank_log)
        feat_norm.safetensors means and factors of --feat-norm (distgnn/train/checkpoint/weights.py)
        checkpoint/
            best.safetensors weights at the best validation epoch, replaced whole
            epoch-00000050/  all that a run needs to go on (distgnn/train/checkpoint/files.py)
        merged/parts-3/ …    partition folders that the launcher made to go on with fewer ranks (system/jobs/)
        .lock                held while a run writes here

Only rank 0 writes, but for logs. Files are replaced, never rewritten in place: a crash leaves the old or the new one.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tomli_w

from distgnn.config import DTYPES, ModelConfig, check_types, parse_sections, read_sections
from distgnn.errors import InputError, RunError
from distgnn.system.atomic import check_name, lock_file, new_folder, read_text, replace_file, sync_folder, why_foreign

LOCK = ".lock"
PREDICTIONS = "predictions.npy"
NAMED_LINES = 5  # damaged lines of metrics.jsonl that are named one by one


class RunFolder:
    """The run folder of a run that is being written.

    Args: overwrite: replace an existing run folder; resume: go on in an existing one; call `keep_epochs` then.
    Attributes: removed_epochs: how many `keep_epochs` took out of metrics.jsonl.
    """

    def __init__(self, path: str, config: dict[str, Any], overwrite: bool = False, resume: bool = False):
        self.path: Path = Path(path)
        self._config = config
        self.removed_epochs = 0
        check_free(self.path, overwrite, resume)
        in_place = self.path.is_dir() and (resume or not exists(self.path))
        try:
            self._lock: int | None
            if in_place:  # to go on in, or an empty folder, which may be a mount point: it cannot be replaced
                self._lock = _locked(self.path)
                check_free(self.path, overwrite, resume)  # another run may have come and gone
                if not (self.path / "config.toml").exists():
                    replace_file(self.path / "config.toml", _toml(self._config))
            else:
                self._lock = self._create(overwrite)
            (self.path / "checkpoint").mkdir(exist_ok=True)
            self._metrics = open(self.path / "metrics.jsonl", "a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write the run folder {self.path}: {error.strerror}") from error

    def _create(self, overwrite: bool) -> int:
        """Put a new run folder in place; returns its lock. The new one is locked before it gets its name, the old one
        until it is gone: at no time can a second run lock a folder under this name."""
        with contextlib.ExitStack() as held:
            existed = self.path.exists()
            for folder in (self.path, *(lock.parent for lock in self.path.glob(f"*/{LOCK}"))) if existed else ():
                held.callback(os.close, _locked(folder))
            with new_folder(self.path, run_files, overwrite=overwrite and existed) as folder:
                (folder / "checkpoint").mkdir()
                replace_file(folder / "config.toml", _toml(self._config))
                lock = _locked(folder)
            return lock

    def keep_epochs(self, epochs_done: int) -> list[dict[str, Any]]:
        """Cut metrics.jsonl back to the first `epochs_done` epochs, whole lines only; returns their records.

        The settings are written anew: a resumed run may have more epochs, or another partition of the graph.
        """
        self._metrics.close()
        file = self.path / "metrics.jsonl"
        every = read_metrics(file)
        records = [record for record in every if record["epoch"] < epochs_done]
        self.removed_epochs = len(every) - len(records)
        replace_file(file, "".join(json.dumps(record) + "\n" for record in records).encode())
        replace_file(self.path / "config.toml", _toml(self._config))
        (self.path / "summary.json").unlink(missing_ok=True)
        self._metrics = open(file, "a", encoding="utf-8")
        return records

    def sync_metrics(self) -> None:
        """Make the lines so far durable, and the name: a checkpoint never knows more epochs than metrics.jsonl."""
        self._metrics.flush()
        os.fsync(self._metrics.fileno())
        sync_folder(self.path)

    def add_epoch(self, record: dict[str, Any]) -> None:
        self._metrics.write(json.dumps(record) + "\n")
        self._metrics.flush()

    def finish(self, summary: dict[str, Any]) -> None:
        """Write summary.json, whole, and close."""
        replace_file(self.path / "summary.json", json.dumps(summary, indent=1).encode())
        self.close()

    def close(self) -> None:
        self._metrics.close()
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def names_file(out: str | Path) -> Path:
    """Where the names of the rows of `out` lie: `logits.names.npy` of `logits.npy`."""
    return Path(out).with_suffix(".names.npy")


def exists(path: str | Path) -> bool:
    """Is there something at `path` that a user might miss? (Not locks, nor merged parts.)"""
    path = Path(path)
    if not path.is_dir():
        return os.path.lexists(path)
    return not {entry.name for entry in path.iterdir()} <= {LOCK, "config.toml.partial", "merged"}


def check_free(path: Path, overwrite: bool, resume: bool = False) -> None:
    """Raise InputError unless `path` may become a run folder; only run folders are ever replaced or gone on with."""
    if overwrite and resume:
        raise InputError("--resume and --overwrite contradict each other: choose one")
    check_name(path)
    if not exists(path):
        return
    if not overwrite and not resume:
        raise InputError(
            f"run folder {path} exists: choose another --run-dir, add --overwrite to replace it, or --resume to go on "
            "(from Python: run_dir=, overwrite=True, resume=True)"
        )
    why = why_foreign(path, run_files) if overwrite else None if (path / "config.toml").is_file() else "no config.toml"
    if why is not None:
        raise InputError(f"{path} exists and is not a run folder ({why}): it is left alone, choose another")


FILES = re.compile(
    r"((seed|fold)-\d+/)?("
    r"(config\.toml|summary\.json|metrics\.jsonl|metrics\.csv|predictions(\.names)?\.npy|feat_norm\.safetensors|checkpoint/best\.safetensors)(\.partial)?|\.lock"
    r"|tensorboard/events\.[^/]+"
    r"|logs/rank-\d+\.(log|status|partial)|trace/(rank-\d+|trace)\.json(\.partial)?"
    r"|merged/(parts-\d+|\.parts-\d+[^/]*)/(partition\.json|part-\d+/[\w-]+\.npy)"
    r"|checkpoint/\.?epoch-\d+(\.partial|\.removed)?/[\w-]+\.(safetensors|json))"
)


def run_files(folder: Path) -> set[str]:
    """The files of a run folder, relative to it: `new_folder` replaces a folder of no others.

    Raises: InputError where there is no config.toml of this program: many programs have a file of this name.
    """
    try:
        train = parse_sections(read_text(folder / "config.toml")).get("train", {})
    except FileNotFoundError:
        raise InputError("no config.toml") from None
    except (OSError, ValueError, RecursionError):
        raise InputError("its config.toml cannot be read") from None
    if not all(type(train.get(name)) in (int, float) for name in ("epochs", "lr", "seed")):
        raise InputError("its config.toml is not one of ours")
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
    return {name for name in names if FILES.fullmatch(name)}


def _locked(folder: Path) -> int:
    """The lock of a run folder (a descriptor): it ends when it is closed, or with the process."""
    os.close(os.open(folder / LOCK, os.O_CREAT | os.O_RDONLY, 0o666))
    try:
        return lock_file(folder / LOCK)
    except (BlockingIOError, FileNotFoundError):
        raise InputError(f"another run is writing to {folder} now: wait for it, or choose another --run-dir") from None


def _toml(config: dict[str, Any]) -> bytes:
    """TOML has no None: what has no value is not written. Undecodable bytes in paths become question marks."""

    def with_values(section: dict[str, Any]) -> dict[str, Any]:
        held = {name: value for name, value in section.items() if value is not None}
        return {name: with_values(value) if isinstance(value, dict) else value for name, value in held.items()}

    return tomli_w.dumps(with_values(config)).encode("utf-8", "replace")


def read_metrics(file: Path, damage: list[str] | None = None) -> list[dict[str, Any]]:
    """The records of a metrics.jsonl in order of epochs, one per epoch: the later line counts. Others are left out.

    Args: damage: gets a line that says what was left out, such as what a crash cut short.
    """
    damage = [] if damage is None else damage
    try:
        lines = read_text(file, "replace").split("\n")
    except OSError as error:
        damage.append(f"metrics.jsonl cannot be read: {error.strerror}")
        return []
    records: dict[int, dict[str, Any]] = {}
    bad: list[str] = []
    for number, line in ((number, line) for number, line in enumerate(lines, 1) if line.strip()):
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            bad.append(f"line {number} is {'cut short' if number == len(lines) else 'no JSON object'}")
            continue
        epoch = record.get("epoch")
        if type(epoch) is not int or not 0 <= epoch < 2**53:
            bad.append(f"line {number} has no epoch")
            continue
        if epoch in records:
            bad.append(f"line {number} repeats epoch {epoch} (the later line is shown)")
        records[epoch] = record
    if bad:
        more = f"; and {len(bad) - NAMED_LINES} more lines" if len(bad) > NAMED_LINES else ""
        damage.append(f"metrics.jsonl is damaged: {', '.join(bad[:NAMED_LINES])}{more}")
    return [records[epoch] for epoch in sorted(records)]


@contextlib.contextmanager
def writing(path: str | Path | None) -> Iterator[None]:
    """A full or read-only disk is one line."""
    try:
        yield
    except OSError as error:
        raise RunError(f"cannot write to the run folder {path}: {error.strerror or error}") from error


def best_weights(folder: str | Path) -> Path:
    return Path(folder) / "checkpoint" / "best.safetensors"


def model_config(path: str, config: dict[str, Any]) -> ModelConfig:
    if "model" not in config:
        raise RunError(f"{path} was trained from a script: load its weights there (distgnn.train.load_best)")
    check_types(f"{path}/config.toml", "model", config["model"], ModelConfig())
    try:
        model = ModelConfig(**config["model"])
        model.check()
    except (TypeError, ZeroDivisionError) as error:
        raise RunError(f"{path}/config.toml has a [model] section that this version cannot read: {error}") from error
    return model


def run_dtype(path: str, config: dict[str, Any]) -> str:
    """The dtype of a run, float32 where its config.toml says none. Raises: RunError for one that there is not."""
    dtype = config.get("run", {}).get("dtype", "float32")
    if dtype not in DTYPES:
        raise RunError(f"{path}/config.toml is damaged: [run] dtype is {str(dtype)[:40]!r}")
    return dtype


def run_task(settings: dict[str, Any]) -> str:
    return str(settings.get("train", {}).get("task", "node"))


def read_config(path: str) -> dict[str, Any]:
    """config.toml of a run folder. Raises: RunError when there is none or it cannot be read."""
    file = Path(path) / "config.toml"
    if not file.is_file():
        raise RunError(f"{path} is not a run folder: it has no config.toml")
    return read_sections(file)
