"""One part of a graph without a folder: for graphs that fit in every rank's memory (checks, tests, notebooks)."""

from __future__ import annotations

import numpy as np

from distgnn.datasets import GraphData
from distgnn.datasets.arc_data import arc_feats, arc_relations
from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.links.part_edges import part_edge_splits
from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.local_graph import LocalGraph, build_local
from distgnn.partition.core.vertex_cut import VertexCut
from distgnn.partition.folder.manifest import describe_graph
from distgnn.partition.folder.writer import owned_values


def local_part(
    graph: GraphData, edge_list: EdgeList, cut: VertexCut, part_id: int, places: np.ndarray | None = None
) -> LocalGraph:
    """One part with its features, labels and masks, as `load_part` gives it.

    Args: edge_list: made from the graph; cut: of that edge list; places: [N], of `cluster_places`, or None.
    Raises: InputError where the cut does not fit.
    """
    cut.check(edge_list)
    local = build_local(PartitionBook(edge_list, cut), part_id)
    ids = local.global_ids[: local.num_owned]
    local.graph = describe_graph(graph, edge_list)
    # Of owned vertices only, as in a folder: halo rows come from their owners by exchange.
    local.feats = None if graph.feats is None else graph.feats[ids].astype(np.float32)
    local.labels = None if graph.labels is None else graph.labels[ids]
    local.edge_feats = arc_feats(graph, edge_list, local.arc_ids)
    local.edge_types = arc_relations(graph, edge_list, local.arc_ids)
    local.node_types = None if graph.node_types is None else graph.node_types[ids].astype(np.int32)
    for name, values in owned_values(graph, ids).items():
        setattr(local, name, values)
    local.cluster_places = None if places is None else places[ids]
    local.edge_splits = part_edge_splits(graph, ids)
    for split, mask in graph.split_masks().items():
        setattr(local, f"{split}_mask", mask[ids])
    return local
