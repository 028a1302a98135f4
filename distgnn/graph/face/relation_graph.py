"""RelationGraph: what scripts see of a relation, whose ends may be of two types.

    graph["writes"].srcdata["h"], .dstdata["h"], .edata["w"]       columns of authors, of papers, of arcs
    graph["writes"].update_all(copy_u("h", "m"), sum("m", "h"))    from authors to papers, as DGL's modules ask

Columns at its ends are the columns of the types in the whole graph.
"""

from contextlib import AbstractContextManager
from operator import attrgetter
from typing import Any

import torch

from distgnn.errors import InputError
from distgnn.graph.face.node_store import NodeStore
from distgnn.graph.face.row_graph import GIVES, Count, RowGraph
from distgnn.graph.relation import Relation
from distgnn.interop.dgl import dispatch
from distgnn.interop.dgl.api import ByType, TypeView, changed_within, refuse_ids
from distgnn.rows import RowTensor, rows_of
from distgnn.rows.align import local_in
from distgnn.rows.row_tensor import signature_of

ENDS = {"u": "source", "v": "target", "e": "arcs"}
ALONG: dict[str, dict[str, str]] = {  # operators between two types -> where the rows of their arguments are
    **{name: {"rows": "source", "feats": "source"} for name in ("spmm", "extreme", "gspmm", "spmm_heads")},
    **{name: {"sources": "source", "targets": "target"} for name in ("pair_dots", "pair_scores")},
    **{name: {} for name in ("gsddmm", "to_arcs", "from_arcs", "reduce_arcs", "arc_extreme", "edge_softmax")},
}
OF_ARCS = dict.fromkeys(("weight", "logits", "arc_rows"), "arcs")


class RelationGraph(RowGraph):
    """A `RowGraph` along a relation. Attributes: ends: the columns at "source" and "target", one for both if square."""

    plain: Relation
    ends: dict[str, NodeStore]
    _frames: Any

    # --- columns ----------------------------------------------------------------------------------------------------

    srcdata: Any = property(lambda graph: graph.ends["source"].data, doc="Columns of what arcs leave from.")
    dstdata: Any = property(lambda graph: graph.ends["target"].data, doc="Columns of what arcs arrive at.")

    @property
    def ndata(self) -> Any:
        """Columns of the one type; by type where there are two."""
        return self.dstdata if self.plain.is_square else ByType({one.type_name: one.data for one in self._stores()})

    def _stores(self) -> list[NodeStore]:
        return list({id(one): one for one in self.ends.values()}.values())

    def _store_of(self, kind: Any) -> NodeStore:
        found = [one for one in self._stores() if kind in (None, one.type_name)]
        if len(found) != 1:
            raise KeyError(f"{kind!r} is no type of {self.plain.name}: name one of {self.ntypes}")
        return found[0]

    @property
    def nodes(self) -> TypeView:
        return TypeView(lambda kind: self._store_of(kind).data, lambda kind: ids_of(self._store_of(kind)))

    srcnodes = dstnodes = nodes

    @property
    def edges(self) -> TypeView:
        return TypeView(lambda kind: self.edata, refuse_ids)

    def _frame_of(self, name: str, value: torch.Tensor) -> Any:
        """A tensor that is set is a column of arcs, or nobody's."""
        fits = value.dim() > 0 and len(value) == self.arc_space.num_global
        return self.edata if fits and not (isinstance(value, RowTensor) and value.row_dim != 0) else None

    def local_scope(self) -> AbstractContextManager[None]:
        """Columns set inside are gone outside, as in DGL."""
        dispatch.tell_dgl()
        copies = {id(one): one.scoped() for one in self._stores()}
        ends, state = {role: copies[id(one)] for role, one in self.ends.items()}, vars(self)
        return changed_within((state, "ends", ends), (state, "_frames", self._frames.copy()))

    # --- names and sizes ----------------------------------------------------------------------------------------

    ntypes: Any = property(lambda graph: sorted(one.type_name for one in graph._stores()))
    srctypes: Any = property(lambda graph: [graph.ends["source"].type_name])
    dsttypes: Any = property(lambda graph: [graph.ends["target"].type_name])
    etypes: Any = property(lambda graph: [graph.plain.name[1]])
    canonical_etypes: Any = property(lambda graph: [graph.plain.name])
    is_homogeneous: Any = property(attrgetter("plain.is_square"))
    num_src_nodes: Any = property(lambda graph: Count(graph.plain.source.num_global))
    num_dst_nodes: Any = property(lambda graph: Count(graph.plain.target.num_global))

    def to_canonical_etype(self, etype: Any = None) -> tuple[str, str, str]:
        return self.plain.name

    @property
    def num_nodes(self) -> Count:
        """Vertices of both types, or of one by name."""
        return Count(sum(one.num_nodes for one in self._stores()), lambda kind: self._store_of(kind).num_nodes)

    number_of_nodes, number_of_src_nodes, number_of_dst_nodes = num_nodes, num_src_nodes, num_dst_nodes

    def batch_num_nodes(self, ntype: str | None = None) -> torch.Tensor:
        return torch.tensor([int(self._store_of(ntype).num_nodes)])

    def size(self, dim: int | None = None) -> Any:
        """(sources, targets)."""
        size = (int(self.num_src_nodes), int(self.num_dst_nodes))
        return size if dim is None else size[dim]

    # --- operators ------------------------------------------------------------------------------------------------

    def _in_rows(self, run: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = run.__name__
        if self.plain.is_square or GIVES.get(name) in ("whole", "own"):
            return super()._in_rows(run, args, kwargs)
        if name not in ALONG:
            raise InputError(
                f"dg.ops.{name} needs one type at both ends of arcs, {self.plain.name} has two: use "
                f"{', '.join(ALONG)}, or a layer that takes rows of both ends"
            )
        bound = signature_of(run).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        role, places = given.get("role", "target"), ALONG[name] | OF_ARCS
        if name == "to_arcs":
            places = {"rows": role}
        elif name in ("gspmm", "gsddmm"):
            ends = ("lhs", "u" if role == "target" else "v"), ("rhs", "e")
            places = {side: ENDS[given.get(f"{side}_target", end)] for side, end in ends}
        bound.arguments.update(
            {one: self._part(given[one], place, name) for one, place in places.items() if one in given}
        )
        bound.arguments["graph"] = self.plain
        found = run(*bound.args, **bound.kwargs)
        arcs = GIVES.get(name) == "arcs"
        return rows_of(found, self.arc_space if arcs else self.space_at(role))

    def _part(self, value: Any, place: str, name: str) -> Any:
        """This rank's rows of an argument of vertices or arcs."""
        space = self.arc_space if place == "arcs" else self.space_at(place)
        return local_in(value, space, 0, name) if isinstance(value, torch.Tensor) and value.dim() else value


def ids_of(store: NodeStore) -> RowTensor:
    """The ids of the vertices of a type, int64, as rows."""
    return rows_of(store.vertex_space.index, store.vertex_space)
