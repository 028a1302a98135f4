"""DGLTypes: the manners of a DGLGraph with several types, on the stores of a `TypedGraph`.

    graph.nodes["paper"].data["h"]      graph.edges["writes"].data["w"]      graph["writes"]: a relation, as a graph
    graph.update_all(…, etype="writes") graph.multi_update_all({…}, "sum")   dgl.to_homogeneous(graph, ndata=["h"])

Types and relations stand in DGL's order, sorted by name, whatever order the source has.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch

from distgnn import ops
from distgnn.errors import InputError
from distgnn.graph.face.node_store import NodeStore
from distgnn.graph.face.relation_graph import ids_of
from distgnn.interop.dgl import dispatch
from distgnn.interop.dgl.api import Batch, ByType, TypeView, changed_within, reduced, refuse_ids
from distgnn.rows import Space, rows_of
from distgnn.rows.align import local_in

Key = tuple[str, str, str]
CROSS: dict[str, Callable[[list[Any]], Any]] = {  # of [N, …] of each relation
    "sum": lambda rows: torch.stack(rows).sum(0),
    "mean": lambda rows: torch.stack(rows).mean(0),
    "max": lambda rows: torch.stack(rows).max(0)[0],
    "min": lambda rows: torch.stack(rows).min(0)[0],
    "stack": lambda rows: torch.stack(rows, 1),
}
EMPTY = {"max": -torch.inf, "min": torch.inf}  # of vertices without arcs in a relation that has some, in DGL
TYPE, ID = "_TYPE", "_ID"  # dgl.NTYPE and dgl.ETYPE, dgl.NID and dgl.EID


class DGLTypes:
    """A base class of `TypedGraph`, which has the stores of types and relations."""

    plain: Any
    nodes_of: dict[str, NodeStore]
    relations_of: dict[Key, Any]
    face_of_all: Any

    is_block = is_homogeneous = False
    device: torch.device = torch.device("cpu")
    idtype: torch.dtype = torch.int64
    batch_size = 1

    # --- names ------------------------------------------------------------------------------------------------------

    ntypes: Any = property(lambda graph: sorted(graph.nodes_of))
    canonical_etypes: Any = property(lambda graph: sorted(graph.relations_of))
    etypes: Any = property(lambda graph: [name for _, name, _ in graph.canonical_etypes])
    srctypes = dsttypes = ntypes

    def to_canonical_etype(self, etype: Any = None) -> Key:
        """The three names of a relation. Raises: KeyError for one that is not there, or a name of several."""
        if etype is None and len(self.relations_of) > 1:
            raise InputError(f"name the relation, etype=…: the graph has {self.canonical_etypes}")
        wanted = etype[1] if isinstance(etype, tuple) and etype[0] == etype[2] == slice(None) else etype
        found = [key for key in self.canonical_etypes if wanted in (None, key, key[1])]
        if len(found) != 1:
            several = f"{etype!r} stands for {found}: give three names" if found else f"there is no relation {etype!r}"
            raise KeyError(f"{several}; the graph has {self.canonical_etypes}")
        return found[0]

    def get_ntype_id(self, ntype: str) -> int:
        return self.ntypes.index(ntype)

    get_ntype_id_from_src = get_ntype_id_from_dst = get_ntype_id

    def get_etype_id(self, etype: Any) -> int:
        return self.canonical_etypes.index(self.to_canonical_etype(etype))

    def relation(self, etype: Any = None) -> Any:
        """A relation, as a graph."""
        return self.relations_of[self.to_canonical_etype(etype)]

    # --- columns ----------------------------------------------------------------------------------------------------

    def _store_of(self, ntype: Any) -> NodeStore:
        if ntype is None and len(self.nodes_of) > 1:
            raise InputError(f"name the type: the graph has {self.ntypes}")
        if ntype is not None and ntype not in self.nodes_of:
            raise KeyError(f"there is no type {ntype!r}; the graph has {self.ntypes}")
        return next(iter(self.nodes_of.values())) if ntype is None else self.nodes_of[ntype]

    @property
    def nodes(self) -> TypeView:
        """`nodes[type].data` has the columns of a type; `nodes(type)` its ids, as rows."""
        dispatch.tell_dgl()
        return TypeView(lambda kind: self._store_of(kind).data, lambda kind: ids_of(self._store_of(kind)))

    srcnodes = dstnodes = nodes

    @property
    def edges(self) -> TypeView:
        """`edges[relation].data` has the columns of a relation."""
        return TypeView(lambda etype: self.relation(etype).edata, refuse_ids)

    @property
    def ndata(self) -> Any:
        frames = {name: self.nodes_of[name].data for name in self.ntypes}
        return ByType(frames) if len(frames) > 1 else next(iter(frames.values()))

    srcdata = dstdata = ndata

    @property
    def edata(self) -> Any:
        frames = {key: self.relations_of[key].edata for key in self.canonical_etypes}
        return ByType(frames, self.to_canonical_etype) if len(frames) > 1 else next(iter(frames.values()))

    all_edges = staticmethod(refuse_ids)

    def local_scope(self) -> AbstractContextManager[None]:
        """Columns set inside are gone outside, as in DGL."""
        dispatch.tell_dgl()
        changes = [(vars(one), "frame", one.frame.copy()) for one in self.nodes_of.values()]
        changes += [(vars(one), "_frames", one._frames.copy()) for one in self.relations_of.values()]
        return changed_within(*changes)

    # --- sizes ------------------------------------------------------------------------------------------------------

    def in_degrees(self, v: Any = "__ALL__", etype: Any = None) -> Any:
        """Arcs of a relation at its targets, int64."""
        return self.relation(etype).in_degrees(v)

    def out_degrees(self, u: Any = "__ALL__", etype: Any = None) -> Any:
        """Arcs of a relation at its sources, int64."""
        return self.relation(etype).out_degrees(u)

    def batch_num_nodes(self, ntype: str | None = None) -> torch.Tensor:
        return torch.tensor([int(self._store_of(ntype).num_nodes)])

    def batch_num_edges(self, etype: Any = None) -> torch.Tensor:
        return torch.tensor([int(self.relation(etype).num_edges)])

    # --- message passing: collective, and again in the backward pass ----------------------------------------------

    def update_all(
        self, message_func: Any, reduce_func: Any, apply_node_func: Callable[..., Any] | None = None, etype: Any = None
    ) -> None:
        """DGL's message passing along a relation; without `etype`, along all of them, which are reduced as arcs are."""
        if etype is not None or len(self.relations_of) == 1:
            return self.relation(etype).update_all(message_func, reduce_func, apply_node_func)
        reducer = getattr(reduce_func, "name", None)
        if reducer not in ("sum", "max", "min") or not hasattr(message_func, "out_field"):
            raise InputError(
                "update_all of several relations takes DGL's functions and sum, max or min: name one, etype=…, or use "
                "multi_update_all"
            )
        every = dict.fromkeys(self.canonical_etypes, (message_func, reduce_func))
        return self.multi_update_all(every, reducer, apply_node_func)

    def multi_update_all(
        self, etype_dict: Mapping[Any, Any], cross_reducer: Any, apply_node_func: Callable[..., Any] | None = None
    ) -> None:
        """Message passing along relations; what arrives at a type from several is reduced once more."""
        found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        reducer = None
        for etype, functions in etype_dict.items():
            key = self.to_canonical_etype(etype)
            message, reduce, *then = functions
            face, reducer = self.relations_of[key], getattr(reduce, "name", None)
            name, rows = reduced(face, message, reduce)
            if reducer in EMPTY and face.num_edges > 0:
                alone = (face.in_degrees() == 0).view(-1, *[1] * (rows.dim() - 1))
                rows = rows.masked_fill(alone, EMPTY[reducer])
            made = {name: rows}
            if then and then[0] is not None:
                made = then[0](Batch(int(face.num_dst_nodes), {**face.dstdata, **made}))
            found.setdefault(key[2], []).append((self.get_etype_id(key), made))
        for kind, of_relations in found.items():
            out = _across(of_relations, cross_reducer)
            if reducer in EMPTY:
                out = {name: rows.masked_fill(rows.isinf(), 0.0) for name, rows in out.items()}
            self.nodes_of[kind].data.update(out)
            if apply_node_func is not None:
                self.apply_nodes(apply_node_func, ntype=kind)

    def apply_edges(self, func: Any, edges: Any = "__ALL__", etype: Any = None) -> None:
        """DGL's function on edges of a relation; a built-in one, without `etype`, on all."""
        every = etype is None and hasattr(func, "out_field")
        for key in self.canonical_etypes if every else [self.to_canonical_etype(etype)]:
            self.relations_of[key].apply_edges(func, edges)

    def apply_nodes(self, func: Callable[..., Any], v: Any = "__ALL__", ntype: Any = None) -> None:
        """DGL's function on nodes of a type."""
        if not isinstance(v, str):
            raise InputError("apply_nodes on some vertices cannot run distributed: leave v out and mask the result")
        store = self._store_of(ntype)
        store.data.update(func(Batch(int(store.num_nodes), store.data)))

    @property
    def _graph(self) -> Any:
        """What DGL's own operators take for the graph's index."""
        return dispatch.index_of(self if len(self.relations_of) > 1 else self.relation())

    def softmax_of_relations(self, logits: tuple[Any, ...], norm_by: str) -> tuple[Any, ...]:
        """Softmax over the arcs of all relations at each vertex, of logits by relation in DGL's order."""
        faces = [self.relations_of[key] for key in self.canonical_etypes]
        sizes = [one.vertex_space.num_global for one in self.nodes_of.values()]
        starts = dict(zip(self.nodes_of, np.cumsum([0, *sizes]).tolist(), strict=False))  # ids count all types
        shifts = [(starts[source], starts[target]) for source, _, target in self.canonical_etypes]
        joined = faces[0].plain.joined([one.plain for one in faces], shifts)
        order = torch.from_numpy(joined.order)

        def run(*given: Any) -> tuple[Any, ...]:
            pairs = list(zip(given, faces, strict=True))
            mine = [local_in(rows, face.arc_space, 0, "edge_softmax") for rows, face in pairs]
            found = ops.edge_softmax(joined, torch.cat(mine)[order], norm_by)[order.argsort()]
            pieces = found.split([len(one) for one in mine])
            return tuple(rows_of(rows, face.arc_space) for rows, (_, face) in zip(pieces, pairs, strict=True))

        trail = vars(self.plain).get("trail")
        found: tuple[Any, ...] = run(*logits) if trail is None else trail.run("edge_softmax", run, logits, {})
        return found

    # --- one vertex set ---------------------------------------------------------------------------------------------

    def homogeneous(
        self, ndata: Any = None, edata: Any = None, store_type: bool = True, return_count: bool = False
    ) -> Any:
        """What `dgl.to_homogeneous` gives: types one after the other, in DGL's order. Collective: yes."""
        made = self.face_of_all.local_var()
        state, stores = made.__dict__, [self.nodes_of[name] for name in self.ntypes]
        relations = [self.relations_of[key] for key in self.canonical_etypes]
        sizes = {name: one.vertex_space.num_global for name, one in self.nodes_of.items()}
        kinds = np.asarray(self.plain.local.node_types)
        state["vertex_space"] = _reordered(made.vertex_space, sizes, self.ntypes, kinds)
        counts = {key: one.arc_space.num_global for key, one in self.relations_of.items()}
        kinds = made.plain.edata["etype"].numpy()
        state["arc_space"] = _reordered(made.arc_space, counts, self.canonical_etypes, kinds)
        for name in ndata or ():
            made.ndata[name] = torch.cat([one.data[name] for one in stores])
        for name in edata or ():
            made.edata[name] = torch.cat([one.edata[name] for one in relations])
        for frame, spaces in (
            (made.ndata, [one.vertex_space for one in stores]),
            (made.edata, [one.arc_space for one in relations]),
        ):
            frame[ID] = torch.cat([rows_of(one.index, one) for one in spaces])
            if store_type:
                numbers = [torch.full((one.num_local,), number) for number, one in enumerate(spaces)]
                frame[TYPE] = torch.cat([rows_of(of, one) for of, one in zip(numbers, spaces, strict=True)])
        if not return_count:
            return made
        return made, [int(one.num_nodes) for one in stores], [int(one.num_edges) for one in relations]


def _across(of_relations: list[tuple[int, dict[str, Any]]], reducer: str | Callable[..., Any]) -> dict[str, Any]:
    """Rows by name from several relations as one, as `multi_update_all` has it."""
    if len(of_relations) == 1 and reducer != "stack":
        return of_relations[0][1]
    reduce = reducer if callable(reducer) else CROSS.get(reducer)
    if reduce is None:
        raise InputError(f"unknown cross_reducer {reducer!r}: use sum, mean, max, min, stack or a function")
    if reducer == "stack":
        of_relations = sorted(of_relations, key=lambda one: one[0])
    made = [frame for _, frame in of_relations]
    found = {}
    for name in dict.fromkeys(name for frame in made for name in frame):
        rows = [frame[name] for frame in made if name in frame]
        alone = len(rows) == 1 and not callable(reducer) and reducer != "stack"
        found[name] = rows[0] if alone else reduce(rows)
    return found


def _reordered(space: Space, sizes: Mapping[Any, int], after: list[Any], groups: np.ndarray) -> Space:
    """The rows of a space whose groups stand in another order. Args: sizes: as they stand; groups: of each row here."""
    if list(sizes) == after:
        return space
    moved = dict(zip(after, np.cumsum([0, *(sizes[one] for one in after)]), strict=False))
    starts = np.cumsum([0, *sizes.values()])
    shift = np.array([moved[one] - start for one, start in zip(sizes, starts, strict=False)])
    options: dict[str, Any] = {"num_counted": space.num_counted, "draw_ids": lambda: space.draw_ids, "kind": space.kind}
    return Space(space.graph, space.num_local, space.num_global, lambda: space.places + shift[groups], **options)
