"""Tables of numbers as text (.csv, .txt, also .gz), read block by block into one array."""

import codecs
import gzip
import io
import re
import warnings
import zlib
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from distgnn.datasets.array_files import MOST_PACKED, check_file, check_room, damaged
from distgnn.errors import GraphFormatError

BLOCK = 1 << 22
# A million numbers of 15 digits. Without a limit a file without newlines is joined block by block, in quadratic time.
LONGEST_LINE = 1 << 24


def read_table(
    path: Path, dtype: Any, columns: int = 0, rows: int | None = None, plain: tuple[int, ...] = ()
) -> np.ndarray:
    """A whole table.

    Args:
        path: text with one row per line, numbers apart by commas, semicolons, blanks or tabs; lines that start with
            # or %, and a line of column names before all others, are skipped.
        dtype: int64 for whole numbers, or a float type (an empty field is NaN).
        columns: expected numbers per line; 0 takes what the first line has.
        rows: expected number of rows where it is known (then the result is filled in place).
        plain: columns whose numbers must be as Python writes an int; 007 and 7 are two names.
    Returns: [rows, columns].
    Notes: unpacking runs ahead in a second thread; lines that numpy's reader refuses are looked at one by one.
    """
    check_file(path)
    if rows is not None and not 0 <= rows * max(columns, 1) <= _most_bytes(path):
        raise GraphFormatError(f"{path}: cannot hold the {rows} rows that belong to this graph; it is too short")
    try:
        with open_text(path) as stream:
            return _read_stream(path, stream, np.dtype(dtype), columns, rows, plain)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, error) from error


def open_text(path: Path) -> Any:
    """A file's bytes, unpacked where its name ends in .gz."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else open(path, "rb")


def _read_stream(
    path: Path, stream: BinaryIO, dtype: np.dtype, columns: int, rows: int | None, plain: tuple[int, ...]
) -> np.ndarray:
    result, num_values, num_lines = None, 0, 0
    parts: list[np.ndarray] = []
    for text in _line_blocks(path, stream):
        if num_lines == 0:
            text, num_lines = _skip_header(path, text)
        table = _scan(path, text, dtype, columns, num_lines)
        if plain and not _are_plain(text, table, plain):
            raise GraphFormatError(f"{path}: some numbers are not as Python writes them")
        numbers, columns = table.reshape(-1), table.shape[1] if len(table) else columns
        num_lines += text.count(b"\n")
        if rows is None:
            # The free memory shrinks as parts are kept; at the end all of them are joined into a second copy.
            check_room(path, num_values * dtype.itemsize + 2 * numbers.nbytes)
            parts.append(numbers)
        else:
            if result is None:
                count = rows * columns
                if count > _most_bytes(path):
                    short = f"cannot hold the {count} numbers that belong to this graph; it is too short"
                    raise GraphFormatError(f"{path}: {short}")
                check_room(path, count * dtype.itemsize)
                result = np.empty(count, dtype=dtype)
            if num_values + len(numbers) > len(result):
                raise GraphFormatError(f"{path}: holds more than the {rows} rows that belong to this graph")
            result[num_values : num_values + len(numbers)] = numbers
        num_values += len(numbers)
    width = max(columns, 1)
    if rows is not None and num_values != rows * width:
        raise GraphFormatError(f"{path}: expected {rows} rows, found {num_values // width}; the file is cut short")
    if rows is None:
        result = np.concatenate(parts) if parts else np.empty(0, dtype=dtype)
    elif result is None:
        result = np.empty(0, dtype=dtype)
    return result.reshape(-1, width)


def _most_bytes(path: Path) -> int:
    """The longest text that a file of this size can be."""
    return path.stat().st_size * (MOST_PACKED if path.suffix == ".gz" else 1) + 1


def _line_blocks(path: Path, stream: BinaryIO) -> Iterator[bytes]:
    """Blocks that end with a line's end; the next one is read while the caller works on this one."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        following = pool.submit(stream.read, BLOCK)
        rest = b""
        while block := following.result():
            following = pool.submit(stream.read, BLOCK)
            cut = block.rfind(b"\n") + 1
            if cut == 0:
                rest += block
                if len(rest) > LONGEST_LINE:
                    raise GraphFormatError(f"{path}: a line is longer than {LONGEST_LINE >> 20} MiB; this is no table")
                continue
            yield rest + block[:cut]
            rest = block[cut:]
        if rest:
            yield rest + b"\n"


def _skip_header(path: Path, text: bytes) -> tuple[bytes, int]:
    """Drop a byte-order mark, comments, and a line of column names; how many lines were dropped."""
    refuse_other_text(path, text[:2])
    text = text.removeprefix(codecs.BOM_UTF8)
    begin, lines = 0, 0
    while begin < len(text):
        end = text.index(b"\n", begin) + 1
        line = text[begin:end].strip()
        if b"\r" in line:
            raise GraphFormatError(f"{path}: line {lines + 1}: {CR_ALONE}")
        if line[:1] not in COMMENT:
            refuse_other_text(path, line, lines + 1)
            named = names_columns(line.decode("utf-8", "replace"))
            return (text[end:], lines + 1) if named else (text[begin:], lines)
        begin, lines = end, lines + 1
    return b"", lines


def refuse_other_text(path: Path, line: bytes, number: int = 1) -> None:
    """Raise GraphFormatError for a first line in UTF-16, or as Excel and decimal commas have it."""
    comma = re.search(rb"(?:^|[;\t])([+-]?\d+,\d+)(?=$|[;\t\r\n])", line)
    if line[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        how = "convert it, as iconv -f UTF-16 -t UTF-8 does"
        raise GraphFormatError(f"{path}: line 1: is no text in UTF-8 (byte 0x{line[0]:02x}, of UTF-16): {how}")
    if line[:4].lower() == b"sep=":
        raise GraphFormatError(f"{path}: line {number}: sep= is Excel's word for the separator: delete this line")
    if comma is not None and (b";" in line or b"\t" in line):
        found = comma[1].decode()
        raise GraphFormatError(f"{path}: line {number}: {found} has a decimal comma: write {found.replace(',', '.')}")


def is_number(word: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", word) is not None


def names_columns(line: str) -> bool:
    """Whether a first line has names of columns: it starts with a letter or a quote and is no number; of pandas' index
    the name is empty."""
    line = line.lower().lstrip(",;")
    quoted = re.match(r"\s*([\"'])(.*?)\1", line)
    if quoted is not None and is_number(quoted[2].strip()):
        return False
    return (line[:1].isalpha() or line[:1] in ('"', "'", "_")) and not line.startswith(("nan", "inf"))


IDS = ("id", "node", "node_id", "nodeid", "nid", "index", "idx", "vertex", "vertex_id")


def id_column(path: Path) -> str | None:
    """The name of a first column that numbers the rows, empty for pandas' index; None: there is none."""
    line = next((line for _, line in text_rows(path)), b"").decode("utf-8", "replace")
    first = re.split(r"[,;\t ]", line)[0].strip("\"'") if names_columns(line) else None
    return first if first == "" or (first or "").lower() in IDS else None


LATIN1 = "convert it, as iconv -f LATIN1 -t UTF-8 does"
CR_ALONE = "lines end in CR alone: end them in LF, as tr '\\r' '\\n' does"
LONE_RETURN = re.compile(rb"\r(?![\r\n])")
INTEGER = re.compile(r"[+-]?\d{1,18}", re.ASCII)
FLOAT = re.compile(r"(?i)([+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|nan|inf|infinity))?", re.ASCII)
COMMENT = (b"", b"#", b"%")  # how a line without numbers starts
TABLES = (".csv", ".txt", ".tsv", ".edges", ".edgelist", ".el")


def is_table(path: Path) -> bool:
    return path.name.removesuffix(".gz").lower().endswith(TABLES)


def mark_of(path: Path, line: str) -> str | None:
    """What columns of a line stand apart by; None: blanks."""
    kind = Path(path.name.removesuffix(".gz")).suffix.lower()
    return next((mark for mark in (",;\t" if kind == ".csv" else "\t,;") if mark in line), None)


def line_of_row(path: Path, row: int, header: bool | None = None) -> int:
    """The line, counted from 1, that holds a row, counted from 0; header: whether the first has names, if known."""
    rows = text_rows(path)
    number, first = next(rows)
    for _ in range(row + (names_columns(first.decode("utf-8", "replace")) if header is None else header)):
        number, _ = next(rows)
    return number


def text_rows(path: Path) -> Iterator[tuple[int, bytes]]:
    """Lines that are no comments, each with its number from 1; the first without a byte-order mark."""
    with open_text(path) as stream:
        for number, line in enumerate(stream, 1):
            line = line.removeprefix(codecs.BOM_UTF8 if number == 1 else b"").strip()
            if line[:1] not in COMMENT:
                yield number, line


def _scan(path: Path, text: bytes, dtype: np.dtype, columns: int, lines_before: int) -> np.ndarray:
    """The numbers [n, columns] of a block of whole lines."""
    lone = LONE_RETURN.search(text) if b"\r" in text else None
    if lone is not None:
        line = lines_before + text.count(b"\n", 0, lone.start()) + 1
        raise GraphFormatError(f"{path}: line {line}: {CR_ALONE}")
    numbers = _load(text, dtype)
    if numbers is None or columns not in (0, numbers.shape[1]):
        numbers = _scan_lines(path, text, dtype, columns, lines_before)
    return numbers


def _load(text: bytes, dtype: Any, columns: tuple[int, ...] | None = None) -> np.ndarray | None:
    """What numpy's reader makes of a block; None where a line is anything but numbers."""
    mark = "," if b"," in text or b";" in text else None
    rows = io.BytesIO(text.replace(b";", b","))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.loadtxt(rows, dtype, delimiter=mark, comments=None, ndmin=2, usecols=columns)
    except (ValueError, Warning):
        return None


def _scan_lines(path: Path, text: bytes, dtype: np.dtype, columns: int, lines_before: int) -> np.ndarray:
    """The same, line by line: with comments and empty fields. Raises: GraphFormatError for the first bad line."""
    is_float, expected = dtype.kind == "f", columns
    number, make = FLOAT if is_float else INTEGER, float if is_float else int
    found: Any = array("d" if is_float else "q")
    for place, of_line in enumerate(io.BytesIO(text), lines_before + 1):
        line = of_line.decode("utf-8", "replace").strip()
        if line[:1] in ("", "#", "%"):
            continue
        words = re.split(r"\s*[,;]\s*|\s+", line)
        if len(words) == columns + 1 > 1 and not words[-1]:
            words.pop()
        if len(words) != (columns or len(words)) or not all(map(number.fullmatch, words)):
            kind = "numbers" if is_float else "whole numbers"
            problem = f"expected {columns} {kind}" if columns else f"expected {kind}"
            # A table of two columns of whole numbers holds edges, here with other ids.
            hint = ""
            if not is_float and expected == 2:
                ids = "; ids other than 0, 1, 2 …: --renumber of an edge list, or dg.renumber"
                hint = ids if len(words) == 2 else _edge_hint(path, line)
            raise GraphFormatError(f"{path}: line {place}: {problem}, found {line[:60]!r}{hint}")
        columns = len(words)
        found.extend(make(word or "nan") for word in words)
    return np.array(found, dtype).reshape(-1, max(columns, 1))


def _are_plain(text: bytes, table: np.ndarray, plain: tuple[int, ...]) -> bool:
    """Are the numbers of these columns as Python writes an int?"""
    names = _load(text, str, plain)
    if names is None or len(names) != len(table):
        return not len(table)
    with np.errstate(invalid="ignore"):
        return bool((np.char.strip(names) == table[:, plain].astype(np.int64).astype(str)).all())


def _edge_hint(path: Path, line: str) -> str:
    """What a file of edges with other than two numbers in a line probably is."""
    with open_text(path) as stream:
        rows = [row.strip() for row in stream.read(1 << 20).decode("utf-8", "replace").splitlines()]
    if rows[0].startswith("%%MatrixMarket"):
        return "; this is a MatrixMarket file: dg.GraphData.from_scipy(scipy.io.mmread(file))"
    rows = [row for row in rows if row[:1] not in ("#", "%")]
    first = re.fullmatch(r"(\d+)\s+\d+(\s+\d+)*", rows[0])
    if first and int(first[1]) in (len(rows) - 1, len(rows)):
        return "; is this a METIS file (N and M first, then the neighbours of each vertex)? Write one edge per line"
    third = "; a third column is no part of an edge: write it to edge_weight.npy or edge_types.npy, row by row"
    return third if len(re.split(r"\s*[,;]\s*|\s+", line)) == 3 else ""
