"""OGB's downloads for node and for link prediction, read as they are unpacked; the splits of OGB's own objects.

ogbn_arxiv/
    raw/    edge.csv.gz  num-node-list.csv.gz  num-edge-list.csv.gz  node-label.csv.gz
            node-feat.csv.gz | edge-feat.csv.gz (proteins)
    split/time/  train.csv.gz  valid.csv.gz  test.csv.gz (or split_dict.pt, of OGB's DatasetSaver)
ogbn_papers100M/raw/  data.npz (edge_index, num_nodes_list, node_feat, …)  node-label.npz (node_label, NaN = none)

ogbl_collab/          raw/ has the edges for training, no labels, and edge_weight.csv.gz (collab)
    split/time/  train.pt  valid.pt  test.pt       {"edge": [M, 2], "edge_neg": [K, 2]}
ogbl_citation2/split/time/  …       {"source_node": [M], "target_node": [M], "target_node_neg": [M, 1000]}
ogbl_vessel/raw/  data.npz (edge_index, num_nodes_list, node_feat, edge_feat)

The negatives that vessel has for training are not read: training draws its own.

ogbn_mag/             several types of vertices and edges, as a typed graph
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
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from distgnn.datasets.array_files import check_file, damaged, is_present, read_npz
from distgnn.datasets.checks import MAX_TYPES, check_size
from distgnn.datasets.fields import EDGE_SPLITS, HELD_OUT, SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.foreign_arrays import read_torch_arrays
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.names.field_names import KEYWORDS
from distgnn.datasets.objects.from_types import from_tables
from distgnn.datasets.objects.labels import tidy_labels
from distgnn.datasets.text_table import read_table
from distgnn.datasets.typed import shown
from distgnn.errors import GraphFormatError, InputError


@dataclass(frozen=True)
class OgbLayout:
    """What OGB's own table (master.csv) says and the files do not."""

    name: str
    directed: bool
    classes: int | None
    split: str
    multilabel: bool = False
    typed: bool = False
    held_out: bool = True


# Products and proteins hold each undirected edge once (OGB's loader adds the inverse).
LAYOUTS = {
    "arxiv": OgbLayout("ogbn-arxiv", True, 40, "time"),
    "products": OgbLayout("ogbn-products", False, 47, "sales_ranking"),
    "proteins": OgbLayout("ogbn-proteins", False, 112, "species", multilabel=True),
    "mag": OgbLayout("ogbn-mag", True, 349, "time", typed=True),
    "papers100M": OgbLayout("ogbn-papers100M", True, 172, "time"),
}
LINK_LAYOUTS = {
    "ppa": OgbLayout("ogbl-ppa", False, None, "throughput"),
    "collab": OgbLayout("ogbl-collab", False, None, "time", held_out=False),  # people write together again
    "citation2": OgbLayout("ogbl-citation2", True, None, "time"),
    "ddi": OgbLayout("ogbl-ddi", False, None, "target"),
    "vessel": OgbLayout("ogbl-vessel", False, None, "spatial"),
}
UNPACKED_AS = {"ppassoc": "ppa", "citation_v2": "citation2"}
NOT_NEEDED = ("node_year", "edge_reltype", "node_species", "species", "edge_year")  # of OGB's own graphs
READ = {"edge_index", "num_nodes_list", "num_edges_list", "node_feat", "edge_feat", "edge_weight", "node_label"}
TABLES = {"edge", "num_node_list", "num_edge_list", "num_node_dict", "triplet_type_list", "nodetype_has_label"}


def is_ogb_folder(folder: Path) -> bool:
    return (folder / "raw").is_dir() and (folder / "split").is_dir()


def _find_layout(folder: Path, links: bool) -> OgbLayout:
    """The layout by the folder's name; others are the user's own, directed but for known splits."""
    short = folder.resolve().name.replace("-", "_").removeprefix("ogbl_" if links else "ogbn_")
    short = UNPACKED_AS.get(short, short) if links else short.removesuffix("_bin")
    known = LINK_LAYOUTS if links else LAYOUTS
    if short in known:
        return known[short]
    splits = sorted(path.name for path in (folder / "split").iterdir() if path.is_dir())
    if len(splits) != 1:
        raise InputError(f"{folder / 'split'}: expected one folder of a split, found {', '.join(splits) or 'none'}")
    directed = links or splits[0] not in {layout.split for layout in LAYOUTS.values() if not layout.directed}
    typed = not links and is_present(folder / "raw" / "triplet-type-list.csv.gz")
    return OgbLayout(folder.resolve().name, directed, None, splits[0], typed=typed)


def read_ogb(folder: Path, findings: Findings | None = None) -> GraphData:
    """Read and check an OGB folder; feats of proteins are the mean of the features of the edges at each vertex."""
    raw, splits = folder / "raw", folder / "split"
    labelled = any((raw / f"node-label.{kind}").exists() for kind in ("npz", "csv.gz"))
    saved = [path for path in splits.glob("*/split_dict.pt") if is_present(path)]  # of OGB's DatasetSaver
    links = any(splits.glob("*/train.pt")) or (bool(saved) and not labelled)
    layout = _find_layout(folder, links)
    place, findings = splits / layout.split, Findings() if findings is None else findings
    if layout.typed:
        graph = read_typed(raw, place, layout.name, layout.classes, findings)
    else:
        read = _read_binary if is_present(raw / "data.npz") else _read_text
        graph = read(raw, layout, not links)
    graph.held_out, graph.findings = layout.held_out, findings
    _name_the_rest(raw, graph, layout in (*LAYOUTS.values(), *LINK_LAYOUTS.values()))
    shape = () if graph.labels is None else graph.labels.shape
    if layout.multilabel and shape != (graph.num_nodes, layout.classes):
        graph.fail("labels", f"expected {layout.classes} labels per vertex, found shape {list(shape)}")
    if layout.classes is not None and not layout.multilabel:
        graph.num_label_classes = layout.classes
    if not place.is_dir():
        raise InputError(f"{place}: no such folder; the download of {layout.name} is not complete")
    if links:
        for name in SPLITS:
            _read_link_split(place, name, graph)
    elif not layout.typed:
        _read_node_splits(place, graph)
    graph.notes["source"] = "OGB raw layout"
    return graph.check()


def _name_the_rest(raw: Path, graph: GraphData, official: bool) -> None:
    """Write down the arrays below `raw` that are not read."""
    names = []
    if is_present(raw / "data.npz"):
        names = [name for name in read_npz(raw / "data.npz") if name not in READ]
    tables = (path.name.removesuffix(".csv.gz") for path in raw.glob("*.csv.gz"))
    names += [name for table in tables if (name := table.replace("-", "_")) not in READ | TABLES]
    for name in sorted(set(names)):
        graph.findings.add("not needed" if official and name in NOT_NEEDED else "left out", name, name)


def _read_text(raw: Path, layout: OgbLayout, labelled: bool) -> GraphData:
    counts = []
    for path in (raw / "num-node-list.csv.gz", raw / "num-edge-list.csv.gz"):
        numbers = read_table(path, np.int64)
        if numbers.shape != (1, 1):
            raise GraphFormatError(f"{path}: expected one number, found {numbers.size}; only single graphs can be read")
        counts.append(int(numbers[0, 0]))
    num_nodes, num_edges = counts
    files = {"num_nodes": raw / "num-node-list.csv.gz", "edges": raw / "edge.csv.gz"}
    edges = read_table(files["edges"], np.int64, columns=2, rows=num_edges)
    graph = GraphData(layout.name, num_nodes, edges, layout.directed, files=files)
    if labelled:
        files["labels"] = raw / "node-label.csv.gz"
        graph.labels = tidy_labels(read_table(files["labels"], np.float32, rows=num_nodes), files["labels"])
    for field, name, rows in (
        ("edge_feats", "edge-feat", num_edges),
        ("edge_weight", "edge_weight", num_edges),
        ("feats", "node-feat", num_nodes),
    ):
        path = raw / f"{name}.csv.gz"
        if is_present(path):
            files[field] = path
            table = read_table(path, np.float32, rows=rows)
            setattr(graph, field, table.reshape(-1) if field == "edge_weight" else table)
    if labelled and graph.feats is None and graph.edge_feats is not None:
        graph.feats = _mean_edge_feats(graph, graph.edge_feats)
        graph.notes["feats"] = "mean of the features of the edges at each vertex"
    return graph


def _mean_edge_feats(graph: GraphData, edge_feats: np.ndarray) -> np.ndarray:
    """[N, De] float32: the mean over the edges at each vertex, sums in float64; 0 for an isolated vertex."""
    graph_edges = np.asarray(graph.edges)
    if graph_edges.size and (graph_edges.min() < 0 or graph_edges.max() >= graph.num_nodes):
        graph.check()
    ends = [graph_edges[:, 0], graph_edges[:, 1]] if not graph.directed else [graph_edges[:, 1]]
    degree = sum(np.bincount(end, minlength=graph.num_nodes) for end in ends)
    feats = np.empty((graph.num_nodes, edge_feats.shape[1]), dtype=np.float32)
    for column in range(feats.shape[1]):
        values = edge_feats[:, column]
        total = sum(np.bincount(end, weights=values, minlength=graph.num_nodes) for end in ends)
        feats[:, column] = total / np.maximum(degree, 1)
    return feats


def _read_binary(raw: Path, layout: OgbLayout, labelled: bool) -> GraphData:
    data_path, label_path = raw / "data.npz", raw / "node-label.npz"
    needed = ("node_feat",) if layout.classes is not None else ()  # OGB's DatasetSaver writes a graph without features
    data = read_npz(data_path, ("edge_index", "num_nodes_list", *needed))
    files = dict.fromkeys(("num_nodes", "edges", "feats", "edge_feats", "edge_weight"), data_path)
    counts, edges = np.asarray(data["num_nodes_list"]).reshape(-1), data["edge_index"]
    if len(counts) != 1 or counts.dtype.kind not in "iu":
        raise GraphFormatError(f"{data_path}: num_nodes_list must hold one number; only single graphs can be read")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise GraphFormatError(f"{data_path}: edge_index must have shape [2, E], found {list(edges.shape)}")
    graph = GraphData(layout.name, int(counts[0]), edges.T, layout.directed, files=files)
    graph.feats, graph.edge_feats = data.get("node_feat"), data.get("edge_feat")
    weight = data.get("edge_weight")
    graph.edge_weight = weight if weight is None or weight.shape[1:] != (1,) else weight[:, 0]
    if labelled:
        files["labels"] = label_path
        graph.labels = tidy_labels(read_npz(label_path, ("node_label",))["node_label"], label_path)
    return graph


def _read_node_splits(place: Path, graph: GraphData) -> None:
    whole = place / "split_dict.pt"
    found = read_torch_arrays(whole) if is_present(whole) else None
    for name in SPLITS:
        graph.files[name] = whole if found is not None else place / f"{name}.csv.gz"
        if found is not None and name not in found:
            held = ", ".join(sorted(found)) or "none"
            raise GraphFormatError(f"{whole}: lacks the ids {name!r}; it holds {held}")
        ids = read_table(graph.files[name], np.int64, columns=1) if found is None else found[name]
        setattr(graph, name, ids.reshape(-1))


def _read_link_split(place: Path, split: str, graph: GraphData) -> None:
    whole = is_present(place / "split_dict.pt")
    path = place / ("split_dict.pt" if whole else f"{split}.pt")
    for name, array in _link_fields(split, read_torch_arrays(path, split if whole else None), str(path)).items():
        setattr(graph, name, array)
        graph.files[name] = path


def _link_fields(split: str, arrays: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Field -> array of one split of links, by OGB's names."""

    def need(name: str, dimensions: int) -> Any:
        if name in arrays and arrays[name].ndim == dimensions:
            return arrays[name]
        found = f"shape {list(arrays[name].shape)}" if name in arrays else f"only {', '.join(sorted(arrays)) or 'none'}"
        raise GraphFormatError(f"{where}: expected an array {name!r} of {dimensions} dimensions, found {found}")

    if "source_node" in arrays:
        sources, targets = need("source_node", 1), need("target_node", 1)
        if len(sources) != len(targets):
            raise GraphFormatError(f"{where}: {len(sources)} sources and {len(targets)} targets")
        edges, negatives = np.stack([sources, targets], axis=1), ("negative_targets", "target_node_neg")
    else:
        edges, negatives = need("edge", 2), ("negatives", "edge_neg")
    found = {f"{split}_edges": edges}
    if split in HELD_OUT:
        found[f"{split}_{negatives[0]}"] = need(negatives[1], 2)
    return found


def split_of_ogb(dataset: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that the user gives, and the split of an object of OGB's, unless they have one."""
    if {KEYWORDS.get(name, name) for name in fields} & {*SPLITS, *EDGE_SPLITS}:
        return fields
    name = str(getattr(dataset, "name", "ogb"))
    of_links = hasattr(dataset, "get_edge_split")
    split = dataset.get_edge_split() if of_links else dataset.get_idx_split()
    found: dict[str, Any] = {"name": name}
    if of_links:
        layout = LINK_LAYOUTS.get(name.removeprefix("ogbl-"))
        found["held_out"] = layout is None or layout.held_out
    where = f"{name}'s {'get_edge_split' if of_links else 'get_idx_split'}()"
    for part in SPLITS:
        if part not in split or isinstance(split[part], Mapping) != of_links:
            raise InputError(f"{where} has no {part} split of one graph: give the folder of its download")
        found |= _link_fields(part, split[part], where) if of_links else {part: split[part]}
    return found | fields


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
