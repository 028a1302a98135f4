"""Where predicted rows go: a `.npy` file, a table in `.parquet`, `.csv` or `.tsv`, or a folder of shards; whole or not
at all.

Legend: N vertices, C columns of an answer.

| table | columns |
|---|---|
| of rows | `id` (or `name`, `edge`, `source` and `target`), and numbers: as text `output_0` …, in Parquet a list |
| of scores of classes | `id`, `class` (its word, where the data have words) and `probability` |
| of classes of which a vertex may have several | `id`, and for each class `probability_` and its word |
"""

import contextlib
import csv
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.comm import raise_together
from distgnn.errors import InputError
from distgnn.system.atomic import new_folder
from distgnn.train.run.run_folder import names_file

SHARD_ROWS = 1_000_000
TABLES = {".csv": ",", ".tsv": "\t", ".parquet": ""}  # what stands between columns of text
KINDS = (".npy", *TABLES, "")
ENDS = ("source", "target")
Columns = dict[str, np.ndarray]
Key = Callable[[slice], np.ndarray]  # a column of what rows are called


@dataclass(frozen=True)
class Classes:
    """Rows are scores of classes.

    Args: words: what the classes are called; none: their numbers; several: a vertex may have several.
    """

    words: Sequence[str] = ()
    several: bool = False

    @classmethod
    def of_graph(cls, graph: dict[str, Any]) -> "Classes":
        """Of a manifest's section on the graph."""
        return cls(graph.get("class_names", ()), graph["multilabel"])

    def columns(self, scores: np.ndarray) -> Columns:
        """The columns of a table for scores [n, C]. Raises: InputError where there are more or fewer words."""
        width = scores.shape[1] if scores.ndim == 2 else 1
        if scores.ndim != 2 or (self.words and len(self.words) != width):
            raise InputError(
                f"rows of width {width} are no scores of the graph's {len(self.words) or 'several'} classes: write the "
                "rows themselves, without classes"
            )
        words = np.array(self.words or range(width))
        scores = scores.astype(np.float64)
        if self.several:
            chances = (1 / (1 + np.exp(-scores))).astype(np.float32)
            return {f"probability_{word}": chances[:, place] for place, word in enumerate(words)}
        shares = np.exp(scores - scores.max(1, keepdims=True))
        likely = scores.argmax(1)
        sums = shares.sum(1)
        found = np.divide(shares[np.arange(len(scores)), likely], sums, out=np.zeros_like(sums), where=sums != 0)
        return {"class": words[likely], "probability": found.astype(np.float32)}


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
                f"out is {out}: expected a name in {', '.join(KINDS[:-1])}, or without an ending for a folder of shards"
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

    def keep(
        self, found: dict[str, Any], names: Any, about: Classes | str = "output", key: str = "id", pairs: Any = None
    ) -> Path | dict[str, Path]:
        """Write arrays [N, …] by name; returns the path, or paths by name.

        Args: names: what vertices are called, or by result; about: what a table says of the first, or how it calls its
            numbers; key: how it calls rows without names; pairs: ids [M, 2] whose rows these are.
        """
        paths = {name: self.path_of(name, len(found) > 1) for name in found}
        for path in paths.values():
            self._check_free(path)
        for place, (name, path) in enumerate(paths.items()):
            try:
                rows, called = np.asanyarray(found[name]), names.get(name) if isinstance(names, dict) else names
                if self.out.suffix in TABLES:
                    keys: dict[str, Key] = {key: lambda some: np.arange(some.start, some.stop)}
                    if called is not None:
                        keys = {"name": called.__getitem__}
                    if pairs is not None:
                        keys = {end: partial(_end, pairs[:, place], called) for place, end in enumerate(ENDS)}
                    _write_table(path, rows, keys, "output" if place else about)
                else:
                    self._write(rows, path, called if pairs is None else None)
            except OSError as error:
                raise InputError(f"cannot write predictions to {path}: {error.strerror or error}") from error
        return paths if len(paths) > 1 else next(iter(paths.values()))

    def _write(self, rows: np.ndarray, path: Path, names: np.ndarray | None) -> None:
        if not self.out.suffix:
            with new_folder(path, shard_files, self.overwrite) as folder:
                for place, first in enumerate(range(0, max(len(rows), 1), SHARD_ROWS)):
                    np.save(folder / f"rows-{place:05}.npy", rows[first : first + SHARD_ROWS], allow_pickle=False)
                if names is not None:
                    np.save(folder / "names.npy", names, allow_pickle=False)
            return
        made = {path: rows} if names is None else {path.with_suffix(".names.npy"): names, path: rows}
        unfinished = {one: one.with_name(f"{one.name}.partial") for one in made}
        try:
            for one, array in made.items():
                if isinstance(array, np.memmap) and array.filename:  # in a folder beside it, of this call alone
                    os.replace(array.filename, unfinished[one])
                    continue
                with open(unfinished[one], "wb") as stream:
                    np.lib.format.write_array(stream, array, allow_pickle=False)
            for one in made:
                os.replace(unfinished[one], one)
        finally:
            for one in unfinished.values():
                one.unlink(missing_ok=True)


def write_table(graph: Any, target: Target, write: Callable[[str], int], about: Classes | str, key: str) -> int:
    """Keep as a table what `write` writes to a .npy file; returns how many rows. Collective: yes.

    Args: write: collective; about, key: see `Target.keep`.
    """
    with contextlib.ExitStack() as stack:
        folder = None
        with raise_together(graph.comm):
            if graph.rank == 0:
                made = tempfile.TemporaryDirectory(prefix=".distgnn-predict-", dir=target.folder)
                folder = stack.enter_context(made)
        file = Path(graph.comm.bcast(folder, root=0)) / "0.npy"
        count = write(str(file))
        with raise_together(graph.comm):
            if graph.rank == 0:
                called = names_file(file)
                names = np.load(called) if called.is_file() else None
                target.keep({"output": np.load(file, mmap_mode="r")}, names, about, key)
    return count


def shard_files(folder: Path) -> set[str]:
    """Names of files in a folder that `keep` has written; empty for another folder."""
    names = {one.name for one in folder.glob("rows-*.npy")}
    return names | {"names.npy"} if "rows-00000.npy" in names else set()


def _end(ids: np.ndarray, names: np.ndarray | None, some: slice) -> np.ndarray:
    return np.asarray(ids[some]) if names is None else names[ids[some]]


def _write_table(path: Path, rows: np.ndarray, keys: dict[str, Key], about: Classes | str) -> None:
    """Args: keys: the first columns by name."""
    unfinished = path.with_name(f"{path.name}.partial")
    is_text = bool(TABLES[path.suffix])
    step = max(1, (1 << (18 if is_text else 22)) // max(1, int(np.prod(rows.shape[1:]))))  # rows at a time

    def pieces() -> Iterator[Columns]:
        for first in range(0, max(len(rows), 1), step):
            piece = np.ascontiguousarray(rows[first : first + step])
            some = slice(first, first + len(piece))
            called = {name: key(some) for name, key in keys.items()}
            yield called | ({about: piece} if isinstance(about, str) else about.columns(piece))

    try:
        (_write_text if is_text else _write_parquet)(unfinished, pieces(), TABLES[path.suffix])
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write_text(path: Path, pieces: Iterator[Columns], mark: str) -> None:
    """Numbers in the fewest digits that are read as the same number."""
    with open(path, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, delimiter=mark, lineterminator="\n")
        for place, piece in enumerate(pieces):
            flat: Columns = {}
            for name, column in piece.items():
                wide = column.reshape(len(column), -1) if column.ndim > 1 else None
                flat |= {name: column} if wide is None else {f"{name}_{i}": one for i, one in enumerate(wide.T)}
            if place == 0:
                writer.writerow(flat)
            writer.writerows(zip(*(column.astype(str) for column in flat.values()), strict=True))


def _write_parquet(path: Path, pieces: Iterator[Columns], _: str) -> None:
    arrow, writer = _pyarrow(), None
    try:
        for piece in pieces:
            columns = {}
            for name, column in piece.items():
                width = int(np.prod(column.shape[1:])) if column.ndim > 1 else 0
                flat = arrow.array(column.reshape(-1))
                columns[name] = arrow.FixedSizeListArray.from_arrays(flat, width) if width else flat
            batch = arrow.record_batch(list(columns.values()), names=list(columns))
            writer = writer or arrow.parquet.ParquetWriter(str(path), batch.schema)
            writer.write_batch(batch)
    finally:
        if writer is not None:
            writer.close()


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("a .parquet file needs the package pyarrow: pip install pyarrow, or write .csv") from None
    return pyarrow
