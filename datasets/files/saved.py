"""What DGL and PyG save: `dgl.save_graphs` and `torch.save` of a `Data`. Nothing in a file is executed."""

import importlib
from pathlib import Path
from typing import Any

from distgnn.datasets.array_files import check_file, damaged
from distgnn.datasets.files.understood import name_of, say_what
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.objects.recognise import as_graph_data
from distgnn.errors import GraphFormatError, InputError

MAGIC = bytes.fromhex("3fa1b446f04f2edd")  # of dgl.save_graphs
# What a file of PyG's names beside torch's tensors: classes that only hold them.
OF_PYG: dict[str, tuple[str, ...]] = {
    "torch_geometric.data.data": ("Data", "DataEdgeAttr", "DataTensorAttr"),
    "torch_geometric.data.hetero_data": ("HeteroData",),
    "torch_geometric.data.storage": ("BaseStorage", "NodeStorage", "EdgeStorage", "GlobalStorage"),
}


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
        reason = str(error).strip().partition("\n")[0].rpartition("Check failed: ")[2]
        raise damaged(path, Exception(reason)) from error
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
    of_set = isinstance(content, tuple | list) and len(content) in (2, 3)  # a data set's `processed/data.pt`
    if of_set and (content[1] is None or isinstance(content[1], dict)):
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
