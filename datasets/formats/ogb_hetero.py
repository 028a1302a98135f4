"""OGB's node-prediction downloads with vertices and edges of several types, as one graph over one vertex set.

ogbn_mag/
    raw/    num-node-dict.csv.gz (names, counts)  triplet-type-list.csv.gz  nodetype-has-label.csv.gz
            relations/author___writes___paper/  edge.csv.gz  num-edge-list.csv.gz    one folder per relation
            node-feat/paper/node-feat.csv.gz    node-label/paper/node-label.csv.gz
    split/time/  nodetype-has-split.csv.gz  paper/train.csv.gz  valid.csv.gz  test.csv.gz

Vertex types stand one after the other in the order of their names, relations likewise, as OGB's loader has them. A
type without features has rows of zeros, one without labels -1; publication years are not read.
"""

import csv
import gzip
import io
import re
import zlib
from pathlib import Path

import numpy as np

from distgnn.datasets.array_files import check_file, damaged, is_present
from distgnn.datasets.checks import FREE_NODES, MAX_TYPES, NODES_PER_ROW, check_size
from distgnn.datasets.graph_data import SPLITS, GraphData
from distgnn.datasets.objects.labels import tidy_labels
from distgnn.datasets.text.table import read_table
from distgnn.errors import GraphFormatError

MOST_NAMES = 1 << 20  # characters of a table of names
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_. -]{0,199}")  # names become names of folders: none leads out of this one


def read_typed_text(raw: Path, name: str, directed: bool) -> GraphData:
    """The graph below `raw`, without splits and unchecked."""
    ranges = _read_ranges(raw / "num-node-dict.csv.gz")
    num_nodes = max(ids.stop for ids in ranges.values())
    path = raw / "triplet-type-list.csv.gz"  # relations: type of the source, name, type of the target
    triplets = sorted((source, word, target) for source, word, target in _read_names(path, columns=3))
    if len(set(triplets)) != len(triplets) or len(triplets) > MAX_TYPES:
        raise GraphFormatError(f"{path}: names a relation twice, or more than {MAX_TYPES}")
    for kind in (kind for source, _, target in triplets for kind in (source, target)):
        if kind not in ranges:
            raise GraphFormatError(f"{path}: {kind!r} is no vertex type")
    blocks = [_read_edges(raw, triplet, ranges) for triplet in triplets]
    graph = GraphData(name, num_nodes, np.concatenate(blocks), directed, files={"edges": raw / "relations"})
    graph.files["num_nodes"] = raw / "num-node-dict.csv.gz"
    check_size(num_nodes, graph.num_edges, lambda text: graph.fail("num_nodes", text))
    graph.edge_types = np.repeat(np.arange(len(blocks), dtype=np.int16), [len(block) for block in blocks])
    graph.edge_type_names = tuple("___".join(triplet) for triplet in triplets)
    graph.node_type_names = tuple(ranges)
    graph.node_types = np.repeat(np.arange(len(ranges), dtype=np.int16), [len(ids) for ids in ranges.values()])
    graph.feats = _read_feats(raw, graph, ranges)
    labels = np.full(graph.num_nodes, -1, dtype=np.int64)
    for kind in _read_marked(raw / "nodetype-has-label.csv.gz", ranges):
        path = raw / "node-label" / kind / "node-label.csv.gz"
        own = ranges[kind]
        labels[own.start : own.stop] = tidy_labels(read_table(path, np.float32, columns=1, rows=len(own)), path)
        graph.files["labels"] = path
    graph.labels = labels
    return graph


def read_typed_splits(place: Path, raw: Path, graph: GraphData) -> None:
    ranges = _read_ranges(raw / "num-node-dict.csv.gz")
    kinds = _read_marked(place / "nodetype-has-split.csv.gz", ranges)
    for split in SPLITS:
        found = []
        for kind in kinds:
            path = place / kind / f"{split}.csv.gz"
            graph.files[split] = path
            ids = read_table(path, np.int64, columns=1).reshape(-1)
            found.append(_shift(ids, ranges[kind], kind, path))
        setattr(graph, split, np.concatenate(found) if found else None)


def _read_ranges(path: Path) -> dict[str, range]:
    """Vertex type -> its ids in the one vertex set, in the order of names."""
    rows = _read_names(path)
    if len(rows) != 2 or not all(re.fullmatch(r"[0-9]{1,10}", text) for text in rows[1]):
        raise GraphFormatError(f"{path}: expected the names of vertex types and one line of counts")
    if len(set(rows[0])) != len(rows[0]) or len(rows[0]) > MAX_TYPES:
        raise GraphFormatError(f"{path}: names a vertex type twice, or more than {MAX_TYPES}")
    ranges, first = {}, 0
    for kind, count in sorted(zip(rows[0], rows[1], strict=True)):
        ranges[kind] = range(first, first + int(count))
        first += int(count)
    return ranges


def _read_edges(raw: Path, triplet: tuple[str, str, str], ranges: dict[str, range]) -> np.ndarray:
    """Edges of one relation, [E, 2] int64, in the ids of the one vertex set."""
    folder = raw / "relations" / "___".join(triplet)
    count = read_table(folder / "num-edge-list.csv.gz", np.int64)
    if count.size != 1:
        raise GraphFormatError(f"{folder / 'num-edge-list.csv.gz'}: expected one number, found {count.size}")
    edges = read_table(folder / "edge.csv.gz", np.int64, columns=2, rows=int(count[0, 0]))
    for column, kind in enumerate((triplet[0], triplet[2])):
        _shift(edges[:, column], ranges[kind], kind, folder / "edge.csv.gz")
    return edges


def _shift(ids: np.ndarray, own: range, kind: str, path: Path) -> np.ndarray:
    """Ids of one vertex type, in place, as ids of the one vertex set."""
    wrong = (ids < 0) | (ids >= len(own))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise GraphFormatError(f"{path}: row {row} holds {ids[row]}, which is no {kind}")
    ids += own.start
    return ids


def _read_feats(raw: Path, graph: GraphData, ranges: dict[str, range]) -> np.ndarray | None:
    feats = None
    for kind, own in ranges.items():
        path = raw / "node-feat" / kind / "node-feat.csv.gz"
        if not is_present(path):
            continue
        graph.files["feats"] = path
        rows = read_table(path, np.float32, rows=len(own))
        if feats is None:
            if graph.num_nodes * rows.shape[1] > max(FREE_NODES, NODES_PER_ROW * rows.size):
                graph.fail("feats", f"{len(rows)} rows are too few for features of all {graph.num_nodes} vertices")
            feats = np.zeros((graph.num_nodes, rows.shape[1]), dtype=np.float32)
        if rows.shape[1] != feats.shape[1]:
            raise GraphFormatError(
                f"{path}: {rows.shape[1]} features, other types have {feats.shape[1]}: one width only"
            )
        feats[own.start : own.stop] = rows
    return feats


def _read_marked(path: Path, ranges: dict[str, range]) -> list[str]:
    """Vertex types of a table of one line whose entry is True."""
    rows = _read_names(path)
    if len(rows) != 2:
        raise GraphFormatError(f"{path}: expected the names of vertex types and one line of True and False")
    marked = [name for name, value in zip(*rows, strict=True) if value == "True"]
    unknown = [name for name in marked if name not in ranges]
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
