"""OGB's node-prediction downloads, read as they are unpacked.

ogbn_arxiv/
    raw/    edge.csv.gz  num-node-list.csv.gz  num-edge-list.csv.gz  node-label.csv.gz
            node-feat.csv.gz | edge-feat.csv.gz (proteins)             node_year.csv.gz and such are not needed
    split/time/  train.csv.gz  valid.csv.gz  test.csv.gz
    split/NAME/  split_dict.pt               of OGB's DatasetSaver, which also writes raw/data.npz
my-graph/             a graph of one's own in this layout, with one folder below split/
ogbn_mag/             several types of vertices and edges: see ogb_hetero.py
ogbn_papers100M/raw/  data.npz (edge_index, num_nodes_list, node_feat, …)  node-label.npz (node_label, NaN = none)
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distgnn.datasets.array_files import is_present, read_npz
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.ogb_hetero import read_typed_splits, read_typed_text
from distgnn.datasets.formats.torch_file import read_torch_arrays
from distgnn.datasets.graph_data import SPLITS, GraphData
from distgnn.datasets.text.table import read_table
from distgnn.datasets.tidy import tidy_labels
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


# Products and proteins hold each undirected edge once (OGB's loader adds the inverse).
LAYOUTS = {
    "arxiv": OgbLayout("ogbn-arxiv", True, 40, "time"),
    "products": OgbLayout("ogbn-products", False, 47, "sales_ranking"),
    "proteins": OgbLayout("ogbn-proteins", False, 112, "species", multilabel=True),
    "mag": OgbLayout("ogbn-mag", True, 349, "time", typed=True),
    "papers100M": OgbLayout("ogbn-papers100M", True, 172, "time"),
}


def is_ogb_folder(folder: Path) -> bool:
    """Whether a folder holds an OGB download."""
    return (folder / "raw").is_dir() and (folder / "split").is_dir()


def find_layout(folder: Path) -> OgbLayout:
    """The layout by the folder's name, `ogbn_arxiv`, `ogbn-arxiv` or as it is unpacked, `arxiv`, `papers100M-bin`.

    A folder of another name is a graph of the user's own: its arcs are directed as they are stored, unless its split is
    the one of an undirected graph of OGB (a renamed folder), and its labels tell its classes.
    """
    short = folder.resolve().name.replace("-", "_").removeprefix("ogbn_").removesuffix("_bin")
    if short in LAYOUTS:
        return LAYOUTS[short]
    splits = sorted(path.name for path in (folder / "split").iterdir() if path.is_dir())
    if len(splits) != 1:
        raise InputError(f"{folder / 'split'}: expected one folder of a split, found {', '.join(splits) or 'none'}")
    directed = splits[0] not in {layout.split for layout in LAYOUTS.values() if not layout.directed}
    typed = is_present(folder / "raw" / "triplet-type-list.csv.gz")
    return OgbLayout(folder.resolve().name, directed, None, splits[0], typed=typed)


def read_ogb(folder: Path, findings: Findings | None = None) -> GraphData:
    """Read and check an OGB folder.

    Returns: GraphData; node features of proteins are the mean of the features of the edges at each vertex.
    Raises: InputError for a missing file, GraphFormatError for a damaged one.
    """
    layout = find_layout(folder)
    raw = folder / "raw"
    if layout.typed:
        graph = read_typed_text(raw, layout.name, layout.directed)
    else:
        graph = _read_binary(raw, layout) if is_present(raw / "data.npz") else _read_text(raw, layout)
    graph.findings = Findings() if findings is None else findings
    name_the_rest(folder, graph, layout.name in {known.name for known in LAYOUTS.values()})
    shape = () if graph.labels is None else graph.labels.shape
    if layout.multilabel and shape != (graph.num_nodes, layout.classes):
        graph.fail("labels", f"expected {layout.classes} labels per vertex, found shape {list(shape)}")
    if layout.classes is not None and not layout.multilabel:
        graph.num_label_classes = layout.classes
    _read_splits(folder, layout, graph)
    graph.notes["source"] = "OGB raw layout"
    return graph.check()


NOT_NEEDED = ("node_year", "edge_reltype", "node_species", "species", "edge_year")  # of OGB's own graphs
READ = {"edge_index", "num_nodes_list", "num_edges_list", "node_feat", "edge_feat", "edge_weight", "node_label"}


def name_the_rest(folder: Path, graph: GraphData, official: bool) -> None:
    """Write down the arrays below `raw` that are not read."""
    raw, names = folder / "raw", []
    if is_present(raw / "data.npz"):
        names = [name for name in read_npz(raw / "data.npz") if name not in READ]
    tables = (path.name.removesuffix(".csv.gz") for path in raw.glob("*.csv.gz"))
    names += [name for table in tables if (name := table.replace("-", "_")) not in READ | TABLES]
    for name in sorted(set(names)):
        graph.findings.add("not needed" if official and name in NOT_NEEDED else "left out", name, name)


TABLES = {"edge", "num_node_list", "num_edge_list", "num_node_dict", "triplet_type_list", "nodetype_has_label"}


def _read_text(raw: Path, layout: OgbLayout) -> GraphData:
    num_nodes = _read_count(raw / "num-node-list.csv.gz")
    num_edges = _read_count(raw / "num-edge-list.csv.gz")
    files = {"num_nodes": raw / "num-node-list.csv.gz", "edges": raw / "edge.csv.gz"}
    edges = read_table(files["edges"], np.int64, columns=2, rows=num_edges)
    graph = GraphData(layout.name, num_nodes, edges, layout.directed, files=files)
    files["labels"] = raw / "node-label.csv.gz"
    labels = read_table(files["labels"], np.float32, rows=num_nodes)
    graph.labels = tidy_labels(labels, files["labels"])
    if is_present(raw / "edge-feat.csv.gz"):
        files["edge_feats"] = raw / "edge-feat.csv.gz"
        graph.edge_feats = read_table(files["edge_feats"], np.float32, rows=num_edges)
    if is_present(raw / "node-feat.csv.gz"):
        files["feats"] = raw / "node-feat.csv.gz"
        graph.feats = read_table(files["feats"], np.float32, rows=num_nodes)
    elif graph.edge_feats is not None:
        graph.feats = mean_edge_feats(graph, graph.edge_feats)
        graph.notes["feats"] = "mean of the features of the edges at each vertex"
    return graph


def _read_count(path: Path) -> int:
    numbers = read_table(path, np.int64)
    if numbers.shape != (1, 1):
        raise GraphFormatError(f"{path}: expected one number, found {numbers.size}; only single graphs can be read")
    return int(numbers[0, 0])


def mean_edge_feats(graph: GraphData, edge_feats: np.ndarray) -> np.ndarray:
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


def _read_binary(raw: Path, layout: OgbLayout) -> GraphData:
    data_path, label_path = raw / "data.npz", raw / "node-label.npz"
    needed = ("node_feat",) if layout.classes is not None else ()  # OGB's DatasetSaver writes a graph without features
    data = read_npz(data_path, ("edge_index", "num_nodes_list", *needed))
    files = dict.fromkeys(("num_nodes", "edges", "feats", "edge_feats", "edge_weight"), data_path) | {
        "labels": label_path
    }
    counts, edges = np.asarray(data["num_nodes_list"]).reshape(-1), data["edge_index"]
    if len(counts) != 1 or counts.dtype.kind not in "iu":
        raise GraphFormatError(f"{data_path}: num_nodes_list must hold one number; only single graphs can be read")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise GraphFormatError(f"{data_path}: edge_index must have shape [2, E], found {list(edges.shape)}")
    graph = GraphData(layout.name, int(counts[0]), edges.T, layout.directed, files=files)
    graph.feats, graph.edge_feats = data.get("node_feat"), data.get("edge_feat")
    weight = data.get("edge_weight")
    graph.edge_weight = weight if weight is None or weight.shape[1:] != (1,) else weight[:, 0]
    graph.labels = tidy_labels(read_npz(label_path, ("node_label",))["node_label"], label_path)
    return graph


def _read_splits(folder: Path, layout: OgbLayout, graph: GraphData) -> None:
    place = folder / "split" / layout.split
    if not place.is_dir():
        raise InputError(f"{place}: no such folder; the download of {layout.name} is not complete")
    if layout.typed:
        read_typed_splits(place, folder / "raw", graph)
        return
    whole = place / "split_dict.pt"
    if is_present(whole):  # OGB's DatasetSaver writes one file
        ids = read_torch_arrays(whole)
        missing = [name for name in SPLITS if name not in ids]
        if missing:
            raise GraphFormatError(
                f"{whole}: lacks the ids {missing[0]!r}; it holds {', '.join(sorted(ids)) or 'none'}"
            )
        for name in SPLITS:
            graph.files[name] = whole
            setattr(graph, name, ids[name].reshape(-1))
        return
    for name in SPLITS:
        graph.files[name] = place / f"{name}.csv.gz"
        setattr(graph, name, read_table(graph.files[name], np.int64, columns=1).reshape(-1))
