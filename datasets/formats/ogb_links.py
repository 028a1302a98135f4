"""OGB's link-prediction downloads, read as they are unpacked.

ogbl_collab/
    raw/    edge.csv.gz  num-node-list.csv.gz  num-edge-list.csv.gz      the edges for training
            node-feat.csv.gz  edge_weight.csv.gz (collab)                edge_year.csv.gz and such are not needed
    split/time/  train.pt  valid.pt  test.pt       {"edge": [M, 2], "edge_neg": [K, 2]}
ogbl_citation2/split/time/  …       {"source_node": [M], "target_node": [M], "target_node_neg": [M, 1000]}
ogbl_vessel/raw/  data.npz (edge_index, num_nodes_list, node_feat, edge_feat)

The negatives that vessel has for training are not read: training draws its own.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from distgnn.datasets.array_files import is_present, read_npz
from distgnn.datasets.fields import HELD_OUT, SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.ogb import name_the_rest
from distgnn.datasets.formats.torch_file import read_torch_arrays
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.text.table import read_table
from distgnn.errors import GraphFormatError, InputError


@dataclass(frozen=True)
class LinkLayout:
    """What OGB's own table says and the files do not."""

    name: str
    directed: bool
    split: str
    held_out: bool = True


LINK_LAYOUTS = {
    "ppa": LinkLayout("ogbl-ppa", False, "throughput"),
    "collab": LinkLayout("ogbl-collab", False, "time", held_out=False),  # people write together again
    "citation2": LinkLayout("ogbl-citation2", True, "time"),
    "ddi": LinkLayout("ogbl-ddi", False, "target"),
    "vessel": LinkLayout("ogbl-vessel", False, "spatial"),
}
UNPACKED_AS = {"ppassoc": "ppa", "citation_v2": "citation2"}


def is_link_folder(folder: Path) -> bool:
    """Whether an OGB download is one for link prediction."""
    return any((folder / "split").glob("*/train.pt")) or any(
        map(_is_link_split, (folder / "split").glob("*/split_dict.pt"))
    )


def _is_link_split(path: Path) -> bool:
    """Whether a split_dict.pt holds dictionaries of edges, not ids of vertices."""
    raw = path.parents[2] / "raw"
    return is_present(path) and not any((raw / f"node-label.{kind}").exists() for kind in ("npz", "csv.gz"))


def find_link_layout(folder: Path) -> LinkLayout:
    """The layout by the folder's name; another name is a graph of the user's own, whose edges are directed."""
    short = folder.resolve().name.replace("-", "_").removeprefix("ogbl_")
    short = UNPACKED_AS.get(short, short)
    if short in LINK_LAYOUTS:
        return LINK_LAYOUTS[short]
    splits = sorted(path.name for path in (folder / "split").iterdir() if path.is_dir())
    if len(splits) != 1:
        raise InputError(f"{folder / 'split'}: expected one folder of a split, found {', '.join(splits) or 'none'}")
    return LinkLayout(folder.resolve().name, True, splits[0])


def read_ogb_links(folder: Path, findings: Findings | None = None) -> GraphData:
    """Read and check an OGB folder for link prediction.

    Raises: InputError for a missing file, GraphFormatError for a damaged one.
    """
    layout, raw = find_link_layout(folder), folder / "raw"
    graph = _read_binary(raw, layout) if is_present(raw / "data.npz") else _read_text(raw, layout)
    graph.held_out = layout.held_out
    graph.findings = Findings() if findings is None else findings
    name_the_rest(folder, graph, layout.name in {known.name for known in LINK_LAYOUTS.values()})
    place = folder / "split" / layout.split
    if not place.is_dir():
        raise InputError(f"{place}: no such folder; the download of {layout.name} is not complete")
    for split in SPLITS:
        _read_split(place, split, graph)
    graph.notes["source"] = "OGB raw layout"
    return graph.check()


def _read_text(raw: Path, layout: LinkLayout) -> GraphData:
    files = {"num_nodes": raw / "num-node-list.csv.gz", "edges": raw / "edge.csv.gz"}
    num_nodes, num_edges = _count(files["num_nodes"]), _count(raw / "num-edge-list.csv.gz")
    edges = read_table(files["edges"], np.int64, columns=2, rows=num_edges)
    graph = GraphData(layout.name, num_nodes, edges, layout.directed, files=files)
    for field, name, rows in (
        ("feats", "node-feat", num_nodes),
        ("edge_feats", "edge-feat", num_edges),
        ("edge_weight", "edge_weight", num_edges),
    ):
        path = raw / f"{name}.csv.gz"
        if is_present(path):
            files[field] = path
            table = read_table(path, np.float32, rows=rows)
            setattr(graph, field, table.reshape(-1) if field == "edge_weight" else table)
    return graph


def _count(path: Path) -> int:
    numbers = read_table(path, np.int64)
    if numbers.shape != (1, 1):
        raise GraphFormatError(f"{path}: expected one number, found {numbers.size}; only single graphs can be read")
    return int(numbers[0, 0])


def _read_binary(raw: Path, layout: LinkLayout) -> GraphData:
    path = raw / "data.npz"
    data = read_npz(path, ("edge_index", "num_nodes_list"))
    counts, edges = np.asarray(data["num_nodes_list"]).reshape(-1), data["edge_index"]
    if len(counts) != 1 or counts.dtype.kind not in "iu":
        raise GraphFormatError(f"{path}: num_nodes_list must hold one number; only single graphs can be read")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise GraphFormatError(f"{path}: edge_index must have shape [2, E], found {list(edges.shape)}")
    files = dict.fromkeys(("num_nodes", "edges", "feats", "edge_feats"), path)
    graph = GraphData(layout.name, int(counts[0]), edges.T, layout.directed, files=files)
    graph.feats, graph.edge_feats = data.get("node_feat"), data.get("edge_feat")
    weight = data.get("edge_weight")
    graph.edge_weight = weight if weight is None or weight.shape[1:] != (1,) else weight[:, 0]
    return graph


def _read_split(place: Path, split: str, graph: GraphData) -> None:
    path = place / f"{split}.pt"
    if is_present(place / "split_dict.pt"):  # OGB's DatasetSaver writes one file
        path = place / "split_dict.pt"
        arrays = read_torch_arrays(path, split)
    else:
        arrays = read_torch_arrays(path)
    if "source_node" in arrays:
        pairs = [_need(path, arrays, name, 1) for name in ("source_node", "target_node")]
        if len(pairs[0]) != len(pairs[1]):
            raise GraphFormatError(f"{path}: {len(pairs[0])} sources and {len(pairs[1])} targets")
        edges = np.stack(pairs, axis=1)
        negatives = ("negative_targets", "target_node_neg")
    else:
        edges, negatives = _need(path, arrays, "edge", 2), ("negatives", "edge_neg")
    found = {"edges": edges}
    if split in HELD_OUT:
        found[negatives[0]] = _need(path, arrays, negatives[1], 2)
    for name, array in found.items():
        setattr(graph, f"{split}_{name}", array)
        graph.files[f"{split}_{name}"] = path


def _need(path: Path, arrays: dict[str, np.ndarray], name: str, dimensions: int) -> np.ndarray:
    if name not in arrays or arrays[name].ndim != dimensions:
        found = f"shape {list(arrays[name].shape)}" if name in arrays else f"only {', '.join(sorted(arrays)) or 'none'}"
        raise GraphFormatError(f"{path}: expected an array {name!r} of {dimensions} dimensions, found {found}")
    return arrays[name]
