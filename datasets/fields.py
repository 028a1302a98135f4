"""GraphFields: the arrays of one whole graph and the counts that follow from them.

Legend: N vertices, E edges of the input, D feature width, C classes, R relations.

`GraphData` adds what is done with them. This module imports no reader, writer or conversion, so that all of those can
name the type of what they work on.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from distgnn.config.task import EDGE_SPLITS as EDGE_SPLITS
from distgnn.config.task import HELD_OUT as HELD_OUT
from distgnn.config.task import SPLITS as SPLITS
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import DistGNNError, GraphFormatError, InputError

ARRAYS = (
    "edge_weight",
    "edge_feats",
    "edge_types",
    "node_types",
    "node_values",
    "graph_ids",
    "node_names",
    *EDGE_SPLITS,
)
Relation = tuple[str, str, str]  # type of the sources, name, type of the targets
TYPE_ARRAYS = ("node_types", "edge_types", "node_values")  # what follows from the types of a typed graph
TYPE_NAMES = ("edge_type_names", "node_type_names", "class_names")


@dataclass(repr=False)
class GraphFields:
    """A graph with its features, labels and splits.

    Args:
        name: what reports call it.
        num_nodes: N.
        edges: [E, 2] integers (source, target); undirected graphs hold each edge once, in either order.
        directed: whether (u, v) is one arc u -> v only.
        arc_order: the order of the source's arcs, where an undirected one had both: "listed", as `EdgeList.arcs` has
            them, "sorted" by source and target, or "other".
        feats: [N, D] floats, possibly mapped from disk, or scipy CSR; None without features.
        labels: [N] int64 with -1 for none, or [N, C] 0/1 (several labels per vertex; a row of -1 for none).
        edge_weight: [E] float32.
        edge_feats: [E, De] floats.
        edge_types: [E] whole numbers from 0, the relation of each edge.
        node_types: [N] whole numbers from 0.
        node_values: [N] or [N, T] floats, what a regression predicts; NaN (a whole row of it) for none.
        graph_ids: [N] whole numbers from 0: which of many small graphs a vertex belongs to.
        node_names: [N] texts or whole numbers, what the vertices were called before `renumber`; predictions keep them.
        train, valid, test: vertex ids, int64.
        train_edges, valid_edges, test_edges: [M, 2] pairs of vertices that a split of edges is about. Those to be
            predicted are none of `edges` (see `held_out`); without train_edges all of `edges` are for training.
        train_edge_labels, …: [M] whole numbers from 0 (classes of edges) or floats (values): a task on edges, which
            may then be edges of the graph.
        valid_negatives, test_negatives: [K, 2] pairs that are no edges, for the metrics of links.
        valid_negative_targets, test_negative_targets: [M, K], the same for each edge: its source with other targets.
        held_out: valid and test edges without labels are refused where they are also in `edges`; False where links
            come again in time, as in ogbl-collab.
        types, type_counts: names of vertex types and vertices of each, of a typed graph: type t has the ids from the
            sum of the counts before it on. Its columns are in `typed`; labels, values and splits here are views.
        relations: (source type, name, target type) of relations 0, 1, …; `edges` are sorted by them (`edge_types`).
        typed: type -> name -> rows of its vertices: feats (dense, or scipy CSR), labels, values, names, train_mask,
            valid_mask, test_mask.
        relation_columns: relation -> name ("weight", "feat") -> rows of its edges.
        type_classes: type -> number of classes, or their names, where these are known.
        num_label_classes: C where it is known; otherwise the largest label + 1.
        edge_type_names, node_type_names: names of the types 0, 1, …; otherwise there are as many as the largest + 1.
        class_names: names of the classes 0, 1, …, where labels were texts or numbers with gaps.
        findings: what was taken under other names, left out, or looks wrong (see `check_graph`).
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
    node_values: np.ndarray | None = None
    graph_ids: np.ndarray | None = None
    node_names: np.ndarray | None = None
    train: np.ndarray | None = None
    valid: np.ndarray | None = None
    test: np.ndarray | None = None
    train_edges: np.ndarray | None = None
    valid_edges: np.ndarray | None = None
    test_edges: np.ndarray | None = None
    train_edge_labels: np.ndarray | None = None
    valid_edge_labels: np.ndarray | None = None
    test_edge_labels: np.ndarray | None = None
    valid_negatives: np.ndarray | None = None
    test_negatives: np.ndarray | None = None
    valid_negative_targets: np.ndarray | None = None
    test_negative_targets: np.ndarray | None = None
    held_out: bool = True
    arc_order: str = "listed"
    types: tuple[str, ...] = ()
    type_counts: tuple[int, ...] = ()
    relations: tuple[Relation, ...] = ()
    typed: dict[str, dict[str, Any]] = field(default_factory=dict)
    relation_columns: dict[Relation, dict[str, np.ndarray]] = field(default_factory=dict)
    type_classes: dict[str, int | tuple[str, ...]] = field(default_factory=dict)
    num_label_classes: int | None = None
    edge_type_names: tuple[str, ...] = ()
    node_type_names: tuple[str, ...] = ()
    class_names: tuple[str, ...] = ()
    findings: Findings = field(default_factory=Findings)
    notes: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        words = [f"num_nodes={self.num_nodes}", f"num_edges={self.num_edges}", kind]
        if self.feats is not None:
            stored = "sparse " if hasattr(self.feats, "toarray") else ""
            words.append(f"feats={stored}{'x'.join(map(str, self.feats.shape))} {self.feats.dtype}")
        words += [f"types={dict(zip(self.types, self.type_counts, strict=True))}"] if self.types else []
        words += [f"relations={len(self.relations)}"] if self.types else []
        if self.labels is not None:
            words.append(f"num_classes={self.num_classes}")
        split = [f"{key}={len(ids)}" for key in SPLITS if (ids := getattr(self, key)) is not None]
        known = TYPE_ARRAYS if self.types else ()
        more = [key for key in ARRAYS if key not in known and getattr(self, key) is not None]
        return f"GraphData({self.name!r}, {', '.join(words + split + more)})"

    @property
    def num_edges(self) -> int:
        """Edges of the input, E."""
        return len(self.edges)

    @property
    def num_feats(self) -> int:
        """Feature width D; 0 without features, or where types have different ones."""
        if self.types:
            widths = {rows.shape[1] for columns in self.typed.values() if (rows := columns.get("feats")) is not None}
            return int(widths.pop()) if len(widths) == 1 else 0
        return 0 if self.feats is None else int(self.feats.shape[1])

    @property
    def num_edge_feats(self) -> int:
        """Width De of edge features; 0 without any."""
        return 0 if self.edge_feats is None else int(self.edge_feats.shape[1])

    @property
    def num_edge_types(self) -> int:
        """Relations R of the input; 0 without edge types."""
        return len(self.relations) or _num_types(self.edge_types, self.edge_type_names)

    @property
    def num_node_types(self) -> int:
        """Vertex types; 0 where they are not told apart."""
        return len(self.types) or _num_types(self.node_types, self.node_type_names)

    @property
    def num_values(self) -> int:
        """Values of a vertex that a regression predicts, T; 0 without any."""
        if self.node_values is None:
            return 0
        return int(self.node_values.shape[1]) if self.node_values.ndim == 2 else 1

    @property
    def num_graphs(self) -> int:
        """Small graphs that `graph_ids` tells apart; 0 without them."""
        return 0 if self.graph_ids is None else int(self.graph_ids.max(initial=-1)) + 1

    @property
    def multilabel(self) -> bool:
        """Whether a vertex may carry several labels."""
        return self.labels is not None and self.labels.ndim == 2

    @property
    def num_classes(self) -> int:
        """Number of classes C; 0 without labels."""
        if self.labels is None:
            return 0
        if self.labels.ndim == 2:
            return int(self.labels.shape[1])
        if self.num_label_classes is not None:
            return int(self.num_label_classes)
        return max(int(self.labels.max(initial=-1)) + 1, 0)

    @property
    def labelled(self) -> np.ndarray:
        """[N] bool: which vertices have a label."""
        if self.labels is None:
            return np.zeros(self.num_nodes, dtype=bool)
        return self.labels[:, 0] >= 0 if self.labels.ndim == 2 else self.labels >= 0

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

    def fail(self, field_name: str, message: str, count: int = 0) -> NoReturn:
        """Raise the one-line error for a field, naming its file where there is one; count: rows that are wrong so."""
        message += f" ({count} such rows)" if count > 1 else ""
        error: DistGNNError = InputError(f"graph {self.name!r}, {field_name}: {message}")
        if field_name in self.files:
            error = GraphFormatError(f"{self.files[field_name]}: {message}")
        error.count = count
        raise error


def _num_types(types: np.ndarray | None, names: tuple[str, ...]) -> int:
    if types is None:
        return 0
    return len(names) or int(types.max(initial=-1)) + 1
