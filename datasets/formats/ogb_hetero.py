"""OGB's node-prediction downloads with vertices and edges of several types, as a typed graph.

ogbn_mag/
    raw/    num-node-dict.csv.gz (names, counts)  triplet-type-list.csv.gz  nodetype-has-label.csv.gz
            relations/author___writes___paper/  edge.csv.gz  num-edge-list.csv.gz    one folder per relation
            node-feat/paper/node-feat.csv.gz    node-label/paper/node-label.csv.gz
    split/time/  nodetype-has-split.csv.gz  paper/train.csv.gz  valid.csv.gz  test.csv.gz

Types are in the order of their names, relations likewise; publication years are not read.
"""

import csv
import gzip
import io
import re
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from distgnn.datasets.array_files import check_file, damaged, is_present
from distgnn.datasets.checks import MAX_TYPES, check_size
from distgnn.datasets.fields import SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.objects.from_types import from_tables
from distgnn.datasets.objects.labels import tidy_labels
from distgnn.datasets.text.table import read_table
from distgnn.datasets.typed import shown
from distgnn.errors import GraphFormatError, InputError

MOST_NAMES = 1 << 20  # characters of a table of names
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,199}")  # names become names of folders: none leads out of this one


def read_typed(raw: Path, place: Path, name: str, num_classes: int | None, findings: Findings) -> GraphData:
    """The graph of `raw` with its splits at `place`, unchecked."""
    counts = _read_counts(raw / "num-node-dict.csv.gz")
    path = raw / "triplet-type-list.csv.gz"  # relations: type of the source, name, type of the target
    relations = sorted((source, word, target) for source, word, target in _read_names(path, columns=3))
    if len(set(relations)) != len(relations) or len(relations) > MAX_TYPES:
        raise GraphFormatError(f"{path}: names a relation twice, or more than {MAX_TYPES}")
    for kind in (kind for source, _, target in relations for kind in (source, target)):
        if kind not in counts:
            raise GraphFormatError(f"{path}: {kind!r} is no vertex type")
    files = {"num_nodes": raw / "num-node-dict.csv.gz"}
    tables: dict[Any, dict[str, Any]] = {kind: {"num_nodes": count} for kind, count in counts.items()}
    for relation in relations:
        folder = raw / "relations" / shown(relation)
        num_edges = read_table(folder / "num-edge-list.csv.gz", np.int64)
        if num_edges.size != 1:
            raise GraphFormatError(f"{folder / 'num-edge-list.csv.gz'}: expected one number, found {num_edges.size}")
        path = files[f"{shown(relation)}:edges"] = folder / "edge.csv.gz"
        tables[relation] = {"edges": read_table(path, np.int64, columns=2, rows=int(num_edges[0, 0]))}
    rows = sum(len(tables[relation]["edges"]) for relation in relations)

    def refuse(text: str) -> NoReturn:
        raise GraphFormatError(f"{files['num_nodes']}: {text}")

    check_size(sum(counts.values()), rows, refuse)
    for kind, count in counts.items():
        path = raw / "node-feat" / kind / "node-feat.csv.gz"
        if is_present(path):
            files[f"{kind}:feats"] = path
            tables[kind]["feats"] = read_table(path, np.float32, rows=count)
    labelled = _read_marked(raw / "nodetype-has-label.csv.gz", counts)
    for kind in labelled:
        path = files[f"{kind}:labels"] = raw / "node-label" / kind / "node-label.csv.gz"
        tables[kind]["labels"] = tidy_labels(read_table(path, np.float32, columns=1, rows=counts[kind]), path)
    for kind in _read_marked(place / "nodetype-has-split.csv.gz", counts):
        for split in SPLITS:
            path = files[f"{kind}:{split}"] = place / kind / f"{split}.csv.gz"
            tables[kind][split] = read_table(path, np.int64, columns=1).reshape(-1)
    classes = {} if num_classes is None else dict.fromkeys(labelled, num_classes)
    try:
        fields = from_tables(tables, {"name": name, "type_classes": classes}, findings)
    except InputError as error:
        raise GraphFormatError(f"{place}: {error}") from None
    return GraphData(**fields, files=files)


def _read_counts(path: Path) -> dict[str, int]:
    """Vertex type -> its vertices, in the order of names."""
    rows = _read_names(path)
    if len(rows) != 2 or not all(re.fullmatch(r"[0-9]{1,10}", text) for text in rows[1]):
        raise GraphFormatError(f"{path}: expected the names of vertex types and one line of counts")
    if len(set(rows[0])) != len(rows[0]) or len(rows[0]) > MAX_TYPES:
        raise GraphFormatError(f"{path}: names a vertex type twice, or more than {MAX_TYPES}")
    return {kind: int(count) for kind, count in sorted(zip(*rows, strict=True))}


def _read_marked(path: Path, counts: dict[str, int]) -> list[str]:
    """Vertex types of a table of one line whose entry is True."""
    rows = _read_names(path)
    if len(rows) != 2:
        raise GraphFormatError(f"{path}: expected the names of vertex types and one line of True and False")
    marked = [name for name, value in zip(*rows, strict=True) if value == "True"]
    unknown = [name for name in marked if name not in counts]
    if unknown:
        raise GraphFormatError(f"{path}: {unknown[0]!r} is no vertex type")
    return marked


def _read_names(path: Path, columns: int | None = None) -> list[list[str]]:
    """A small table of words, every line of one length."""
    check_file(path)
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            text = stream.read(MOST_NAMES)
        rows = [[word.strip() for word in row] for row in csv.reader(io.StringIO(text, newline="")) if row]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise damaged(path, error) from error
    columns = columns or (len(rows[0]) if rows else 0)
    if not rows or len(text) == MOST_NAMES or any(len(row) != columns for row in rows):
        raise GraphFormatError(f"{path}: expected {columns or 'some'} words on every line")
    wrong = next((word for row in rows for word in row if not NAME.fullmatch(word)), None)
    if wrong is not None:
        raise GraphFormatError(f"{path}: {wrong[:60]!r} is no name")
    return rows
