"""Where graphs come from: folders on disk, OGB and DGL downloads, generators, arrays in memory.

`load_graph(source)` gives a `GraphData`; `GraphData.edge_list()` gives the `EdgeList` that is cut into parts.
"""

if __name__ != "distgnn.datasets":
    raise ImportError("this folder is the package distgnn.datasets: import that name")

from distgnn.datasets.downloads import download
from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.graph_data import GraphData
from distgnn.datasets.names.renumber import renumber
from distgnn.datasets.objects import as_graph_data
from distgnn.datasets.registry import load_graph

__all__ = ["EdgeList", "GraphData", "as_graph_data", "download", "load_graph", "renumber"]
