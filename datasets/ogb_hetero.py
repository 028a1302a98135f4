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
import zlib
from pathlib import Path

import numpy as np

from distgnn.datasets.array_files import check_file, damaged
from distgnn.datasets.folder import tidy_labels
from distgnn.datasets.graph_data import SPLITS, GraphData
from distgnn.datasets.text_table import read_table
from distgnn.errors import GraphFormatError


def read_typed_text(raw: Path, name: str, directed: bool) -> GraphData:
    """The graph below `raw`, without splits and unchecked."""
    firsts = _first_ids(raw / "num-node-dict.csv.gz")
    num_nodes = firsts.pop("")
    triplets = sorted(tuple(row) for row in _read_names(raw / "triplet-type-list.csv.gz", columns=3))
    blocks = [_read_edges(raw, triplet, firsts) for triplet in triplets]
    graph = GraphData(name, num_nodes, np.concatenate(blocks), directed, files={"edges": raw / "relations"})
    graph.edge_types = np.repeat(np.arange(len(blocks), dtype=np.int16), [len(block) for block in blocks])
    graph.edge_type_names = tuple("___".join(triplet) for triplet in triplets)
    graph.node_type_names = tuple(firsts)
    ends = [*list(firsts.values())[1:], num_nodes]
    counts = np.subtract(ends, list(firsts.values()))
    graph.node_types = np.repeat(np.arange(len(counts), dtype=np.int16), counts)
    sizes = dict(zip(firsts, counts.tolist(), strict=True))
    graph.feats = _read_feats(raw, graph, firsts, sizes)
    graph.labels = _read_labels(raw, graph, firsts, sizes)
    return graph


def read_typed_splits(place: Path, raw: Path, graph: GraphData) -> None:
    """Splits below `split/time`, in the ids of the one vertex set."""
    firsts = _first_ids(raw / "num-node-dict.csv.gz")
    for split in SPLITS:
        ids = []
        for kind in _marked(place / "nodetype-has-split.csv.gz"):
            path = place / kind / f"{split}.csv.gz"
            graph.files[split] = path
            ids.append(read_table(path, np.int64, columns=1).reshape(-1) + firsts[kind])
        setattr(graph, split, np.concatenate(ids) if ids else None)


def _first_ids(path: Path) -> dict[str, int]:
    """Vertex type -> id of its first vertex, in the order of names; "" -> the number of vertices."""
    rows = _read_names(path)
    if len(rows) != 2 or not all(text.strip().isdigit() for text in rows[1]):
        raise GraphFormatError(f"{path}: expected the names of vertex types and one line of counts")
    sizes = dict(sorted(zip(rows[0], (int(text) for text in rows[1]), strict=True)))
    ends = np.cumsum([0, *sizes.values()]).tolist()
    return dict(zip(sizes, ends[:-1], strict=True)) | {"": ends[-1]}


def _read_edges(raw: Path, triplet: tuple[str, str, str], firsts: dict[str, int]) -> np.ndarray:
    """Edges of one relation, [E, 2] int64, in the ids of the one vertex set."""
    folder = raw / "relations" / "___".join(triplet)
    unknown = [kind for kind in (triplet[0], triplet[2]) if kind not in firsts]
    if unknown:
        raise GraphFormatError(f"{raw / 'triplet-type-list.csv.gz'}: {unknown[0]!r} is no vertex type")
    count = read_table(folder / "num-edge-list.csv.gz", np.int64)
    if count.size != 1:
        raise GraphFormatError(f"{folder / 'num-edge-list.csv.gz'}: expected one number, found {count.size}")
    edges = read_table(folder / "edge.csv.gz", np.int64, columns=2, rows=int(count[0, 0]))
    bounds = sorted(firsts.values())
    for column, kind in enumerate((triplet[0], triplet[2])):
        edges[:, column] += firsts[kind]
        end = next((bound for bound in bounds if bound > firsts[kind]), None)
        wrong = edges[:, column] < firsts[kind]
        wrong |= False if end is None else edges[:, column] >= end
        if wrong.any():
            row = int(np.argmax(wrong))
            raise GraphFormatError(
                f"{folder / 'edge.csv.gz'}: row {row} holds {edges[row, column] - firsts[kind]}, which is no {kind}"
            )
    return edges


def _read_feats(raw: Path, graph: GraphData, firsts: dict[str, int], sizes: dict[str, int]) -> np.ndarray | None:
    feats = None
    for kind in sizes:
        path = raw / "node-feat" / kind / "node-feat.csv.gz"
        if not path.is_file():
            continue
        rows = read_table(path, np.float32, rows=sizes[kind])
        if feats is None:
            feats = np.zeros((graph.num_nodes, rows.shape[1]), dtype=np.float32)
        if rows.shape[1] != feats.shape[1]:
            raise GraphFormatError(
                f"{path}: {rows.shape[1]} features, other types have {feats.shape[1]}: one width only"
            )
        feats[firsts[kind] : firsts[kind] + sizes[kind]] = rows
        graph.files["feats"] = path
    return feats


def _read_labels(raw: Path, graph: GraphData, firsts: dict[str, int], sizes: dict[str, int]) -> np.ndarray:
    labels = np.full(graph.num_nodes, -1, dtype=np.int64)
    for kind in _marked(raw / "nodetype-has-label.csv.gz"):
        path = raw / "node-label" / kind / "node-label.csv.gz"
        found = tidy_labels(read_table(path, np.float32, columns=1, rows=sizes[kind]), path)
        labels[firsts[kind] : firsts[kind] + sizes[kind]] = found
        graph.files["labels"] = path
    return labels


def _marked(path: Path) -> list[str]:
    """Names of a table of one line whose entry is True."""
    rows = _read_names(path)
    if len(rows) != 2:
        raise GraphFormatError(f"{path}: expected the names of vertex types and one line of True and False")
    return [name for name, value in zip(*rows, strict=True) if value.strip() == "True"]


def _read_names(path: Path, columns: int | None = None) -> list[list[str]]:
    """A small table of words, every line of one length."""
    check_file(path)
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
            rows = [row for row in csv.reader(stream) if row]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise damaged(path, error) from error
    columns = columns or (len(rows[0]) if rows else 0)
    if not rows or any(len(row) != columns for row in rows):
        raise GraphFormatError(f"{path}: expected {columns or 'some'} words on every line")
    return rows
