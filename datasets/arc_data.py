"""What arcs carry: features and relations by global arc id, from the rows of the input.

Legend: E rows of the input, M rows of the edge list, A arcs, De width, R relations of the input.

Arc e and its reverse M + e carry the features of their row. In a directed graph they are different relations, t and
R + t ("cites" and "is cited by"); in an undirected one, whose rows have no direction, both are t.
"""

import numpy as np

BLOCK_ROWS = 1 << 18


def num_relations(graph, edge_list) -> int:
    """Relations that arcs of this edge list can have; 0 for a graph without edge types."""
    if graph.edge_types is None:
        return 0
    return graph.num_edge_types * (2 if _has_inverses(graph, edge_list) else 1)


def arc_relations(graph, edge_list, arc_ids: np.ndarray) -> np.ndarray | None:
    """Relation of each arc, int32 [A], or None without edge types."""
    if graph.edge_types is None:
        return None
    relations = np.asarray(graph.edge_types)[_input_rows(edge_list, arc_ids)].astype(np.int32)
    if _has_inverses(graph, edge_list):
        relations[arc_ids >= edge_list.num_rows] += graph.num_edge_types
    return relations


def arc_feats(graph, edge_list, arc_ids: np.ndarray) -> np.ndarray | None:
    """Features of each arc, float32 [A, De], or None without any; added self-loops have ones, as in DGL."""
    if graph.edge_feats is None:
        return None
    feats = np.empty((len(arc_ids), graph.edge_feats.shape[1]), dtype=np.float32)
    for start in range(0, len(arc_ids), BLOCK_ROWS):
        rows = _input_rows(edge_list, arc_ids[start : start + BLOCK_ROWS])
        block = feats[start : start + BLOCK_ROWS]
        if len(graph.edge_feats):
            block[:] = graph.edge_feats[np.maximum(rows, 0)]
        block[rows < 0] = 1
    return feats


def _has_inverses(graph, edge_list) -> bool:
    return bool(graph.directed and edge_list.two_way)


def _input_rows(edge_list, arc_ids: np.ndarray) -> np.ndarray:
    """Row of the input of each arc; -1 for an added self-loop."""
    rows = arc_ids % max(edge_list.num_rows, 1)
    return rows if edge_list.rows_are_input_rows else edge_list.edge_ids[rows]
