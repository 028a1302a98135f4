"""TypedGraph: what scripts see of a graph with types, in the manners of PyG's `HeteroData` and of DGL's graphs.

    data = dg.load("parts")                                         parts of a graph with types
    data["paper"].x, data["paper"].y, data["paper"].train_mask      rows of all ranks, of one type
    data["author", "writes", "paper"].edge_index                    a relation: a graph from one type to another
    data.x_dict, data.edge_index_dict, data.metadata()              what layers and models take
    data.nodes["paper"].data, data.update_all(…, etype="writes")    what DGL's do: see typed_dgl.py

Each type has a space of its own, so rows of two types do not go together. Random masks are drawn by vertex ids that
count all types, one after the other. Each relation has its own exchange plan.
"""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from distgnn.comm import sum_over_ranks
from distgnn.errors import InputError
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.face.data_access import OnCPU
from distgnn.graph.face.node_store import MADE_BEFORE, NAMES, NodeStore
from distgnn.graph.face.relation_graph import RelationGraph
from distgnn.graph.face.row_graph import Count, face_of
from distgnn.graph.face.typed_dgl import DGLTypes
from distgnn.graph.part_arrays import input_rows
from distgnn.graph.relation import Relation
from distgnn.interop.dgl import dispatch
from distgnn.interop.dgl.api import INSTEAD as NOT_HERE
from distgnn.interop.dgl.api import Frame, NotDistributed
from distgnn.ops.edges.on_arcs import arc_ends
from distgnn.rows import RowTensor, Space, rows_of

Key = tuple[str, str, str]
OF_JOB = ("rank", "num_ranks", "comm", "info", "transport")


class TypedGraph(DGLTypes, OnCPU):
    """Types and relations of a graph that is cut. `dg.load` gives one for parts of a graph with types.

    Collective: the constructor.

    Args: graph: the face of the one vertex set (`with_rows`), whose part has types and relations.

    Attributes: plain: the DistGraph of all types in one vertex set.
    """

    def __init__(self, graph: Any):
        plain: DistGraph = graph.plain
        check_settings(plain)
        part: Any = plain.local
        kinds, types, keys = part.graph["types"], np.asarray(part.node_types), map(tuple, part.graph["relations"])
        counts = sum_over_ranks(plain.comm, np.bincount(types, minlength=len(kinds)))
        starts = dict(zip(kinds, np.concatenate([[0], np.cumsum(counts)[:-1]]), strict=True))
        nodes = {
            name: _node_store(plain, name, np.flatnonzero(types == number), int(counts[number]), int(starts[name]))
            for number, name in enumerate(kinds)
        }
        self.__dict__.update(plain=plain, face_of_all=graph, nodes_of=nodes, relations_of={}, given={})
        state = plain.__dict__
        types_of = [one.vertex_space for one in nodes.values()]
        state["types"], state["joined_before"], state["face_of"], state["typed"] = types_of, {}, face_of, self
        dispatch.tell_dgl()
        ends = arc_ends(part, np.asarray(part.global_ids).astype(np.int64))
        of_arcs = np.asarray(part.edge_types)
        for number, key in enumerate(keys):
            chosen = np.flatnonzero(of_arcs == number)
            sources, targets = (of[chosen] - starts[name] for of, name in zip(ends, (key[0], key[2]), strict=True))
            spaces = nodes[key[0]].vertex_space, nodes[key[2]].vertex_space
            relation = Relation(plain, *spaces, sources, targets, np.asarray(part.arc_ids)[chosen], name=key)
            _attach(relation, nodes[key[0]], part.relation_columns.get(number, {}))
            relation.__dict__["ends"] = {"source": nodes[key[0]], "target": nodes[key[2]]}
            self.relations_of[key] = face_of(relation, spaces[1], RelationGraph)

    # --- types and relations ----------------------------------------------------------------------------------------

    face: Any = property(lambda graph: graph, doc="What scripts see of the graph: this.")
    node_types: Any = property(lambda graph: list(graph.nodes_of))
    edge_types: Any = property(lambda graph: list(graph.relations_of))
    node_stores: Any = property(lambda graph: list(graph.nodes_of.values()))
    edge_stores: Any = property(lambda graph: list(graph.relations_of.values()))
    stores: Any = property(lambda graph: [*graph.node_stores, *graph.edge_stores])
    num_features: Any = property(lambda graph: graph.collect("num_features"))
    num_node_features = num_features
    is_hetero = True

    def metadata(self) -> tuple[list[str], list[Key]]:
        """(types, relations), as models of PyG take it."""
        return self.node_types, self.edge_types

    def key_of(self, key: Any) -> Any:
        """A type's name, or the three names of a relation. Raises: KeyError for one that is not there."""
        key = key[0] if isinstance(key, tuple) and len(key) == 1 else key
        if key in self.nodes_of or key in self.relations_of:
            return key
        wanted = key if isinstance(key, tuple) else (key,)
        found = [one for one in self.relations_of if wanted in ((one[1],), (one[0], one[2]))]
        if len(found) == 1:
            return found[0]
        several = f"{key!r} stands for {found}: give three names" if found else f"there is no {key!r}"
        raise KeyError(f"{several}; the graph has {self.node_types} and {self.edge_types}")

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str) and key in self.given:
            return self.given[key]
        key = self.key_of(key)
        return self.nodes_of[key] if isinstance(key, str) else self.relations_of[key]

    def node_items(self) -> list[tuple[str, NodeStore]]:
        return list(self.nodes_of.items())

    def edge_items(self) -> list[tuple[Key, Any]]:
        return list(self.relations_of.items())

    # --- columns of all types --------------------------------------------------------------------------------

    def collect(self, key: str, allow_empty: bool = False) -> dict[Any, Any]:
        """A column by type or relation, of those that have it. Raises: KeyError where none has."""
        found: dict[Any, Any] = {name: one[key] for name, one in self.nodes_of.items() if key in one}
        if key in ("num_nodes", "num_features", "num_node_features"):
            found = {name: getattr(one, key) for name, one in self.nodes_of.items()}
        if key == "num_edges":
            found = {name: one.num_edges for name, one in self.relations_of.items()}
        found |= {name: one[key] for name, one in self.relations_of.items() if key in one}
        if not found and not allow_empty:
            raise KeyError(f"tried to collect {key!r} but did not find any occurrences of it in any type or relation")
        return found

    def set_value_dict(self, key: str, values: dict[Any, Any]) -> "TypedGraph":
        """Set a column of several types or relations."""
        for name, value in values.items():
            setattr(self[name], key, value)
        return self

    def __getattr__(self, name: str) -> Any:
        given = self.__dict__.get("given", {})
        if name in given:
            return given[name]
        if name in OF_JOB:
            return getattr(self.plain, name)
        if name.endswith("_dict") and given is not None and "nodes_of" in self.__dict__:
            try:
                return self.collect(name[:-5])
            except KeyError as error:
                raise AttributeError(str(error)) from None
        if name in NOT_HERE:
            raise NotDistributed(f"graph.{name} cannot run distributed: {NOT_HERE[name]}")
        raise AttributeError(f"a graph with types has no attribute {name!r}: name a type, data['{name}'], or a column")

    def __setattr__(self, name: str, value: Any) -> None:
        if name.endswith("_dict") and isinstance(value, dict):
            self.set_value_dict(name[:-5], value)
        elif hasattr(type(self), name):
            raise InputError(f"data.{name} is the graph's own: {MADE_BEFORE}")
        else:
            self.given[name] = value

    def __setitem__(self, key: str, value: Any) -> None:
        raise InputError(f"types and relations of a graph that is cut cannot be set: {MADE_BEFORE}")

    def __contains__(self, key: Any) -> bool:
        return key in self.given or key in self.nodes_of or key in self.relations_of

    # --- sizes -------------------------------------------------------------------------------------------

    @property
    def num_nodes(self) -> Count:
        """Vertices of all types, or of one by name."""
        return Count(sum(one.num_nodes for one in self.node_stores), lambda kind: self.nodes_of[kind].num_nodes)

    @property
    def num_edges(self) -> Count:
        """Arcs of all relations, or of one by name."""
        return Count(sum(one.num_edges for one in self.edge_stores), lambda key: self.relation(key).num_edges)

    number_of_nodes, number_of_edges, num_src_nodes, num_dst_nodes = num_nodes, num_edges, num_nodes, num_nodes
    number_of_src_nodes, number_of_dst_nodes = num_nodes, num_nodes

    def to_homogeneous(
        self,
        node_attrs: list[str] | None = None,
        edge_attrs: list[str] | None = None,
        add_node_type: bool = True,
        add_edge_type: bool = True,
        dummy_values: bool = True,
    ) -> Any:
        """The same graph with one vertex set, `node_type` and `edge_type`, as PyG's. Collective: yes.

        Columns that differ in width are left out. Where a type lacks a column it gets NaN, -1 or False.
        """
        made = copy.copy(self.face_of_all)
        for stores, wanted in ((self.node_stores, node_attrs), (self.edge_stores, edge_attrs)):
            spaces = [one.vertex_space if isinstance(one, NodeStore) else one.arc_space for one in stores]
            names = dict.fromkeys(name for one in stores for name in one.keys() if name != "edge_index")
            for name in names if wanted is None else wanted:
                columns = [one[name] if name in one else None for one in stores]
                given = [one for one in columns if isinstance(one, RowTensor)]
                complete = len(given) == len(stores) or dummy_values
                if given and complete and len({one.shape[1:] for one in given}) == 1:
                    pairs = zip(columns, spaces, strict=True)
                    made[name] = torch.cat([_dummy(given[0], space) if one is None else one for one, space in pairs])
        if not add_node_type:
            made.node_type = None
        if not add_edge_type:
            made.edge_type = None
        return made

    # --- copies ------------------------------------------------------------------------------------------

    def __copy__(self) -> "TypedGraph":
        """The same graph with columns of its own."""
        made: Any = object.__new__(type(self))
        nodes = {name: one.scoped() for name, one in self.nodes_of.items()}
        relations = {key: copy.copy(one) for key, one in self.relations_of.items()}
        for key, one in relations.items():
            one.__dict__["ends"] = {"source": nodes[key[0]], "target": nodes[key[2]]}
        made.__dict__.update(self.__dict__ | {"nodes_of": nodes, "relations_of": relations, "given": dict(self.given)})
        return made

    def __iter__(self) -> Iterator[Any]:
        raise InputError("a graph with types is not iterated: use node_items() and edge_items()")

    def __repr__(self) -> str:
        lines = [repr(one) for one in self.node_stores]
        lines += [f"{' '.join(key)}: {one.num_edges} arcs" for key, one in self.relations_of.items()]
        return "TypedGraph(\n  " + "\n  ".join(lines) + "\n)"


def check_settings(graph: DistGraph) -> None:
    """Raise InputError for a setting that relations do not have."""
    inexact = graph.algorithm.name != "cd-0" or not graph.schedule.exact
    refused = {
        "update='owners'": graph.update != "owners",
        "algorithm='cd-0' and whole rows": inexact,
        "feat_norm='none'": graph.feat_norm is not None,
    }
    for wanted, is_other in refused.items():
        if is_other:
            raise InputError(f"a graph with types and relations is loaded with {wanted}, or with plain_tensors=True")


def _node_store(graph: DistGraph, name: str, rows: np.ndarray, count: int, start: int) -> NodeStore:
    """The store of a type whose vertices are these owned rows, and whose ids begin at `start`."""
    ids = graph.owned_ids[rows]
    space = Space(graph, len(ids), count, lambda: ids - start, draw_ids=lambda: ids, kind=f"{name!r} vertices")
    space.of_type = name
    frame = Frame(len(ids), f"{name!r} vertex")
    part: Any = graph.local
    for column, values in part.typed.get(name, {}).items():
        made: Any
        if column == "feats":
            made = input_rows(graph.transport, values, graph.dtype, sparse=graph._settings["sparse_feats"])
        elif np.asarray(values).dtype.kind not in "biuf":
            continue  # names
        else:
            made = torch.from_numpy(np.array(values))
            if column == "labels":
                made = made.to(graph.weight_dtype if made.dim() > 1 else torch.int64)
            made = made.to(graph.weight_dtype) if made.is_floating_point() else made
        frame[NAMES.get(column, column)] = made
    return NodeStore(name, space, frame)


def _dummy(like: RowTensor, space: Space) -> RowTensor:
    value = float("nan") if like.is_floating_point() else False if like.dtype == torch.bool else -1
    return rows_of(torch.full((space.num_local, *like.shape[1:]), value, dtype=like.dtype), space)


def _attach(relation: Relation, sources: NodeStore, columns: dict[str, np.ndarray]) -> None:
    """The columns of a relation's arcs; the aggregation of its source features is kept."""
    for name, values in columns.items():
        column = torch.from_numpy(np.array(values)[relation.order])
        relation.edata[name] = column.to(relation.weight_dtype) if column.is_floating_point() else column
    relation.edge_weight = relation.edata.get("weight")
    feats = sources.frame.get("feat")
    if isinstance(feats, torch.Tensor):
        relation.constants.expect(feats)
