"""Where predicted rows go: a `.npy` or `.parquet` file, or a folder of shards; whole or not at all."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.errors import InputError
from distgnn.system.atomic import new_folder

SHARD_ROWS = 1_000_000
KINDS = (".npy", ".parquet", "")


class Target:
    """What `out` asks for. Raises: InputError for what cannot be written, before anything is computed."""

    def __init__(self, out: Path, overwrite: bool, names: tuple[str, ...]):
        self.out, self.overwrite = out, overwrite
        if len(out.name.encode()) > 200:
            raise InputError(
                f"out has a name of {len(out.name)} letters: file systems take 255 with endings, use at most 200"
            )
        if out.suffix not in KINDS:
            raise InputError(
                f"out is {out}: expected a name in .npy or .parquet, or without an ending for a folder of shards"
            )
        if out.suffix == ".parquet":
            _pyarrow()
        self.folder: str = str(out.parent)
        if not out.parent.is_dir() or (out.is_dir() and out.suffix):
            raise InputError(f"cannot write predictions to {out}: expected a file name in an existing folder")
        if not os.access(out.parent, os.W_OK):
            raise InputError(f"cannot write predictions to {out}: the folder cannot be written to")
        for name in names:
            self._check_free(self.path_of(name, len(names) > 1))

    def _check_free(self, path: Path) -> None:
        if path.exists() and not self.overwrite:
            raise InputError(f"{path} exists: choose another name, or overwrite it")

    def path_of(self, name: str, several: bool) -> Path:
        return self.out.with_name(f"{self.out.stem}.{name}{self.out.suffix}") if several else self.out

    def keep(self, found: dict[str, Any], names: np.ndarray | None) -> Path | dict[str, Path]:
        """Write arrays [N, …] by name; returns the path, or paths by name. Args: names: what vertices are called."""
        paths = {name: self.path_of(name, len(found) > 1) for name in found}
        for path in paths.values():
            self._check_free(path)
        for name, path in paths.items():
            try:
                self._write(np.asarray(found[name]), path, names)
            except OSError as error:
                raise InputError(f"cannot write predictions to {path}: {error.strerror or error}") from error
        return paths if len(paths) > 1 else next(iter(paths.values()))

    def _write(self, rows: np.ndarray, path: Path, names: np.ndarray | None) -> None:
        partial = path.with_name(f"{path.name}.partial")
        try:
            if self.out.suffix == ".parquet":
                _write_parquet(rows, partial, names)
            elif self.out.suffix:
                with open(partial, "wb") as stream:
                    np.lib.format.write_array(stream, rows, allow_pickle=False)
            else:
                with new_folder(path, shard_files, self.overwrite) as folder:
                    for place, first in enumerate(range(0, max(len(rows), 1), SHARD_ROWS)):
                        np.save(folder / f"rows-{place:05}.npy", rows[first : first + SHARD_ROWS], allow_pickle=False)
                    if names is not None:
                        np.save(folder / "names.npy", names, allow_pickle=False)
                return
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)
        if names is not None and path.suffix == ".npy":
            np.save(path.with_suffix(".names.npy"), names, allow_pickle=False)


def shard_files(folder: Path) -> set[str]:
    """Names of files in a folder that `keep` has written; empty for another folder."""
    names = {one.name for one in folder.glob("rows-*.npy")}
    return names | {"names.npy"} if "rows-00000.npy" in names else set()


def _write_parquet(rows: np.ndarray, path: Path, names: np.ndarray | None) -> None:
    """Columns `id`, or `name` where vertices have names, and `output`: a list of C numbers, or one number."""
    arrow = _pyarrow()
    kind = arrow.from_numpy_dtype(rows.dtype)
    key = arrow.field("id", arrow.int64()) if names is None else arrow.field("name", arrow.string())
    width = int(np.prod(rows.shape[1:])) if rows.ndim > 1 else 0
    column = arrow.field("output", arrow.list_(kind, width) if width else kind)
    with arrow.parquet.ParquetWriter(str(path), arrow.schema([key, column])) as writer:
        for first in range(0, len(rows), SHARD_ROWS):
            piece = np.ascontiguousarray(rows[first : first + SHARD_ROWS])
            keys = np.arange(first, first + len(piece)) if names is None else names[first : first + len(piece)]
            flat = arrow.array(piece.reshape(-1))
            values = arrow.FixedSizeListArray.from_arrays(flat, width) if width else flat
            writer.write_batch(arrow.record_batch([arrow.array(keys, key.type), values], schema=writer.schema))


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("a .parquet file needs the package pyarrow: pip install pyarrow, or write .npy") from None
    return pyarrow
