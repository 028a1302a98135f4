"""GraphData: one whole graph in memory (or mapped from disk), as it was given.

Legend: N vertices, E rows of the input (edges), D feature width, C classes, R relations.

What happens to the unusual (`counts` reports every number):

| found in the input | treatment |
|---|---|
| duplicate edges | kept: each counts as an edge of its own; `direction="both"` on a directed graph merges them |
| both (u, v) and (v, u) | directed: two arcs; undirected: a duplicate, kept; `direction="both"` merges them |
| self-loops | kept, one arc each; `self_loops="add"` makes it exactly one per vertex, `"remove"` none |
| isolated vertices | kept, owned by some part; their aggregation is 0 |
| vertices without a label (-1) | kept; they count in no loss and no metric, also if a split names them |
| vertices in no split | kept; they only pass messages |
| a wrong id, label, length or a value that is not finite | refused with the file and the row |
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets import checks
from distgnn.datasets.checks import SPLITS
from distgnn.datasets.edge_list import EdgeList, make_edge_list
from distgnn.errors import GraphFormatError, InputError

__all__ = ["SPLITS", "GraphData"]


@dataclass
class GraphData:
    """A graph with its features, labels and splits.

    Args:
        name: what reports call it.
        num_nodes: N.
        edges: [E, 2] integers (source, target); undirected graphs hold each edge once, in either order.
        directed: whether (u, v) is one arc u -> v only.
        feats: [N, D] floats, possibly mapped from disk, or scipy CSR; None without features.
        labels: [N] int64 with -1 for none, or [N, C] 0/1 (several labels per vertex; a row of -1 for none).
        edge_weight: [E] float32.
        edge_feats: [E, De] floats.
        edge_types: [E] whole numbers from 0, the relation of each row.
        node_types: [N] whole numbers from 0.
        train, valid, test: vertex ids, int64.
        num_label_classes: C where it is known; otherwise the largest label + 1.
        edge_type_names, node_type_names: names of the types 0, 1, …; otherwise there are as many as the largest + 1.
        notes: where the graph came from, free text by key.
        files: field name -> file it was read from, for error messages.
    """

    name: str
    num_nodes: int
    edges: np.ndarray
    directed: bool
    feats: Any = None
    labels: np.ndarray | None = None
    edge_weight: np.ndarray | None = None
    edge_feats: np.ndarray | None = None
    edge_types: np.ndarray | None = None
    node_types: np.ndarray | None = None
    train: np.ndarray | None = None
    valid: np.ndarray | None = None
    test: np.ndarray | None = None
    num_label_classes: int | None = None
    edge_type_names: tuple[str, ...] = ()
    node_type_names: tuple[str, ...] = ()
    notes: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)

    @property
    def num_edges(self) -> int:
        """Rows of the input, E."""
        return len(self.edges)

    @property
    def num_feats(self) -> int:
        """Feature width D; 0 without features."""
        return 0 if self.feats is None else int(self.feats.shape[1])

    @property
    def num_edge_feats(self) -> int:
        """Width De of edge features; 0 without any."""
        return 0 if self.edge_feats is None else int(self.edge_feats.shape[1])

    @property
    def num_edge_types(self) -> int:
        """Relations R of the input; 0 without edge types."""
        return _num_types(self.edge_types, self.edge_type_names)

    @property
    def num_node_types(self) -> int:
        """Vertex types; 0 where they are not told apart."""
        return _num_types(self.node_types, self.node_type_names)

    @property
    def multilabel(self) -> bool:
        """Whether a vertex may carry several labels."""
        return self.labels is not None and self.labels.ndim == 2

    @property
    def num_classes(self) -> int:
        """Number of classes C; 0 without labels."""
        if self.labels is None:
            return 0
        if self.multilabel:
            return int(self.labels.shape[1])
        if self.num_label_classes is not None:
            return int(self.num_label_classes)
        return max(int(self.labels.max(initial=-1)) + 1, 0)

    @property
    def labelled(self) -> np.ndarray:
        """[N] bool: which vertices have a label."""
        if self.labels is None:
            return np.zeros(self.num_nodes, dtype=bool)
        return self.labels[:, 0] >= 0 if self.multilabel else self.labels >= 0

    def split_masks(self) -> dict[str, np.ndarray]:
        """`train`, `valid`, `test` as bool arrays [N]: the vertices of a split that have a label; else all False."""
        masks = {}
        for name in SPLITS:
            masks[name] = np.zeros(self.num_nodes, dtype=bool)
            if getattr(self, name) is not None:
                masks[name][getattr(self, name)] = True
            if self.labels is not None:
                masks[name] &= self.labelled
        return masks

    def fail(self, field_name: str, message: str) -> None:
        """Raise the one-line error for a field, naming its file where there is one."""
        if field_name in self.files:
            raise GraphFormatError(f"{self.files[field_name]}: {message}")
        raise InputError(f"graph {self.name!r}, {field_name}: {message}")

    def check(self) -> "GraphData":
        """Check shapes, ranges, finiteness and splits.

        Returns: the graph itself.
        Raises: GraphFormatError (read from a file) or InputError (given as arrays), naming file and row.
        Notes: reads every array once, block by block; a mapped array stays mapped.
        """
        checks.check_graph(self)
        return self

    def counts(self) -> dict[str, int]:
        """What is unusual in the input, by name; sorts the edges once (16 bytes per edge).

        Returns: num_nodes, num_edges, duplicates (rows beyond the first of a pair; undirected: in either order),
            reciprocal (directed: pairs of vertices with arcs both ways), self_loops, isolated (vertices in no row),
            labelled, unlabelled, train, valid, test, no_split, split_unlabelled (ids in a split without a label).
        """
        return checks.count_graph(self)

    def edge_list(self, direction: str = "stored", self_loops: str = "keep") -> EdgeList:
        """The edges as they are cut and aggregated over.

        Args:
            direction: `stored`, `both` (messages travel both ways) or `reversed`; an undirected graph is always both.
            self_loops: `keep`, `add` (exactly one per vertex) or `remove`.
        Returns: EdgeList.
        Raises: InputError for an unknown choice, if `both` has to merge rows that carry weights or features, or if
            self-loops are to be added to a graph with edge types.
        Notes: with edge types `both` merges nothing: each row gives an arc of its relation and one of the inverse.
        """
        return make_edge_list(self, direction, self_loops)

    def normalize_feats(self, how: str = "row") -> "GraphData":
        """A copy of this graph whose feature rows sum to 1 in absolute value (rows of zeros stay); edges are shared.

        Raises: InputError without features or for another way than `row`.
        """
        from distgnn.datasets.normalize import normalize_feats

        return normalize_feats(self, how)

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the plain graph folder (see `distgnn.datasets.formats.folder`), whole or not at all."""
        from distgnn.datasets.formats.folder import write_folder

        return write_folder(self, Path(folder), overwrite)

    @classmethod
    def from_arrays(cls, edges, num_nodes: int | None = None, directed: bool = True, **fields) -> "GraphData":
        """A checked graph from arrays.

        Args:
            edges: [E, 2] integers, or a pair (sources, targets).
            num_nodes: N; the largest id + 1 if not given.
            directed: whether a row is one arc; if not, each edge stands in one row.
            fields: any other field of GraphData; splits may be ids or bool masks [N].
        """
        from distgnn.datasets.convert import from_arrays

        return from_arrays(edges, num_nodes, directed, fields)

    @classmethod
    def from_dgl(cls, graph, directed: bool = True, **fields) -> "GraphData":
        """A graph from a homogeneous DGLGraph: its arcs in order, and `feat`, `label`, `*_mask`, `ntype` of its ndata.

        A directed one also gets `feat`, `weight` and `etype` of its edata. A graph of several types comes through
        `dgl.to_homogeneous`, whose type columns are understood.

        Args:
            directed: False keeps one row per pair of opposite arcs, which must all be there.
            fields: fields of GraphData that replace what ndata holds.
        """
        from distgnn.datasets.convert import from_dgl

        return from_dgl(graph, directed, fields)

    @classmethod
    def from_scipy(cls, adjacency, directed: bool = True, weighted: bool = False, **fields) -> "GraphData":
        """A graph from a square scipy sparse matrix: entry [u, v] is the arc u -> v.

        Args:
            directed: False keeps one row per pair of opposite entries, which must all be there.
            weighted: whether the entries are edge weights.
        """
        from distgnn.datasets.convert import from_scipy

        return from_scipy(adjacency, directed, weighted, fields)

    def to_dgl(self, edge_list: EdgeList | None = None):
        """The whole graph as a DGLGraph with one edge per arc, in the order of `EdgeList.arcs`.

        Returns: dgl.DGLGraph; ndata feat, label, train_mask, val_mask, test_mask, ntype and edata weight, feat,
            etype where given.
        """
        from distgnn.datasets.convert import to_dgl

        return to_dgl(self, edge_list)


def _num_types(types: np.ndarray | None, names: tuple[str, ...]) -> int:
    if types is None:
        return 0
    return len(names) or int(types.max(initial=-1)) + 1
