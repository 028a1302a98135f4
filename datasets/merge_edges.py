"""Double edges made one: their weights and features summed, averaged, or the largest of each.

Legend: E edges, K of them that differ, De width of edge features.
"""

from dataclasses import replace
from typing import TypeVar

import numpy as np

from distgnn.datasets.fields import GraphFields
from distgnn.datasets.pairs import pair_keys, undirected_keys

Graph = TypeVar("Graph", bound=GraphFields)


def merge_edges(graph: Graph, how: str) -> Graph:
    """A copy of the graph in which no edge is there twice, in the order of the first ones.

    Args: how: "sum", "mean" or "max", of weights and features. The sum of edges without weights is their number.
    Notes: edges of different types stay apart; of an undirected graph u, v and v, u are one edge.
    """
    sources, targets = np.asarray(graph.edges).T
    keys = (pair_keys if graph.directed else undirected_keys)(sources, targets, graph.num_nodes)
    if graph.edge_types is not None:
        keys = np.unique(keys, return_inverse=True)[1] * graph.num_edge_types + np.asarray(graph.edge_types, np.int64)
    _, first, places = np.unique(keys, return_index=True, return_inverse=True)
    order = np.argsort(first)
    places, kept = np.argsort(order)[places], first[order]
    counts = np.bincount(places, minlength=len(kept)).astype(np.float64)

    def merged(column: np.ndarray) -> np.ndarray:
        values = np.asarray(column, np.float64).reshape(len(places), -1)
        made = np.full((len(kept), values.shape[1]), -np.inf)
        if how == "max":
            np.maximum.at(made, places, values)
        else:
            for place, of_column in enumerate(values.T):
                made[:, place] = np.bincount(places, of_column, len(kept))
            made /= counts[:, None] if how == "mean" else 1
        return made.reshape(len(kept), *column.shape[1:]).astype(np.float32)

    weight = graph.edge_weight
    if weight is not None:
        weight = merged(weight)
    elif how == "sum" and len(kept) < len(places):
        weight = counts.astype(np.float32)
    feats = None if graph.edge_feats is None else merged(graph.edge_feats)
    types = None if graph.edge_types is None else graph.edge_types[kept]
    return replace(graph, edges=graph.edges[kept], edge_weight=weight, edge_feats=feats, edge_types=types)
