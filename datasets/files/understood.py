"""What a file was understood as: both arcs of an edge, or one, and the line that says so.

And what DGL and PyG save: `dgl.save_graphs` and `torch.save` of a `Data`. Nothing in a file is executed.

Legend: N vertices, E edges or arcs.
"""

import importlib
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.array_files import check_file, damaged
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.objects.recognise import as_graph_data
from distgnn.datasets.pairs import halve
from distgnn.errors import GraphFormatError, InputError

MAGIC = bytes.fromhex("3fa1b446f04f2edd")  # of dgl.save_graphs
# What a file of PyG's names beside torch's tensors: classes that only hold them.
OF_PYG: dict[str, tuple[str, ...]] = {
    "torch_geometric.data.data": ("Data", "DataEdgeAttr", "DataTensorAttr"),
    "torch_geometric.data.hetero_data": ("HeteroData",),
    "torch_geometric.data.storage": ("BaseStorage", "NodeStorage", "EdgeStorage", "GlobalStorage"),
}


def name_of(path: Path) -> str:
    """A graph's name by its file's: without .gz and what says the kind, and KONECT's `out.`."""
    name = path.name.removesuffix(".gz")
    return (name.removeprefix("out.") if name.startswith("out.") else Path(name).stem) or path.name


def make_graph(
    path: Path,
    ends: tuple[np.ndarray, np.ndarray],
    num_nodes: int,
    findings: Findings,
    fields: dict[str, Any],
    *,
    directed: bool = True,
    ids_from: str = "ids from 0",
) -> GraphData:
    """The checked graph of arcs, or of edges that stand for both arcs, with the line that says what it is.

    Args: fields: of vertices, and of the rows of `ends`; directed: by the file's own word; where all opposite arcs are
        there it is undirected all the same. ids_from: a word on ids.
    Raises: GraphFormatError naming the file.
    """
    columns: dict[str, Any] = {
        name: fields[name] for name in ("edge_weight", "edge_feats", "edge_types") if name in fields
    }
    sources, targets = ends
    both = np.count_nonzero(sources < targets) == np.count_nonzero(sources > targets) > 0
    how = "directed" if directed else "undirected"
    if both:
        try:
            kept, halved = halve(sources, targets, num_nodes, columns)
        except InputError:  # some arc has no opposite, or another weight
            pass
        else:
            sources, targets, fields, directed = sources[kept], targets[kept], fields | halved, False
            how = "undirected, stored both ways"
    try:
        graph = GraphData.from_arrays((sources, targets), num_nodes, directed, findings, name=name_of(path), **fields)
    except InputError as error:
        raise GraphFormatError(f"{path}: {error}") from None
    say_what(graph, path, how, ids_from)
    return graph


def say_what(graph: GraphData, path: Path, how: str, ids_from: str = "ids from 0") -> None:
    """Write down the line that says what a file was understood as; one sort of the edges."""
    if graph.findings.wrong:
        return
    counts = graph.counts()
    arcs = graph.num_edges if graph.directed else 2 * graph.num_edges - counts["self_loops"]
    paired = f", {2 * counts['reciprocal']:,} with their opposite" if graph.directed and counts["reciprocal"] else ""
    parts = [f"{graph.num_nodes:,} vertices, {graph.num_edges:,} edges ({arcs:,} arcs{paired})", how, ids_from]
    parts.append("weights" if graph.edge_weight is not None else "no weights")
    unusual = [f"{counts[name]:,} {name.replace('_', '-')}" for name in ("duplicates", "self_loops", "isolated")]
    graph.findings.add("understood", "graph", f"{path.name}: {', '.join(parts)}; {', '.join(unusual)}")


def read_dgl(path: Path, findings: Findings) -> GraphData:
    """The one graph of a file of `dgl.save_graphs`, as `GraphData.from_dgl` takes it; it needs the package dgl."""
    check_file(path)
    try:
        from distgnn.system.other_libraries import import_dgl

        import_dgl()
        import dgl
    except ImportError as error:
        raise InputError(f"{path}: DGL's files are read by the package dgl, which is not here ({error})") from None
    with open(path, "rb") as stream:
        if stream.read(8) != MAGIC:  # else DGL's reader ends in a message of many lines
            raise GraphFormatError(f"{path}: no file of dgl.save_graphs")
    try:
        graphs, labels = dgl.load_graphs(str(path))
    except Exception as error:  # of C++
        raise damaged(path, Exception(str(error).strip().splitlines()[-1])) from error
    if len(graphs) != 1:
        raise InputError(f"{path}: holds {len(graphs)} graphs: save one, or dgl.batch(graphs), which is one")
    for name in labels:
        findings.add("left out", name, f"{name} (a label of the whole graph)")
    return _checked(path, graphs[0], findings)


def read_torch(path: Path, findings: Findings) -> GraphData:
    """A PyG `Data` or `HeteroData`, the file of a data set with one graph, a dict of tensors, or an `edge_index`."""
    check_file(path)
    import torch

    classes: list[Any] = []  # PyG's, of data, where PyG is there
    try:
        for module, names in OF_PYG.items():
            classes += [getattr(importlib.import_module(module), name, None) for name in names]
    except ImportError:
        classes = []
    try:
        with torch.serialization.safe_globals([kind for kind in classes if kind is not None]):
            content = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise damaged(path, error) from error
    except Exception as error:  # damaged pickles raise nearly anything
        words = str(error)
        if "GLOBAL" in words or "nsupported" in words:
            named = next((word for word in words.replace("`", " ").split() if word.count(".") > 1), "")
            why = f"it names {named.rstrip('.,')}, which is no data of a graph" if named else "it holds more than data"
            raise GraphFormatError(f"{path}: is not read, as that could run code: {why}; save the Data alone") from None
        raise damaged(path, error) from error
    if isinstance(content, tuple | list) and len(content) in (2, 3):  # a data set's `processed/data.pt`
        content, slices = content[:2]
        counts = {len(ends) - 1 for ends in slices.values()} if isinstance(slices, dict) and slices else {1}
        if counts != {1}:
            raise InputError(f"{path}: holds {max(counts)} graphs: save one of them, or all as one batch")
    return _checked(path, content, findings)


def _checked(path: Path, graph: Any, findings: Findings) -> GraphData:
    try:
        read = as_graph_data(graph, findings, **({} if isinstance(graph, GraphData) else {"name": name_of(path)}))
    except InputError as error:
        raise GraphFormatError(f"{path}: {error}") from None
    say_what(read, path, "directed" if read.directed else "undirected")
    return read
