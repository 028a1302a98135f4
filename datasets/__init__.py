"""Where graphs come from: folders on disk, OGB and DGL downloads, generators, arrays in memory.

`load_graph(source)` gives a `GraphData`; `GraphData.edge_list()` gives the `EdgeList` that is cut into parts.
Names are imported when they are first used.
"""

if __name__ != "distgnn.datasets":
    raise ImportError("this folder is the package distgnn.datasets: import that name")

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distgnn.datasets.downloads import download
    from distgnn.datasets.edge_list import EdgeList
    from distgnn.datasets.findings.check import check_graph
    from distgnn.datasets.graph_data import GraphData
    from distgnn.datasets.names.renumber import renumber
    from distgnn.datasets.objects.recognise import as_graph_data
    from distgnn.datasets.registry import load_graph

_PLACES = {
    "download": "distgnn.datasets.downloads",
    "check_graph": "distgnn.datasets.findings.check",
    "EdgeList": "distgnn.datasets.edge_list",
    "GraphData": "distgnn.datasets.graph_data",
    "renumber": "distgnn.datasets.names.renumber",
    "as_graph_data": "distgnn.datasets.objects.recognise",
    "load_graph": "distgnn.datasets.registry",
}

__all__ = ["EdgeList", "GraphData", "as_graph_data", "check_graph", "download", "load_graph", "renumber"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_PLACES[name]), name)
