"""Edge lists as text: one edge per line, with SNAP's and KONECT's comments, a header line, weights, times and names.

Legend: E edges.

| in the file | taken as |
|---|---|
| `# Undirected graph: …`, `# Directed graph …` (SNAP) | both arcs of each edge, or one |
| `% sym unweighted`, `% asym …` (KONECT) | the same; ids from 1; the third number is a weight, the fourth a time |
| a line of names first | which columns are the ends, weights, types or features; others are left out |
| a third column without a name | times where all are whole and at least 10^8, else weights |
"""

import csv
import itertools
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from distgnn.datasets.array_files import check_file, damaged
from distgnn.datasets.files.understood import FROM_ONE, make_graph
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.names.field_names import OF_EDGES, PYG_NAMES, leave_out, take_columns
from distgnn.datasets.names.renumber import renumber as names_to_ids
from distgnn.datasets.objects.arrays import ends_of, in_lower_case
from distgnn.datasets.text_table import (
    CR_ALONE,
    LATIN1,
    is_number,
    line_of_row,
    mark_of,
    names_columns,
    open_text,
    read_table,
    refuse_other_text,
    text_rows,
)
from distgnn.errors import GraphFormatError

HEAD_BYTES = 1 << 16
FIRST_TIME = 1e8  # seconds since 1970: 1973
LARGEST_ID = 2.0**53  # of ids beside other columns, which are read as float64
WHOLE, PLAIN = r"-?\d{1,18}", r"0|-?[1-9]\d{0,17}"  # 007 and 7 are one id, and two names
HINT = "; ids that are names or have gaps: --renumber (renumber=True)"


@dataclass(frozen=True)
class _Head:
    """What the first lines say."""

    separator: str | None  # None for blanks
    names: list[str]  # of the columns
    words: list[str]  # of the first edge
    quoted: bool  # has it quotes?
    skip: bool  # has the first line that is no comment the names?
    directed: bool | None  # None where nothing says it
    konect: bool  # has it KONECT's first line?
    most: int | None  # the largest id, where a header says it


def read_edge_text(path: Path, findings: Findings, renumber: bool) -> GraphData:
    """Read and check an edge list; renumber: ids are names, which `node_names` keeps. Errors name the line."""
    head, names, ends, columns = _read_columns(path, findings, renumber)
    sources, targets = (columns[end] for end in ends)
    fields: dict[str, Any] = {}
    if renumber:
        pairs, fields["node_names"] = names_to_ids(
            tuple(end.astype(np.int64) if end.dtype.kind == "f" else end for end in (sources, targets))
        )
        sources, targets, num_nodes = pairs[:, 0], pairs[:, 1], len(fields["node_names"])
        first_and_last = [repr(name.item()) for name in fields["node_names"][[0, -1]]] if num_nodes else ["nothing"] * 2
        ids_from = f"ids renumbered, from {' to '.join(first_and_last)}"
    else:
        sources, targets = (_ids(path, end, head) for end in (sources, targets))
        num_nodes = head.most or int(max(sources.max(initial=-1), targets.max(initial=-1))) + 1
        lowest = min((int(end.min()) for end in (sources, targets) if len(end)), default=0)
        ids_from = FROM_ONE if head.konect else f"ids from {lowest}"
    frame = {name: columns[name] for name in names if name not in ends}
    known = in_lower_case(frame)
    fields |= take_columns(known, OF_EDGES, PYG_NAMES | {"edge_weight": "weight"}, findings) if head.names else {}
    if not head.names:
        fields |= _nameless(frame, findings)
    return make_graph(
        path, (sources, targets), num_nodes, findings, fields, directed=head.directed is not False, ids_from=ids_from
    )


def text_ends(path: Path) -> np.ndarray:
    """The two ids of each line, [M, 2] of numbers or of texts, in their order and as they are."""
    _, _, ends, columns = _read_columns(path, Findings(), True)
    found = (columns[end] for end in ends)
    return np.stack([one.astype(np.int64) if one.dtype.kind == "f" else one for one in found], 1)


def _read_columns(
    path: Path, findings: Findings, renumber: bool
) -> tuple[_Head, list[str], tuple[str, str], dict[str, Any]]:
    """(what the first line says, names of columns, of the ends, columns by name)."""
    check_file(path)
    try:
        head = _read_head(path)
        numeric = not head.quoted and all(map(is_number, head.words))
        if len(head.words) < 2:
            shown = " ".join(head.words)
            raise GraphFormatError(
                f"{path}: expected two ids in a line, found {shown[:60]!r}: columns stand apart by blanks, tabs, "
                "commas or semicolons"
            )
        names = head.names or [str(place) for place in range(len(head.words))]
        if len(set(names)) != len(names):
            raise GraphFormatError(f"{path}: two columns have one name ({', '.join(names)})")
        ends = _ends(head, names)
        if head.names and ends_of(names) is None:
            findings.add("renamed", "edges", f"edges ← {ends[0]}, {ends[1]}")
        columns: dict[str, Any] | None = _numbers(path, head, names, ends, renumber) if numeric else None
        ids = [] if columns is None else [columns[end] for end in ends]
        if any(one.dtype.kind == "f" and np.abs(one).max(initial=0) >= LARGEST_ID for one in ids):
            columns = None  # ids that were read as float64 may not be what the file has
        if columns is None:
            columns = _texts(path, head, names, ends, PLAIN if renumber else WHOLE)
    except (OSError, EOFError, zlib.error) as error:
        raise damaged(path, error) from error
    return head, names, ends, columns


def find_name(path: Path, name: str) -> int:
    """The first line of an edge list that names this vertex; 0: there is none."""
    head = _read_head(path)
    names = head.names or [str(place) for place in range(len(head.words))]
    places = [names.index(end) for end in _ends(head, names)]
    lines = (line for line, words in _rows(path, head) if name in [words[place] for place in places])
    return next(lines, 0)


def _ends(head: _Head, names: list[str]) -> tuple[str, str]:
    found = ends_of(names) if head.names else None
    return found or (names[0], names[1])


def _read_head(path: Path) -> _Head:
    with open_text(path) as stream:
        block = stream.read(HEAD_BYTES)
    refuse_other_text(path, block[:2])
    lone = re.search(rb"\r(?![\r\n]|$)", block)
    if lone is not None:
        raise GraphFormatError(f"{path}: line {block.count(10, 0, lone.start()) + 1}: {CR_ALONE}")
    lines = [line.strip() for line in block.decode("utf-8-sig", "replace").split("\n")]
    comments = [line.lstrip("#% ") for line in lines if line[:1] in ("#", "%")]
    rows = [line for line in lines if line and line[:1] not in ("#", "%")]
    if not rows:
        raise GraphFormatError(f"{path}: has no edges")
    if lines[0].startswith("%%MatrixMarket"):
        raise GraphFormatError(f"{path}: this is a MatrixMarket file: call it NAME.mtx")
    for line in rows[:2]:  # the second may have the first numbers
        refuse_other_text(path, line.encode(), lines.index(line) + 1)
    named = _has_names(path, rows[0])
    if named and len(rows) == 1 and ends_of(_split(rows[0], mark_of(path, rows[0]))):
        raise GraphFormatError(f"{path}: has no edges, only names of columns")
    first = rows[1 if named and len(rows) > 1 else 0]
    separator = None if all(map(is_number, first.split())) else mark_of(path, first)
    words, names = _split(first, separator), []
    if named:
        names = [name.strip("\"'") for name in _split(rows[0], separator or ("\t" if "\t" in rows[0] else None))]
        if separator in (None, "\t") and len(names) == len(words) - 1:  # R and pandas leave out the name of row numbers
            names = ["", *names]
        names[0] = names[0] or "row"
    if words[-1] == "" and len(words) > 2 and (not named or names[-1] == "" or len(names) < len(words)):
        words.pop()  # a separator ends each line
        names = names[: len(words)]
    above = _split(comments[-1], separator) if comments and not named else []
    if len(above) == len(words) and ends_of(above) is not None:  # a comment names the columns
        names = above
    if named and (len(rows) < 2 or len(names) != len(words)):
        raise GraphFormatError(f"{path}: {len(names)} names of columns, and {len(words)} columns")
    if named and not any(map(is_number, words)) and ends_of(names) is None:
        names, words, named = [], names, False  # a first edge of names
    directed = None
    for line in comments:
        found = re.match(r"(un)?directed graph", line, re.IGNORECASE)
        directed = not found[1] if found else directed
    konect = re.match(r"%\s*(sym|asym|bip)\b\s*(.*)", lines[0])
    most = None
    if konect:
        if konect[1] == "bip":
            raise GraphFormatError(
                f"{path}: line 1: a bipartite graph (bip) counts the vertices of each column anew: add the number of "
                "the first column's to the second, and write the edges without this line"
            )
        directed = konect[1] == "asym"
        sizes = re.match(r"%\s*(\d+)\s+(\d+)", lines[1]) if len(lines) > 1 else None
        most = int(sizes[2]) if sizes else None
    return _Head(separator, names, words, '"' in first, named, directed, bool(konect), most)


def _has_names(path: Path, line: str) -> bool:
    """Whether a first line has names of columns: in place of ids, or known ones."""
    words = [word.strip("\"'") for word in _split(line, mark_of(path, line))]
    return names_columns(line) and (ends_of(words) is not None or not any(map(is_number, words[:2])))


def _split(line: str, separator: str | None) -> list[str]:
    if separator is None or (separator == "\t" and '"' not in line):
        return line.split(separator)
    return [word.strip() for word in next(csv.reader([line], delimiter=separator or " "))]


def _numbers(
    path: Path, head: _Head, names: list[str], ends: tuple[str, str], renumber: bool
) -> dict[str, np.ndarray] | None:
    """All columns of a table of numbers; None where ids may be names, and some are not plain."""
    whole = len(names) == 2 and all(re.fullmatch(r"[+-]?\d+", word) for word in head.words)
    try:
        plain = tuple(names.index(end) for end in ends) if renumber else ()
        table = read_table(path, np.int64 if whole else np.float64, columns=len(names), plain=plain)
    except GraphFormatError:
        if renumber:
            return None
        raise
    return {name: table[:, place] for place, name in enumerate(names)}


def _texts(path: Path, head: _Head, names: list[str], ends: tuple[str, str], number: str) -> dict[str, Any]:
    """Columns of a table with texts; ends are whole numbers where all match `number`, others float64 if they can be."""
    columns: dict[str, Any] = {name: [] for name in names}
    known: dict[str, str] = {}
    for line, words in _rows(path, head):
        words = words[:-1] if len(words) == len(names) + 1 and not words[-1] else words
        if len(words) != len(names):
            raise GraphFormatError(
                f"{path}: line {line}: expected {len(names)} columns, found {' '.join(words)[:60]!r}"
            )
        for name, word in zip(names, words, strict=True):
            columns[name].append(known.setdefault(word, word))
    whole = all(re.fullmatch(number, word) for end in ends for word in columns[end])
    for name in names:
        try:
            if name in ends and not whole:
                raise ValueError
            columns[name] = np.array(columns[name], dtype=np.int64 if name in ends else np.float64)
        except ValueError:
            columns[name] = np.array(columns[name], dtype=str)
    return columns


def _rows(path: Path, head: _Head) -> Iterator[tuple[int, list[str]]]:
    """Line number and words of each edge."""
    for number, line in itertools.islice(text_rows(path), int(head.skip), None):
        if b"\r" in line:
            raise GraphFormatError(f"{path}: line {number}: {CR_ALONE}")
        try:
            text = line.decode()
            why = "a NUL byte" if "\0" in text else None  # numpy's texts drop it where it is the last
        except UnicodeDecodeError as error:
            why = f"byte 0x{line[error.start]:02x}"
        if why is not None:  # else one name may become another
            raise GraphFormatError(f"{path}: line {number}: is no text in UTF-8 ({why}): {LATIN1}")
        yield number, _split(text, head.separator)


def _ids(path: Path, end: np.ndarray, head: _Head) -> np.ndarray:
    """Ids of vertices from 0."""
    first, most = int(head.konect), head.most

    def fail(row: int, text: str) -> NoReturn:
        raise GraphFormatError(f"{path}: line {line_of_row(path, row, head.skip)}: {text}")

    if end.dtype.kind == "U":
        row = next((place for place, word in enumerate(end) if not re.fullmatch(WHOLE, word)), None)
        if row is not None:
            fail(row, f"{end[row].item()[:60]!r} is no whole number{HINT}")
        end = end.astype(np.int64)
    if end.dtype.kind == "f":
        bad = ~((end == np.rint(end)) & (np.abs(end) < LARGEST_ID))
        if bad.any():
            fail(int(np.argmax(bad)), f"{end[np.argmax(bad)]:.17g} is no whole number: expected a vertex id")
        end = end.astype(np.int64)
    bad = end < first
    if bad.any():
        known = "run from 1 in KONECT's files" if first else "are not negative"
        fail(int(np.argmax(bad)), f"vertex {end[np.argmax(bad)]}: ids {known}{'' if first else HINT}")
    bad = end > most if most is not None else np.zeros(0, bool)
    if bad.any():
        fail(int(np.argmax(bad)), f"vertex {end[np.argmax(bad)]}: the second line says {most} vertices")
    return end - first


def _nameless(frame: dict[str, np.ndarray], findings: Findings) -> dict[str, Any]:
    """Weights of the first column of numbers that are no times; all others are left out."""
    fields: dict[str, Any] = {}
    for name, values in frame.items():
        called = f"column {int(name) + 1}"
        if values.dtype.kind == "U":
            leave_out(findings, called, values, "texts")
        elif len(values) and (values >= FIRST_TIME).all() and (values == np.rint(values)).all():
            leave_out(findings, called, values, f"times, {values.min():.0f} to {values.max():.0f}")
        elif (values == 1).all():
            leave_out(findings, called, values, "all 1")
        elif "edge_weight" in fields:
            leave_out(findings, called, values, "beside the weights")
        else:
            fields["edge_weight"] = values
            findings.add("renamed", "edge_weight", f"edge_weight ← {called}", len(values))
    return fields
