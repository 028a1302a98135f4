"""Vertices from a table: what they are called, columns of numbers as features, a label, a split; edges that name them.

Legend: N vertices, E edges, K names that edges hold, D columns of numbers.

| column | becomes |
|---|---|
| `id`, or the first one called id, name, node, … | `node_names`, each once; edges name them |
| `label`, or one called label, y, … | classes, texts by name; an empty cell is no label |
| `split`, or one called split | train, valid or test by word; an empty cell is none |
| numbers, True and False, and lists of numbers | features, in the order of the columns |
| others | left out, and named |
"""

import csv
import io
import math
import re
import zlib
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from distgnn.config import did_you_mean
from distgnn.datasets.array_files import check_file, check_room, damaged
from distgnn.datasets.files.edge_text import PLAIN, WHOLE, find_name, read_edge_text
from distgnn.datasets.files.parquet import read_parquet
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.names.field_names import OF_EDGES, OF_NODES, leave_out
from distgnn.datasets.names.renumber import places_of, renumber
from distgnn.datasets.objects.arrays import edges_of_frame, is_frame
from distgnn.datasets.objects.values import SHOWN, as_array, is_missing, name_list
from distgnn.datasets.text_table import IDS, LATIN1, is_number, is_table, mark_of, open_text, refuse_other_text
from distgnn.errors import GraphFormatError, InputError

BLOCK = 1 << 16
ROLES = ("id", "label", "split")
USUAL = {"id": (*IDS, "name"), "label": OF_NODES["labels"], "split": ("split",)}
WORDS = {"train": "train", "training": "train", "test": "test", "testing": "test"} | dict.fromkeys(
    ("valid", "val", "validation", "dev"), "valid"
)
BOOLS = {"true": 1.0, "false": 0.0, "": math.nan}


@dataclass(frozen=True)
class _Table:
    """Columns [N] or [N, D] by name, None where they are left out, and where a row stands."""

    columns: Mapping[str, np.ndarray | None]
    where: Callable[[int], str]

    def fail(self, row: int, text: str) -> NoReturn:
        raise GraphFormatError(f"{self.where(row)}: {text}")


def read_nodes(nodes: Any, asked: Mapping[str, str | None], findings: Findings) -> dict[str, Any]:
    """Fields of a graph from a table of vertices: a file, or a frame of pandas or polars.

    Args: asked: columns by `ROLES`; without one its usual names are looked for.
    Raises: InputError with file, row and column.
    """
    if isinstance(nodes, str | Path):
        path = Path(nodes)
        check_file(path)
        if is_table(path):
            names = _header(path)[0]
            roles = _roles(str(path), names, asked)
            table = _read_text(path, roles)
        elif path.suffix == ".parquet":
            table = _of_frame(read_parquet(path), str(path))
            roles = _roles(str(path), list(table.columns), asked)
        else:
            raise InputError(f"nodes: {path} is of no kind that is read: .csv, .tsv, .txt (also as .gz), .parquet")
    elif is_frame(nodes):
        table = _of_frame(nodes, "nodes")
        roles = _roles("nodes", list(table.columns), asked)
    else:
        raise InputError(f"nodes is a {type(nodes).__name__}: expected a file, or a table of pandas or polars")
    ids = _ids(table, roles["id"])
    fields: dict[str, Any] = {"node_names": ids, "num_nodes": len(ids)}
    if "label" in roles:
        fields["labels"] = _labels(table, roles["label"])
        findings.add("renamed", "labels", f"labels ← {roles['label']}", len(ids))
    if "split" in roles:
        fields |= _splits(table, roles["split"])
    feats = {name: column for name, column in table.columns.items() if name not in roles.values()}
    return fields | _features(table, feats, findings)


def _roles(where: str, names: list[str], asked: Mapping[str, str | None]) -> dict[str, str]:
    """Role -> its column. Raises: InputError for a column that there is not, and where none has the names."""
    if len(set(names)) != len(names):
        raise GraphFormatError(f"{where}: two columns have one name ({', '.join(names)})")
    low = {name.lower(): name for name in names}
    found = {}
    for role in ROLES:
        name = asked.get(role)
        if name is not None and name not in names:
            raise InputError(f"{where} has no column {name!r}{did_you_mean(name, names)}: it has {', '.join(names)}")
        name = name or next((low[one] for one in USUAL[role] if one in low), None)
        if name is not None:
            found[role] = name
    if "id" not in found:
        raise InputError(
            f"{where}: which column says what vertices are called? It has {', '.join(names)}: name it by --id (id=)"
        )
    if len(set(found.values())) != len(found):
        raise InputError(f"{where}: one column cannot be both of {', '.join(f'{r} ({c})' for r, c in found.items())}")
    return found


def _ids(table: _Table, name: str) -> np.ndarray:
    """What vertices are called: texts, or whole numbers."""
    ids = table.columns[name]
    if ids is None or ids.ndim != 1 or ids.dtype.kind not in "iuUO":
        empty = ids is not None and ids.ndim == 1 and ids.dtype.kind == "f" and bool(np.isnan(ids).any())
        if empty:
            table.fail(int(np.argmax(np.isnan(ids))), f"column {name}: an empty id")  # type: ignore[arg-type]
        table.fail(0, f"column {name}: ids are texts or whole numbers")
    if ids.dtype.kind in "UO":
        empty_rows = np.array([is_missing(one) or one == "" for one in ids], bool)
        if empty_rows.any():
            table.fail(int(np.argmax(empty_rows)), f"column {name}: an empty id")
        ids = ids.astype(str)
    order = np.argsort(ids, kind="stable")
    again = np.flatnonzero(ids[order[1:]] == ids[order[:-1]])
    if len(again):
        row = int(order[1:][again].min())
        first = int(np.flatnonzero(ids == ids[row])[0])
        place = table.where(first).rpartition(": ")[2]
        table.fail(row, f"column {name}: {ids[row].item()!r} is there twice (first in {place}): name each vertex once")
    return ids


def _labels(table: _Table, name: str) -> Any:
    """Labels as `read_field` takes them: whole numbers with None for none, other numbers, or texts."""
    column = table.columns[name]
    if column is None or column.ndim != 1:
        table.fail(0, f"column {name}: labels are texts or numbers")
    if column.dtype.kind != "f" or not np.isnan(column).any():
        return column
    known = column[~np.isnan(column)]
    if (known != np.rint(known)).any():
        return column
    return [None if np.isnan(one) else int(one) for one in column]  # whole numbers, some of which are missing


def _splits(table: _Table, name: str) -> dict[str, np.ndarray]:
    column = table.columns[name]
    words = [] if column is None else ["" if is_missing(one) else str(one).strip().lower() for one in column.flat]
    wrong = next((row for row, word in enumerate(words) if word and word not in WORDS), None)
    if column is None or wrong is not None:
        text = f"column {name}: {str(column[wrong])[:SHOWN]!r}" if column is not None else f"column {name}"
        table.fail(wrong or 0, f"{text} is no split: expected train, valid, test, or nothing")
    found = np.array([WORDS.get(word, "") for word in words])
    return {split: np.flatnonzero(found == split) for split in ("train", "valid", "test")}


def _features(table: _Table, columns: Mapping[str, np.ndarray | None], findings: Findings) -> dict[str, Any]:
    """float32 [N, D] of the columns of numbers. Raises: GraphFormatError for no value, or one beyond float32."""
    kept: list[np.ndarray] = []
    used: list[str] = []
    for name, column in columns.items():
        if column is None or column.dtype.kind not in "biuf" or column.ndim > 2:
            leave_out(findings, name, column, "texts" if column is None or column.dtype.kind in "UO" else "no numbers")
            continue
        with np.errstate(over="ignore", under="ignore"):
            narrow = column.reshape(len(column), -1).astype(np.float32)
        bad = ~np.isfinite(narrow).all(1)
        if bad.any():
            row = int(np.argmax(bad))
            value = column[row].item() if column.ndim == 1 else "a number that is none"
            what = "has no value" if value != value else f"holds {value}, which is no number of float32"
            table.fail(row, f"column {name} {what}: fill it, or take the column out ({int(bad.sum())} such rows)")
        kept.append(narrow)
        used.append(name)
    if not kept:
        return {}
    findings.add("renamed", "feats", f"feats ← {name_list(used)}", len(used))
    return {"feats": np.concatenate(kept, 1)}


def _of_frame(frame: Any, called: str) -> _Table:
    """A frame of pandas, polars, or of a Parquet file."""
    columns: dict[str, np.ndarray | None] = {}
    for name in frame.columns:
        try:
            column = as_array(frame[name], f"column {name}")
        except InputError as error:
            if "column" in str(error) and "row " in str(error):
                raise GraphFormatError(f"{called}: {error}") from None
            columns[str(name)] = None
        else:
            columns[str(name)] = column
    return _Table(columns, lambda row: f"{called}: row {row}")


def _header(path: Path) -> tuple[list[str], str]:
    """Names of the columns, and what stands between them."""
    with open_text(path) as stream:
        block = stream.read(BLOCK)
    lines = block.lstrip(b"\xef\xbb\xbf").splitlines()
    for number, line in enumerate(lines[:2], 1):
        refuse_other_text(path, line, number)
    if not lines:
        raise GraphFormatError(f"{path}: has no rows")
    text = lines[0].decode("utf-8", "replace")
    mark = mark_of(path, text) or ","
    names = [name.strip() for name in next(csv.reader([text], delimiter=mark))]
    if any(map(is_number, names)):
        raise GraphFormatError(f"{path}: line 1: {text[:60]!r} has a number: expected the names of the columns")
    return [name or "row" for name in names], mark


def _read_text(path: Path, roles: Mapping[str, str]) -> _Table:
    """A table as text; columns in roles as texts or whole numbers, others as float64, or None where they are texts."""
    names, mark = _header(path)
    cells: list[Any] = [[] if name in roles.values() else array("d") for name in names]
    lines, known = array("q"), {}  # type: ignore[var-annotated]
    try:
        for line, row in _rows(path, mark, len(names)):
            lines.append(line)
            if len(lines) % BLOCK == 0:  # a packed file may unpack to a thousand times its size
                check_room(path, 8 * len(lines) * len(names))
            for place, cell in enumerate(row):
                if isinstance(cells[place], list):
                    cells[place].append(known.setdefault(cell, cell).strip())
                elif cells[place] is not None and not _add_number(cells[place], cell):
                    if not np.isnan(cells[place]).all():
                        raise GraphFormatError(
                            f"{path}: line {line}: column {names[place]} holds {cell[:SHOWN]!r} among numbers: give a "
                            "number, or take the column out"
                        )
                    cells[place] = None
    except UnicodeDecodeError as error:
        byte = f"byte 0x{error.object[error.start]:02x}"
        raise GraphFormatError(f"{path}: is no text in UTF-8 ({byte}): {LATIN1}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, error) from error
    if not lines:
        raise GraphFormatError(f"{path}: has names of columns, and no rows")
    check_room(path, 8 * len(lines) * len(names))
    columns: dict[str, np.ndarray | None] = {}
    for name, column in zip(names, cells, strict=True):
        if isinstance(column, list):
            columns[name] = _typed(column, is_id=name == roles["id"])
        else:
            columns[name] = None if column is None else np.array(column)
    return _Table(columns, lambda row: f"{path}: line {lines[row]}")


def _rows(path: Path, mark: str, width: int) -> Iterator[tuple[int, list[str]]]:
    """Number of the line, and cells of each row."""
    with open_text(path) as raw, io.TextIOWrapper(raw, encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=mark, strict=True)
        try:
            for row in reader:
                if not row or reader.line_num == 1:
                    continue
                if len(row) != width:
                    shown = mark.join(row)[:60]
                    raise GraphFormatError(f"{path}: line {reader.line_num}: expected {width} columns, found {shown!r}")
                yield reader.line_num, row
        except csv.Error as error:
            raise GraphFormatError(f"{path}: line {reader.line_num}: {error}") from None


def _add_number(column: Any, cell: str) -> bool:
    """Is this a number, True, False or nothing? Then the column has it."""
    try:
        column.append(float(cell or "nan"))
    except ValueError:
        number = BOOLS.get(cell.strip().lower())
        if number is None:
            return False
        column.append(number)
    return True


def _typed(cells: list[str], is_id: bool) -> np.ndarray:
    """Whole numbers, of labels also others, where all cells are such (of labels, also with empty ones); or texts."""
    number = re.compile(PLAIN if is_id else WHOLE)
    filled = [cell for cell in cells if cell]
    if filled and all(number.fullmatch(cell) for cell in filled) and (len(filled) == len(cells) or not is_id):
        if len(filled) == len(cells):
            return np.array(cells, np.int64)
        return np.array([float(cell or "nan") for cell in cells])
    if not is_id and filled and all(map(is_number, filled)):
        return np.array([float(cell or "nan") for cell in cells])
    return np.array(cells, dtype=object)


def read_two_tables(edges: Any, content: dict[str, Any], findings: Findings) -> tuple[np.ndarray, dict[str, Any]]:
    """Edges [E, 2] and fields, as `GraphData.from_arrays` takes them.

    Args: edges: a file of text or Parquet, a frame, or names as `dg.renumber` takes them; content: "nodes", and the
        names of its columns "id", "label" and "split", which are taken out.
    Raises: InputError with file, row and column.
    """
    asked = {role: content.pop(role, None) for role in ROLES}
    fields = read_nodes(content.pop("nodes"), asked, findings)
    path = Path(edges) if isinstance(edges, str | Path) else None
    of_edges: dict[str, Any] = {}
    if path is not None and is_table(path):
        ours = Findings(findings.collect)
        graph = read_edge_text(path, ours, True)
        findings += [one for one in ours if one.severity != "understood"]  # there, vertices are those that edges name
        pairs, names = graph.edges, graph.node_names
        of_edges = {name: found for name in OF_EDGES if (found := getattr(graph, name)) is not None}
        order = "other" if graph.arc_order == "sorted" else graph.arc_order  # of names, not of rows
        of_edges |= {"directed": graph.directed, "arc_order": order, "name": graph.name}
    else:
        if path is not None and path.suffix != ".parquet":
            raise InputError(f"edges: {path} is no table: beside nodes .csv, .tsv, .txt (also as .gz) or .parquet")
        try:
            frame = edges if path is None else read_parquet(path)
            of_columns = path is not None or is_frame(frame)
            ends, of_edges = edges_of_frame(frame, findings) if of_columns else (frame, {})
            pairs, names = renumber(ends)
        except GraphFormatError:
            raise
        except InputError as error:
            raise error if path is None else GraphFormatError(f"{path}: {error}") from None
        of_edges |= {} if path is None else {"name": path.stem}
    places, missing = places_of(*alike(names, fields["node_names"]))  # type: ignore[arg-type]
    if missing.any():
        unknown = np.flatnonzero(missing)
        rows = np.isin(pairs, unknown).any(1)
        row = int(np.argmax(rows))
        name = names[pairs[row][np.isin(pairs[row], unknown)][0]].item()  # type: ignore[index]
        place = f"{path or 'edges'}: row {row}"
        if path is not None and is_table(path):
            place = f"{path}: line {find_name(path, str(name))}"
        raise GraphFormatError(
            f"{place}: {name!r} is in no row of the nodes ({int(rows.sum())} such edges): add it there, or take the "
            "edge out"
        )
    return places[pairs], of_edges | fields | {"num_nodes": len(fields["node_names"])}


def alike(names: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Names of edges and of vertices as one kind: texts, where either are; 7 and "7" are one name."""
    both_numbers = names.dtype.kind in "iu" and ids.dtype.kind in "iu"
    if both_numbers and np.result_type(names, ids).kind != "f":
        return names, ids
    return names.astype(str), ids.astype(str)
