"""GraphData: one whole graph in memory (or mapped from disk), as it was given.

Legend: N vertices, E edges of the input. What happens to the unusual: docs/guide/graphs.md, at its end; `counts`
has every number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets.checks import check_graph
from distgnn.datasets.edge_list import EdgeList, arc_feats, arc_relations, make_edge_list
from distgnn.datasets.fields import SPLITS, GraphFields
from distgnn.datasets.findings.cautions import add_cautions
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.formats.folder_writer import write_folder
from distgnn.datasets.names.field_names import DGL_NAMES, PYG_NAMES, our_names, refuse_unknown
from distgnn.datasets.objects.arrays import from_arrays, from_frame, from_matrix, from_networkx, is_frame
from distgnn.datasets.objects.from_types import from_tables
from distgnn.datasets.objects.libraries import from_dgl, from_pyg
from distgnn.datasets.objects.to_types import to_hetero, to_typed_dgl
from distgnn.datasets.objects.values import sparse_matrix
from distgnn.datasets.pairs import count_pairs
from distgnn.datasets.random_splits import Graph, split_links, split_nodes
from distgnn.datasets.typed import check_typed, of_type, with_type
from distgnn.errors import InputError
from distgnn.system.other_libraries import import_dgl, import_pyg

__all__ = ["SPLITS", "GraphData"]


@dataclass(repr=False)
class GraphData(GraphFields):
    """The fields of `GraphFields` (name, edges, feats, labels, splits, …), and what can be done with them.

    Example:
        >>> dg.GraphData.from_arrays([[0, 1], [1, 2]], directed=False, labels=[0, 1, 0])
        GraphData('graph', num_nodes=3, num_edges=2, undirected, num_classes=2)
    """

    @classmethod
    def from_fields(cls, values: dict[str, Any]) -> "GraphData":
        """A checked graph from field name -> value. Raises: InputError for a name that is no field."""
        known = [field.name for field in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            refuse_unknown(unknown[0], known)
        return cls(**values).check()

    def check(self) -> "GraphData":
        """Check shapes, ranges, finiteness and splits.

        Returns: the graph itself; where `findings` collects errors, all of them are there, and nothing is raised.
        Raises: GraphFormatError (read from a file) or InputError (given as arrays), naming file and row.
        Notes: reads every array once, block by block; a mapped array stays mapped.
        """
        if self.types:
            with self.findings.reading("types"):
                check_typed(self)
        if not (self.types and self.findings.wrong):
            check_graph(self)
        return self

    def counts(self) -> dict[str, int]:
        """What is unusual in the input, by name; sorts the edges once (16 bytes per edge).

        Returns: num_nodes, num_edges, duplicates (edges beyond the first of a pair; undirected: in either order),
            reciprocal (directed: pairs of vertices with arcs both ways), self_loops, isolated (without any edge),
            labelled, unlabelled, train, valid, test, no_split, split_unlabelled (ids in a split without a label).
        """
        sources, targets = self.edges[:, 0], self.edges[:, 1]
        touched = np.zeros(self.num_nodes, dtype=bool)
        touched[sources] = True
        touched[targets] = True
        duplicates, reciprocal = count_pairs(sources, targets, self.num_nodes, self.directed)
        labelled = self.labelled
        split = {name: getattr(self, name) for name in SPLITS}
        in_split = {name: 0 if ids is None else len(ids) for name, ids in split.items()}
        in_any = np.concatenate([[], *(ids for ids in split.values() if ids is not None)])
        unlabelled = sum(int(np.count_nonzero(~labelled[ids])) for ids in split.values() if ids is not None)
        return {
            "num_nodes": int(self.num_nodes),
            "num_edges": self.num_edges,
            "duplicates": duplicates,
            "reciprocal": reciprocal,
            "self_loops": int(np.count_nonzero(sources == targets)),
            "isolated": int(self.num_nodes - np.count_nonzero(touched)),
            "labelled": int(np.count_nonzero(labelled)),
            "unlabelled": int(self.num_nodes - np.count_nonzero(labelled)),
            **in_split,
            "no_split": int(self.num_nodes - len(np.unique(in_any))),
            "split_unlabelled": unlabelled,
        }

    def edge_list(self, direction: str = "stored", self_loops: str = "keep") -> EdgeList:
        """The edges as they are cut and aggregated over.

        Args:
            direction: `stored`, `both` (messages travel both ways) or `reversed`; an undirected graph is always both.
            self_loops: `keep`, `add` (exactly one per vertex) or `remove`.
        Returns: EdgeList.
        Raises: InputError for an unknown choice, if `both` has to merge edges that carry weights or features, or if
            self-loops are to be added to a graph with edge types.
        Notes: with edge types `both` merges nothing: each edge gives an arc of its relation and one of the inverse.
        """
        return make_edge_list(self, direction, self_loops)

    def normalize_feats(self, how: str = "row") -> "GraphData":
        """A copy of this graph whose feature rows sum to 1 in absolute value (rows of zeros stay); edges are shared.

        Raises: InputError without features or for another way than `row`.
        """
        if how != "row":
            raise InputError(f"unknown way to normalise features {how!r}; known is 'row'")
        having = [kind for kind, columns in self.typed.items() if "feats" in columns]
        if having:
            made = self
            for kind in having:
                made = with_type(made, kind, _normalized(of_type(self, kind)))
            return replace(made, notes={**self.notes, "normalized_feats": how})
        if self.feats is None:
            raise InputError(f"graph {self.name!r} has no features to normalise")
        return replace(_normalized(self), notes={**self.notes, "normalized_feats": how})

    def split_links(
        self, valid: float = 0.1, test: float = 0.2, seed: int = 0, either_way: bool = False
    ) -> "GraphData":
        """A copy of this graph without some edges, which become `valid_edges` and `test_edges`, for link prediction.

        Args:
            valid, test: shares of the pairs of vertices that edges join; self-loops are never held out.
            seed: of the choice, and of as many pairs that are no edges (`valid_negatives`, `test_negatives`).
            either_way: edges u -> v and v -> u of a directed graph are held out together (for direction "both"); of an
                undirected graph they always are, and parallel edges too.
        Raises: InputError for shares that leave no edges, or a graph that has a split of edges.
        Notes: the edges that are left are copied, features of vertices are shared.
        """
        return split_links(self, valid, test, seed, either_way)

    def split_nodes(self, train: float = 0.6, valid: float = 0.2, test: float = 0.2, seed: int = 0) -> "GraphData":
        """A copy of this graph whose labelled vertices (of a typed graph: of each type) are dealt out at random to
        train, valid and test.

        Args: train, valid, test: shares of the vertices with a label or a value (of all, without either).
        Raises: InputError for shares that are none, or a graph that has a split already.
        Notes: the same seed gives the same split; all arrays are shared. Where a vertex has one label, every class has
            these shares of its vertices, up to rounding (multi-label and values: all vertices together).
        """
        having = [kind for kind, columns in self.typed.items() if {"labels", "values"} & columns.keys()]
        made = self if having else split_nodes(self, (train, valid, test), seed)
        for kind in having:
            made = with_type(made, kind, split_nodes(of_type(self, kind), (train, valid, test), seed))
        return made

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the plain graph folder (see `distgnn.datasets.formats.folder`), whole or not at all."""
        return write_folder(self, Path(folder), overwrite)

    @classmethod
    def from_arrays(
        cls,
        edges: Any,
        num_nodes: int | None = None,
        directed: bool = True,
        findings: Findings | None = None,
        **fields: Any,
    ) -> "GraphData":
        """A checked graph from arrays.

        Args:
            edges: integers [E, 2], or [2, E] (`edge_index`), or a pair (sources, targets), or a table of edges (pandas,
                polars) with columns source and target. An array of shape [2, 2] is read as [E, 2]: two edges, one per
                line; give a pair if its lines are sources and targets.
            num_nodes: N; if not given, the rows of features, labels and masks, or the largest id + 1.
            directed: whether an edge is one arc; if not, each edge is given once.
            findings: where it is written down what was taken, renamed, left out or looks wrong; without it one Python
                warning says it (`GraphNotice` where things were only renamed, else `GraphWarning`).
            fields: any other field of GraphData, also by PyG's and DGL's names (x, y, train_mask, …) and synonyms.
                Splits are ids, or masks [N] or [N, 1] of bools or 0 and 1. Labels may be texts, or numbers with gaps:
                their classes are counted from 0, and `class_names` keeps what they were.
        Notes: numpy arrays, torch tensors and lists are taken alike; numpy arrays that fit are not copied.
        """
        if sparse_matrix(edges) is not None:
            return cls.from_scipy(edges, directed, findings=findings, **fields)
        reader = from_frame if is_frame(edges) else from_arrays
        return cls._read(reader, (edges, num_nodes, directed), fields, findings)

    @classmethod
    def from_types(cls, tables: Mapping[Any, Any], findings: Findings | None = None, **fields: Any) -> "GraphData":
        """A typed graph: vertices of several types, relations between them, each with columns of its own.

        Args:
            tables: a dict as of PyG's HeteroData. Type -> its columns (x, y, train_mask, …) and `num_nodes` where no
                column says it, or the number of its vertices alone. (source type, name, target type) -> `edge_index`
                [2, E] in the ids of these types, and its columns (edge_weight, edge_attr); or the edges alone.
            findings, fields: as of `from_arrays`; a column as a dict: y={"paper": labels}.

        Example:
            >>> writes = ("author", "writes", "paper")
            >>> dg.GraphData.from_types({"author": 2, "paper": 3, writes: [[0, 1, 1], [0, 1, 2]]})
            GraphData('typed', num_nodes=5, num_edges=3, directed, types={'author': 2, 'paper': 3}, relations=1)
        """
        return cls._read(from_tables, (tables,), fields, findings)

    @classmethod
    def from_dgl(
        cls, graph: Any, directed: bool = True, findings: Findings | None = None, **fields: Any
    ) -> "GraphData":
        """A graph from a DGLGraph: its arcs in order, `feat`, `label`, `*_mask`, `ntype` of its ndata, and `feat`,
        `weight` and `etype` of its edata.

        `label` of floats are `node_values`, unless `task` is "node". Types keep the order of `ntypes` and
        `canonical_etypes`. The graphs of `dgl.batch` are `graph_ids`.

        Args:
            directed: False keeps one edge per pair of opposite arcs, which must all be there and carry the same.
            findings: as of `from_arrays`; synonyms (`features`, `labels`, `w`, …) are taken, other columns are named.
            fields: fields of GraphData that replace what ndata holds; None leaves a column out without a word.
        """
        return cls._read(from_dgl, (graph, directed), fields, findings)

    @classmethod
    def from_pyg(cls, data: Any, directed: bool = True, findings: Findings | None = None, **fields: Any) -> "GraphData":
        """A graph from a PyG `Data`: `edge_index` (or `adj_t`, whose rows are targets), `x`, `y`, `*_mask`,
        `node_type`, `edge_weight`, `edge_type` and `edge_attr` (one number per edge is its weight).

        Labels, types and batches: as of `from_dgl`, arguments too; a `HeteroData` keeps its types.
        """
        return cls._read(from_pyg, (data, directed), fields, findings)

    @classmethod
    def from_networkx(
        cls, graph: Any, weighted: bool | None = None, findings: Findings | None = None, **fields: Any
    ) -> "GraphData":
        """A graph from a NetworkX graph; vertex i is the i-th node of `list(graph)`.

        Args:
            weighted: whether the edges' `weight` attributes (1 where there is none) are edge weights; None: no, with
                a warning where there are any.
            findings: as of `from_arrays`; it names every attribute that is not taken.
            fields: fields of GraphData, as `feats` in the order of `list(graph)`; or the name of an attribute that all
                have: `feats="x"`, `labels="y"`.
        """
        return cls._read(from_networkx, (graph, weighted), fields, findings)

    @classmethod
    def from_scipy(
        cls,
        adjacency: Any,
        directed: bool = True,
        weighted: bool | None = None,
        findings: Findings | None = None,
        **fields: Any,
    ) -> "GraphData":
        """A graph from a square sparse matrix of scipy or torch (COO, CSR, CSC): entry [u, v] is the arc u -> v.

        Args:
            directed: False keeps one edge per pair of opposite entries, which must all be there, with values that are
                equal but for rounding.
            weighted: whether the entries are edge weights; None: no, with a warning where they are not all 1.
            findings: as of `from_arrays`.
        """
        return cls._read(from_matrix, (adjacency, directed, weighted), fields, findings)

    @classmethod
    def _read(
        cls,
        reader: Callable[..., dict[str, Any]],
        args: tuple[Any, ...],
        fields: dict[str, Any],
        findings: Findings | None,
    ) -> "GraphData":
        """The graph that a reader makes; what was found is warned of at the caller's caller."""
        found = Findings() if findings is None else findings
        graph = cls.from_fields(reader(*args, our_names(fields, found), found))
        add_cautions(graph)
        if findings is None:
            found.warn(graph.name, stacklevel=3)
        return graph

    def to_dgl(self, edge_list: EdgeList | None = None) -> Any:
        """The whole graph as a DGLGraph with one edge per arc, in the source's order.

        Returns: dgl.DGLGraph; ndata feat, label, train_mask, val_mask, test_mask, ntype and edata weight, feat,
            etype where given. Of a typed graph: one with its types and relations.
        """
        dgl = import_dgl()
        if self.types:
            return to_typed_dgl(self, edge_list or self.edge_list(), dgl, DGL_NAMES)
        arcs, of_vertices, of_arcs = _columns(self, edge_list or self.edge_list())
        result = dgl.graph(arcs, num_nodes=int(self.num_nodes))
        result.edata.update({DGL_NAMES[key]: column for key, column in of_arcs.items()})
        result.ndata.update({DGL_NAMES[key]: column for key, column in of_vertices.items()})
        return result

    def to_pyg(self, edge_list: EdgeList | None = None) -> Any:
        """The whole graph as a PyG `Data` with one column of `edge_index` per arc, in the order of `EdgeList.arcs`.

        Returns: torch_geometric.data.Data; x, y, train_mask, val_mask, test_mask, node_type, edge_weight, edge_attr,
            edge_type where given. Of a typed graph: HeteroData.
        """
        torch_geometric = import_pyg()
        import torch

        if self.types:
            return to_hetero(self, edge_list or self.edge_list(), torch_geometric.data.HeteroData(), PYG_NAMES)
        arcs, of_vertices, of_arcs = _columns(self, edge_list or self.edge_list())
        columns = {PYG_NAMES[key]: column for key, column in (of_vertices | of_arcs).items()}
        return torch_geometric.data.Data(edge_index=torch.stack(arcs).long(), num_nodes=int(self.num_nodes), **columns)


def _normalized(graph: Graph) -> Graph:
    total = np.asarray(np.abs(graph.feats).sum(axis=1, dtype=np.float64)).reshape(-1, 1)
    scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0).astype(np.float32)
    if scipy.sparse.issparse(graph.feats):
        return replace(graph, feats=graph.feats.multiply(scale).tocsr().astype(np.float32))
    return replace(graph, feats=np.asarray(graph.feats, dtype=np.float32) * scale)


def _columns(graph: GraphFields, edge_list: EdgeList) -> tuple[tuple[Any, ...], dict[str, Any], dict[str, Any]]:
    """(sources and targets of arcs, columns of vertices, columns of arcs) as tensors, columns by name of the field."""
    import torch

    sources, targets, arc_ids = edge_list.arcs()
    if graph.arc_order == "sorted":
        order = np.lexsort((targets, sources))
        sources, targets, arc_ids = sources[order], targets[order], arc_ids[order]
    of_vertices: dict[str, Any] = {}
    of_arcs: dict[str, Any] = {}
    if edge_list.edge_weight is not None and len(arc_ids):
        of_arcs["edge_weight"] = torch.tensor(edge_list.edge_weight[arc_ids % edge_list.num_edges])
    if graph.edge_feats is not None:
        of_arcs["edge_feats"] = torch.from_numpy(arc_feats(graph, edge_list, arc_ids))
    if graph.edge_types is not None:
        of_arcs["edge_types"] = torch.from_numpy(arc_relations(graph, edge_list, arc_ids)).long()
    values = (graph.node_values, np.float32) if graph.labels is None else (graph.labels, np.int64)
    dense = graph.feats.toarray() if scipy.sparse.issparse(graph.feats) else graph.feats
    columns = {"node_types": (graph.node_types, np.int64), "feats": (dense, np.float32), "labels": values}
    for name, (column, dtype) in columns.items():
        if column is not None:
            of_vertices[name] = torch.tensor(np.asarray(column, dtype=dtype))
    of_vertices |= {name: torch.from_numpy(mask) for name, mask in graph.split_masks().items()}
    return (torch.tensor(sources), torch.tensor(targets)), of_vertices, of_arcs
