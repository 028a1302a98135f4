"""EdgeList: the edges that are cut and aggregated over, made from a graph's input; and what its arcs carry.

Legend: N vertices, E edges of the input, M edges of the list, A arcs, De width, R relations of the input.

An edge is one arc u -> v or, if the list is two-way, the two arcs u -> v and v -> u (a self-loop: always one arc).
The global arc id of edge e is e forward and M + e backward. Both arcs carry the features of their edge. In a directed
graph they are different relations, t and R + t ("cites" and "is cited by"); in an undirected one both are t.
"""

from typing import Any

import numpy as np

from distgnn.config.cut import DIRECTIONS, SELF_LOOPS
from distgnn.datasets.fields import GraphFields
from distgnn.datasets.pairs import repeated_edges, undirected_keys
from distgnn.errors import InputError

MOST_SHOWN = 40  # edges in a repr
BLOCK_ARCS = 1 << 18


class EdgeList:
    """Edges over N vertices.

    Args:
        num_nodes: N.
        src, dst: [M] int32 if ids fit, else int64; contiguous, not to be written to.
        two_way: whether an edge stands for both arcs.
        edge_ids: [M] int64 place in GraphData.edges, -1 for an added self-loop; None if it is the same for all edges.
        edge_weight: [M] float32 or None.
        direction, self_loops: the choices it was made with.
        node_kinds: [N] whole numbers or None: a cut evens out the owned vertices of each kind by itself.
        edge_kinds: [M] whole numbers, rising, or None: it evens out the arcs of each.
        report: what was merged, removed and added.
    """

    def __init__(
        self,
        num_nodes: int,
        src: np.ndarray,
        dst: np.ndarray,
        two_way: bool,
        *,
        edge_ids: np.ndarray | None = None,
        edge_weight: np.ndarray | None = None,
        direction: str = "stored",
        self_loops: str = "keep",
        report: dict[str, int] | None = None,
        node_kinds: np.ndarray | None = None,
        edge_kinds: np.ndarray | None = None,
    ) -> None:
        self.num_nodes = num_nodes
        self.src = src
        self.dst = dst
        self.two_way = two_way
        self.edge_weight = edge_weight
        self.direction = direction
        self.self_loops = self_loops
        self.report: dict[str, int] = report if report is not None else {}
        self.node_kinds, self.edge_kinds = node_kinds, edge_kinds
        self._edge_ids = edge_ids

    def __repr__(self) -> str:
        """One line; a list of a few edges shows them, so that a failing property test can be read."""
        kind = "two-way" if self.two_way else "one-way"
        words = [f"num_nodes={self.num_nodes}", f"num_edges={self.num_edges}", kind, f"self_loops={self.self_loops!r}"]
        words += ["weighted"] if self.edge_weight is not None else []
        if self.num_edges <= MOST_SHOWN:
            words.append(f"edges={list(zip(self.src.tolist(), self.dst.tolist(), strict=True))}")
            words += [f"edge_weight={self.edge_weight.tolist()}"] if self.edge_weight is not None else []
        return f"EdgeList({', '.join(words)})"

    @property
    def num_edges(self) -> int:
        """Edges of the list, M."""
        return len(self.src)

    @property
    def edge_ids(self) -> np.ndarray:
        """[M] int64: the place in GraphData.edges, -1 for an added self-loop; made at each call if none changed."""
        return np.arange(self.num_edges, dtype=np.int64) if self._edge_ids is None else self._edge_ids

    @property
    def edges_are_input_edges(self) -> bool:
        """Whether edge e of the list is edge e of GraphData.edges."""
        return self._edge_ids is None

    @property
    def num_self_loops(self) -> int:
        """Edges that are self-loops."""
        return int(np.count_nonzero(self.src == self.dst))

    @property
    def num_arcs(self) -> int:
        """Directed messages: a two-way edge counts twice unless it is a self-loop."""
        return 2 * self.num_edges - self.num_self_loops if self.two_way else self.num_edges

    def arcs(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All arcs in the order of their ids.

        Returns: sources, targets (dtype of src) and global arc ids int64, each [num_arcs].
        """
        forward = np.arange(self.num_edges, dtype=np.int64)
        if not self.two_way:
            return self.src, self.dst, forward
        back = np.flatnonzero(self.src != self.dst)
        sources = np.concatenate([self.src, self.dst[back]])
        targets = np.concatenate([self.dst, self.src[back]])
        return sources, targets, np.concatenate([forward, back + self.num_edges])

    def in_degrees(self) -> np.ndarray:
        """[N] int64: arcs that arrive at each vertex."""
        return self._degrees(self.dst, self.src)

    def out_degrees(self) -> np.ndarray:
        """[N] int64: arcs that leave each vertex."""
        return self._degrees(self.src, self.dst)

    def _degrees(self, ends: np.ndarray, other_ends: np.ndarray) -> np.ndarray:
        degrees = _count_ids(ends, self.num_nodes)
        if self.two_way:
            degrees += _count_ids(other_ends, self.num_nodes)
            degrees -= _count_ids(self.src[self.src == self.dst], self.num_nodes)
        return degrees


def _count_ids(ids: np.ndarray, num_nodes: int) -> np.ndarray:
    """np.bincount in blocks: it converts its input to int64."""
    counts = np.zeros(num_nodes, dtype=np.int64)
    for start in range(0, len(ids), 1 << 22):
        block = ids[start : start + (1 << 22)]
        if len(block) * 8 < num_nodes:
            np.add.at(counts, block, 1)
        else:
            counts += np.bincount(block, minlength=num_nodes)
    return counts


def check_choices(direction: str, self_loops: str, typed: bool) -> None:
    """Raise InputError unless a graph (with edge types, or without) has such an edge list."""
    if direction not in DIRECTIONS:
        raise InputError(f"unknown direction {direction!r}; choose one of {', '.join(DIRECTIONS)}")
    if self_loops not in SELF_LOOPS:
        raise InputError(f"unknown choice for self-loops {self_loops!r}; choose one of {', '.join(SELF_LOOPS)}")
    if self_loops == "add" and typed:
        raise InputError(
            "a self-loop has no relation to be added with: keep self_loops, RelGraphConv has a weight for them"
        )


def make_edge_list(graph: GraphFields, direction: str, self_loops: str) -> EdgeList:
    """See `GraphData.edge_list`."""
    check_choices(direction, self_loops, graph.edge_types is not None)
    dtype = np.int32 if graph.num_nodes <= np.iinfo(np.int32).max else np.int64
    src = np.ascontiguousarray(graph.edges[:, 0], dtype=dtype)
    dst = np.ascontiguousarray(graph.edges[:, 1], dtype=dtype)
    weight = None if graph.edge_weight is None else np.ascontiguousarray(graph.edge_weight, dtype=np.float32)
    if direction == "reversed" and graph.directed:
        src, dst = dst, src
    two_way = direction == "both" or not graph.directed
    report = {"input_rows": len(src), "merged_rows": 0, "removed_self_loops": 0, "added_self_loops": 0}
    edge_ids = None  # of the edges that stay, in input order
    if direction == "both" and graph.directed and graph.edge_types is None:
        # One edge per connected pair: the first in the input stays, as of dgl.to_bidirected.
        again = repeated_edges(undirected_keys(src, dst, graph.num_nodes))
        report["merged_rows"] = len(again)
        if len(again):
            if weight is not None or graph.edge_feats is not None:
                carried = "edge features" if graph.edge_feats is not None else "edge weights"
                raise InputError(
                    f"direction 'both' would merge {len(again)} parallel or reciprocal rows that carry {carried}; "
                    "merge them yourself, or use direction 'stored'"
                )
            edge_ids = np.delete(np.arange(len(src), dtype=np.int64), again)
            src, dst = src[edge_ids], dst[edge_ids]
    if self_loops != "keep":
        kept = np.flatnonzero(src != dst)
        report["removed_self_loops"] = len(src) - len(kept)
        if len(kept) < len(src):
            edge_ids = kept if edge_ids is None else edge_ids[kept]
            src, dst, weight = src[kept], dst[kept], None if weight is None else weight[kept]
    if self_loops == "add":  # one of weight 1 on each vertex, after all other edges
        report["added_self_loops"] = graph.num_nodes
        ids = np.arange(graph.num_nodes, dtype=dtype)
        edge_ids = np.arange(len(src), dtype=np.int64) if edge_ids is None else edge_ids
        edge_ids = np.concatenate([edge_ids, np.full(graph.num_nodes, -1, dtype=np.int64)])
        src, dst = np.concatenate([src, ids]), np.concatenate([dst, ids])
        if weight is not None:
            weight = np.concatenate([weight, np.ones(graph.num_nodes, dtype=np.float32)])
    choices: dict[str, Any] = {"direction": direction, "self_loops": self_loops, "report": report}
    if graph.types:
        kinds = np.asarray(graph.edge_types)
        choices |= {"node_kinds": node_kinds(graph), "edge_kinds": kinds if edge_ids is None else kinds[edge_ids]}
    return EdgeList(graph.num_nodes, src, dst, two_way, edge_ids=edge_ids, edge_weight=weight, **choices)


def node_kinds(graph: GraphFields) -> np.ndarray | None:
    """[N] of a typed graph: a number for each type, one for its vertices for training and one for the others."""
    if not graph.types:
        return None
    kinds = 2 * np.asarray(graph.node_types, dtype=np.int16)
    kinds[graph.split_masks()["train"]] += 1
    return kinds


def num_relations(graph: GraphFields, edge_list: EdgeList) -> int:
    """Relations that arcs of this edge list can have; 0 for a graph without edge types."""
    if graph.edge_types is None:
        return 0
    return graph.num_edge_types * (2 if graph.directed and edge_list.two_way else 1)


def arc_relations(graph: GraphFields, edge_list: EdgeList, arc_ids: np.ndarray) -> np.ndarray | None:
    """Relation of each arc, int32 [A], or None without edge types."""
    if graph.edge_types is None:
        return None
    relations = np.asarray(graph.edge_types)[input_edges(edge_list, arc_ids)].astype(np.int32)
    if graph.directed and edge_list.two_way:
        relations[arc_ids >= edge_list.num_edges] += graph.num_edge_types
    return relations


def arc_feats(graph: GraphFields, edge_list: EdgeList, arc_ids: np.ndarray) -> np.ndarray | None:
    """Features of each arc, float32 [A, De], or None without any; added self-loops have ones, as in DGL."""
    if graph.edge_feats is None:
        return None
    feats = np.empty((len(arc_ids), graph.edge_feats.shape[1]), dtype=np.float32)
    for start in range(0, len(arc_ids), BLOCK_ARCS):
        edges = input_edges(edge_list, arc_ids[start : start + BLOCK_ARCS])
        block = feats[start : start + BLOCK_ARCS]
        if len(graph.edge_feats):
            block[:] = graph.edge_feats[np.maximum(edges, 0)]
        block[edges < 0] = 1
    return feats


def input_edges(edge_list: EdgeList, arc_ids: np.ndarray) -> np.ndarray:
    """Edge of the input of each arc; -1 for an added self-loop."""
    edges = arc_ids % max(edge_list.num_edges, 1)
    return edges if edge_list.edges_are_input_edges else edge_list.edge_ids[edges]
