"""What arcs carry: features and relations by global arc id, from the edges of the input.

Legend: E edges of the input, M edges of the edge list, A arcs, De width, R relations of the input.

Arc e and its reverse M + e carry the features of their edge. In a directed graph they are different relations, t and
R + t ("cites" and "is cited by"); in an undirected one, whose edges have no direction, both are t.
"""

import numpy as np

from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.fields import GraphFields

BLOCK_ARCS = 1 << 18


def num_relations(graph: GraphFields, edge_list: EdgeList) -> int:
    """Relations that arcs of this edge list can have; 0 for a graph without edge types."""
    if graph.edge_types is None:
        return 0
    return graph.num_edge_types * (2 if _has_inverses(graph, edge_list) else 1)


def arc_relations(graph: GraphFields, edge_list: EdgeList, arc_ids: np.ndarray) -> np.ndarray | None:
    """Relation of each arc, int32 [A], or None without edge types."""
    if graph.edge_types is None:
        return None
    relations = np.asarray(graph.edge_types)[_input_edges(edge_list, arc_ids)].astype(np.int32)
    if _has_inverses(graph, edge_list):
        relations[arc_ids >= edge_list.num_edges] += graph.num_edge_types
    return relations


def arc_feats(graph: GraphFields, edge_list: EdgeList, arc_ids: np.ndarray) -> np.ndarray | None:
    """Features of each arc, float32 [A, De], or None without any; added self-loops have ones, as in DGL."""
    if graph.edge_feats is None:
        return None
    feats = np.empty((len(arc_ids), graph.edge_feats.shape[1]), dtype=np.float32)
    for start in range(0, len(arc_ids), BLOCK_ARCS):
        edges = _input_edges(edge_list, arc_ids[start : start + BLOCK_ARCS])
        block = feats[start : start + BLOCK_ARCS]
        if len(graph.edge_feats):
            block[:] = graph.edge_feats[np.maximum(edges, 0)]
        block[edges < 0] = 1
    return feats


def _has_inverses(graph: GraphFields, edge_list: EdgeList) -> bool:
    return bool(graph.directed and edge_list.two_way)


def _input_edges(edge_list: EdgeList, arc_ids: np.ndarray) -> np.ndarray:
    """Edge of the input of each arc; -1 for an added self-loop."""
    edges = arc_ids % max(edge_list.num_edges, 1)
    return edges if edge_list.edges_are_input_edges else edge_list.edge_ids[edges]
