"""One part of a graph without a folder: for graphs that fit in every rank's memory (checks, tests, notebooks)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from distgnn.datasets import GraphData
from distgnn.datasets.edge_list import EdgeList
from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.local_graph import LocalGraph, build_local
from distgnn.partition.core.vertex_cut import VertexCut
from distgnn.partition.folder.manifest import describe_graph
from distgnn.partition.folder.part_data import part_data
from distgnn.partition.folder.reader import data_fields


def local_part(
    graph: GraphData, edge_list: EdgeList, cut: VertexCut, part_id: int, places: np.ndarray | None = None
) -> LocalGraph:
    """One part with its features, labels and masks, as `load_part` gives it.

    Args: edge_list: made from the graph; cut: of that edge list; places: [N], of `cluster_places`, or None.
    Raises: InputError where the cut does not fit.
    """
    cut.check(edge_list)
    local = build_local(PartitionBook(edge_list, cut), part_id)
    local.graph = describe_graph(graph, edge_list, places is not None)
    local.cluster_places = None if places is None else places[local.global_ids[: local.num_owned]]
    arrays = part_data(local, graph, edge_list, graph.split_masks())
    fields = data_fields(local.graph, local.num_owned, {name: array[:] for name, array in arrays.items()})
    return replace(local, **fields)
