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

import numpy as np

from distgnn.datasets.array_files import check_file, damaged, is_present
from distgnn.datasets.checks import MAX_TYPES, check_size
from distgnn.datasets.fields import Relation
from distgnn.datasets.graph_data import SPLITS, GraphData
from distgnn.datasets.objects.labels import tidy_labels
from distgnn.datasets.text.table import read_table
from distgnn.datasets.typed import starts
from distgnn.errors import GraphFormatError

MOST_NAMES = 1 << 20  # characters of a table of names
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,199}")  # names become names of folders: none leads out of this one


def read_typed_text(raw: Path, name: str, num_classes: int | None) -> GraphData:
    """The graph below `raw`, without splits and unchecked."""
    counts = _read_counts(raw / "num-node-dict.csv.gz")
    path = raw / "triplet-type-list.csv.gz"  # relations: type of the source, name, type of the target
    relations = sorted((source, word, target) for source, word, target in _read_names(path, columns=3))
    if len(set(relations)) != len(relations) or len(relations) > MAX_TYPES:
        raise GraphFormatError(f"{path}: names a relation twice, or more than {MAX_TYPES}")
    for kind in (kind for source, _, target in relations for kind in (source, target)):
        if kind not in counts:
            raise GraphFormatError(f"{path}: {kind!r} is no vertex type")
    num_nodes, first = sum(counts.values()), dict(zip(counts, starts(list(counts.values())).tolist(), strict=False))
    blocks = [_read_edges(raw, relation, counts) for relation in relations]
    for relation, block in zip(relations, blocks, strict=True):
        block += [first[relation[0]], first[relation[2]]]
    graph = GraphData(name, num_nodes, np.concatenate(blocks), True, files={"edges": raw / "relations"})
    graph.files["num_nodes"] = raw / "num-node-dict.csv.gz"
    check_size(num_nodes, graph.num_edges, lambda text: graph.fail("num_nodes", text))
    graph.types, graph.type_counts, graph.relations = tuple(counts), tuple(counts.values()), tuple(relations)
    graph.edge_types = np.repeat(np.arange(len(blocks), dtype=np.int16), [len(block) for block in blocks])
    graph.typed = {kind: {} for kind in counts}
    for kind, count in counts.items():
        path = raw / "node-feat" / kind / "node-feat.csv.gz"
        if is_present(path):
            graph.files[f"{kind}:feats"] = path
            graph.typed[kind]["feats"] = read_table(path, np.float32, rows=count)
    for kind in _read_marked(raw / "nodetype-has-label.csv.gz", counts):
        path = raw / "node-label" / kind / "node-label.csv.gz"
        labels = tidy_labels(read_table(path, np.float32, columns=1, rows=counts[kind]), path)
        graph.files[f"{kind}:labels"], graph.typed[kind]["labels"] = path, labels
        graph.type_classes |= {} if num_classes is None else {kind: num_classes}
    return graph


def read_typed_splits(place: Path, graph: GraphData) -> None:
    counts = dict(zip(graph.types, graph.type_counts, strict=True))
    for kind in _read_marked(place / "nodetype-has-split.csv.gz", counts):
        for split in SPLITS:
            path = place / kind / f"{split}.csv.gz"
            ids = read_table(path, np.int64, columns=1).reshape(-1)
            _check_ids(ids, counts[kind], kind, path)
            mask = np.zeros(counts[kind], dtype=bool)
            mask[ids] = True
            graph.typed[kind][f"{split}_mask"] = mask


def _read_counts(path: Path) -> dict[str, int]:
    """Vertex type -> its vertices, in the order of names."""
    rows = _read_names(path)
    if len(rows) != 2 or not all(re.fullmatch(r"[0-9]{1,10}", text) for text in rows[1]):
        raise GraphFormatError(f"{path}: expected the names of vertex types and one line of counts")
    if len(set(rows[0])) != len(rows[0]) or len(rows[0]) > MAX_TYPES:
        raise GraphFormatError(f"{path}: names a vertex type twice, or more than {MAX_TYPES}")
    return {kind: int(count) for kind, count in sorted(zip(*rows, strict=True))}


def _read_edges(raw: Path, relation: Relation, counts: dict[str, int]) -> np.ndarray:
    """Edges of one relation, [E, 2] int64, in the ids of their types."""
    folder = raw / "relations" / "___".join(relation)
    count = read_table(folder / "num-edge-list.csv.gz", np.int64)
    if count.size != 1:
        raise GraphFormatError(f"{folder / 'num-edge-list.csv.gz'}: expected one number, found {count.size}")
    edges = read_table(folder / "edge.csv.gz", np.int64, columns=2, rows=int(count[0, 0]))
    for column, kind in enumerate((relation[0], relation[2])):
        _check_ids(edges[:, column], counts[kind], kind, folder / "edge.csv.gz")
    return edges


def _check_ids(ids: np.ndarray, count: int, kind: str, path: Path) -> None:
    wrong = (ids < 0) | (ids >= count)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise GraphFormatError(f"{path}: row {row} holds {ids[row]}, which is no {kind}")


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
