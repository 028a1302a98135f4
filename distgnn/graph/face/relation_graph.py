"""RelationGraph: what scripts see of a relation, whose ends may be of two types.

    graph["writes"].srcdata["h"], .dstdata["h"], .edata["w"]       columns of authors, of papers, of arcs
    graph["writes"].update_all(copy_u("h", "m"), sum("m", "h"))    from authors to papers, as DGL's modules ask

Columns at its ends are the columns of the types in the whole graph.
"""

import functools
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from distgnn.errors import InputError
from distgnn.graph.face.node_store import NodeStore
from distgnn.graph.face.row_graph import GIVES, Count, RowFrame, RowGraph
from distgnn.graph.relation import Relation
from distgnn.interop.dgl import dispatch
from distgnn.interop.dgl.api import refuse_ids
from distgnn.interop.dgl.frame import ByType, TypeView
from distgnn.rows import RowTensor, rows_of
from distgnn.rows.align import in_space, part_of
from distgnn.rows.row_tensor import local_of

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

    @property
    def srcdata(self) -> RowFrame:
        """Columns of the vertices that arcs leave from."""
        return self.ends["source"].data

    @property
    def dstdata(self) -> RowFrame:
        """Columns of the vertices that arcs arrive at."""
        return self.ends["target"].data

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

    @contextmanager
    def local_scope(self) -> Iterator[None]:
        """Columns set inside are gone outside, as in DGL."""
        dispatch.tell_dgl()
        outside = {"ends": self.ends, "_frames": self._frames}
        copies = {id(one): one.scoped() for one in self._stores()}
        ends = {role: copies[id(one)] for role, one in self.ends.items()}
        self.__dict__.update(ends=ends, _frames=self._frames.copy())
        try:
            yield
        finally:
            self.__dict__.update(outside)

    # --- names and sizes ----------------------------------------------------------------------------------------

    @property
    def ntypes(self) -> list[str]:
        return sorted(one.type_name for one in self._stores())

    @property
    def srctypes(self) -> list[str]:
        return [self.ends["source"].type_name]

    @property
    def dsttypes(self) -> list[str]:
        return [self.ends["target"].type_name]

    @property
    def etypes(self) -> list[str]:
        return [self.plain.name[1]]

    @property
    def canonical_etypes(self) -> list[tuple[str, str, str]]:
        return [self.plain.name]

    def to_canonical_etype(self, etype: Any = None) -> tuple[str, str, str]:
        return self.plain.name

    @property
    def is_homogeneous(self) -> bool:
        return self.plain.is_square

    @property
    def num_src_nodes(self) -> Count:
        return Count(self.plain.source.num_global)

    @property
    def num_dst_nodes(self) -> Count:
        return Count(self.plain.target.num_global)

    @property
    def num_nodes(self) -> Count:
        """Vertices of both types, or of one by name."""
        return Count.of(sum(one.num_nodes for one in self._stores()), lambda kind: self._store_of(kind).num_nodes)

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
        bound = _signature(run).bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        role, places = given.get("role", "target"), ALONG[name] | OF_ARCS
        if name == "to_arcs":
            places = {"rows": role}
        elif name in ("gspmm", "gsddmm"):
            places = {side: ENDS[given.get(f"{side}_target", end)] for side, end in (("lhs", "u"), ("rhs", "e"))}
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
        if isinstance(value, RowTensor):
            return in_space(value, space).inner
        if isinstance(value, torch.Tensor) and value.dim():
            return part_of(local_of(value), space, 0, name)
        return value


def ids_of(store: NodeStore) -> RowTensor:
    """The ids of the vertices of a type, int64, as rows."""
    return rows_of(store.vertex_space.index, store.vertex_space)


_signature = functools.cache(inspect.signature)
