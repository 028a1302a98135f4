"""Relation: arcs from vertices of one space to vertices of another, with an exchange plan of their own.

    papers  = Space of one type          writes = Relation(graph, authors, papers, sources, targets, arc_ids)
    authors = Space of another           every operator on arcs takes it: rows of authors come in, rows of papers go out

A DistGraph has the same rows at both ends of its arcs; here they may be of two types, and only rows that an arc of this
rank needs travel. `Joined` spaces make one relation of several.

Legend: O_s, O_t owned source and target rows, S / T source and target halos, A local arcs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch

from distgnn.errors import InputError
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.training_exchanges import TrainingExchanges
from distgnn.interop.dgl.api import DGLInterface, Frame, Frames
from distgnn.kernels.graph.csr import stable_order
from distgnn.ops.aggregation.aggregator import RowScale
from distgnn.ops.aggregation.constant_rows import ConstantRows
from distgnn.ops.aggregation.halo import onto_owners, with_halos
from distgnn.ops.edges.relation_arcs import RelationArcs
from distgnn.ops.remote_rows import RowLookup
from distgnn.partition import ExchangePlan, LocalGraph
from distgnn.partition.core.local_graph import BLOCKS, Csr
from distgnn.rows.space import Joined, Space

SHARED = (  # what all relations of a graph have in common
    *("info", "comm", "rank", "transport", "dtype", "tuning", "algorithm", "schedule", "random_keys", "buffers"),
    *("ledger", "transform_first", "num_ranks", "factor_recorder", "trail", "_settings", "types"),
    *("joined_before", "face_of"),
)


@dataclass(repr=False)
class RelationPart(LocalGraph):
    """One rank's arcs of a relation. `num_owned` counts target rows, `num_sources` source rows."""

    num_sources: int = field(kw_only=True)

    def num_at(self, role: str) -> int:
        return self.num_sources if role == "source" else self.num_owned


class Relation(DistGraph):
    """Arcs from a space to another, as a graph that operators run on. `num_rows` counts O_s, `num_owned` O_t.

    Collective: the constructor.

    Args:
        graph: the DistGraph whose ranks, transport and settings it shares.
        source, target: spaces of vertices of all ranks.
        sources, targets: int64 [A], the places in their spaces of the ends of this rank's arcs.
        arc_ids: int64 [A], ids of arcs over all ranks.
        name: of the relation.

    Notes: relations share `types`, the spaces of all types, and `joined_before`; `typed_graph.py` sets them.

    Attributes: order: int64 [A], which of the given arcs each local arc is.
    """

    types: list[Space]
    arc_space: Space
    joined_before: dict[Any, Any]
    face_of: Callable[[DistGraph, Space], Any]

    def __init__(
        self,
        graph: DistGraph,
        source: Space,
        target: Space,
        sources: np.ndarray,
        targets: np.ndarray,
        arc_ids: np.ndarray,
        name: Any = None,
    ):
        self.__dict__.update({name: vars(graph)[name] for name in SHARED if name in vars(graph)})
        self.plain, self.name = self, name
        self.source, self.target, self.is_square = source, target, source is target
        ends = {"source": RowLookup(source, sources), "target": RowLookup(target, targets)}  # type: ignore[arg-type]
        self._copy_ids = {
            "source": _copy_ids(source, ends["source"], sources),
            "target": _copy_ids(target, ends["target"], targets),
        }
        self.local, self.order = _part(graph, ends, np.asarray(arc_ids))
        self.plan = self.local.plan
        self.exchanges = TrainingExchanges(self, self.exact_exchanges())
        self.num_owned, self.num_rows = target.num_local, source.num_local
        self.row_ids = self.owned_ids = target.places
        self._scales, self._backward_arcs = {}, {}
        self.constants = ConstantRows(self.comm, graph.constants.enabled)
        self.edge_weight = None
        DGLInterface.__init__(self, Frames(Frame(self.num_owned, "vertex"), Frame(len(arc_ids), "arc")), self.num_ranks)

    def space_at(self, role: str) -> Space:
        return self.source if role == "source" else self.target

    def ids_at(self, role: str) -> np.ndarray:
        return self._copy_ids[role]

    @property
    def num_global_nodes(self) -> int:  # type: ignore[override]
        return self.target.num_global

    # --- degrees, in this relation ------------------------------------------------------------------------------

    @cached_property
    def _degrees(self) -> dict[str, np.ndarray]:
        """Arcs at each owned vertex, float64 [O_s] and [O_t]. Collective: the first time."""
        found = {}
        for role in ("source", "target"):
            here = np.bincount(self.local_arcs.ends[role], minlength=len(self._copy_ids[role])).astype(np.float64)
            found[role] = onto_owners(self, here[:, None], role)[:, 0]
        return found

    def in_degrees(self) -> torch.Tensor:
        """Arcs at targets, int64 [O_t]. Collective: the first time."""
        return torch.from_numpy(self._degrees["target"].astype(np.int64))

    def out_degrees(self) -> torch.Tensor:
        """Arcs at sources, int64 [O_s]. Collective: the first time."""
        return torch.from_numpy(self._degrees["source"].astype(np.int64))

    @cached_property
    def _has_zero_in_degree(self) -> bool:
        here = int((self._degrees["target"] == 0).any())
        return bool(self.comm.allreduce(here))

    def _scale(self, kind: str, factors: Callable[[np.ndarray], np.ndarray]) -> RowScale:
        """Of targets ("in") or sources ("out"); where both are one type, wherever a vertex is met."""
        role = "target" if kind == "in" else "source"
        column = np.ascontiguousarray(factors(self._degrees[role])[:, None])
        halos = {
            one: with_halos(self, column, one)[len(column) :, 0].copy() if self.is_square or one == role else column[:0]
            for one in ("source", "target")
        }
        return RowScale(column[:, 0].copy(), halos["source"], halos["target"])

    def joined(self, relations: "list[Relation]", shifts: list[tuple[int, int]], of_all: bool = True) -> "Relation":
        """Several relations as one, whose ends are counted from these offsets. Collective: the first time.

        Args: of_all: where offsets are of all types in order, the ends are rows of all types.
        """
        key = "joined", tuple(map(id, relations)), tuple(shifts), of_all
        if key not in self.joined_before:
            ends = []
            for role, number in (("source", 0), ("target", 1)):
                pieces = {shift[number]: one.space_at(role) for one, shift in zip(relations, shifts, strict=True)}
                ids = [one.ids_at(role)[one.local_arcs.ends[role]] for one in relations]
                places = np.concatenate([of + shift[number] for of, shift in zip(ids, shifts, strict=True)])
                ends.append((_joined_space(pieces, self.types if of_all else []), places))
            spaces, places = zip(*ends, strict=True)
            first = np.cumsum([0, *(one.arc_space.num_global for one in relations)])
            arc_ids = np.concatenate([one.arc_space.places + at for one, at in zip(relations, first, strict=False)])
            made = Relation(self, spaces[0], spaces[1], places[0], places[1], arc_ids)
            self.face_of(made, spaces[1])
            self.joined_before[key] = made
        found: Relation = self.joined_before[key]
        return found

    def arcs_of(self, relations: "list[Relation]", means: list[bool], kinds: list[Space]) -> RelationArcs:
        """The arcs of several relations between types whose spaces are `kinds`. Collective: the first time."""
        key = "arcs", tuple(map(id, relations)), tuple(means), tuple(map(id, kinds))
        if key not in self.joined_before:
            self.joined_before[key] = RelationArcs.of_types(relations, means, kinds)
        found: RelationArcs = self.joined_before[key]
        return found

    def __repr__(self) -> str:
        return (
            f"Relation({self.source.num_global} {self.source.kind} to {self.target.num_global} {self.target.kind}, "
            f"{self.num_edges()} arcs on rank {self.rank} of {self.num_ranks})"
        )


def _copy_ids(space: Space, lookup: RowLookup, places: np.ndarray) -> np.ndarray:
    """Places of the copies that a look-up's numbers count: owned rows, then borrowed ones."""
    found = np.empty(space.num_local + lookup.num_borrowed, np.int64)
    found[: space.num_local] = space.places
    found[lookup.places.numpy()] = places
    return found


def _part(graph: DistGraph, ends: dict[str, RowLookup], arc_ids: np.ndarray) -> tuple[RelationPart, np.ndarray]:
    """Four CSR blocks of arcs whose ends were looked up, and which of the given arcs each is."""
    source, target = ends["source"], ends["target"]
    num_targets, borrowed = target.num_owned, target.num_borrowed
    halo_sources = source.places.numpy() >= source.num_owned
    halo_targets = target.places.numpy() >= num_targets
    # Rows of all blocks one after the other, as in partition/core/local_graph.py
    keys = target.places.numpy() + np.where(halo_targets, num_targets, 0)
    keys = keys + np.where(halo_sources, np.where(halo_targets, borrowed, num_targets), 0)
    bounds = np.cumsum([0, num_targets, num_targets, borrowed, borrowed])
    indptr, order = stable_order(keys.astype(np.int32), int(bounds[-1]))
    columns = (source.places.numpy() - np.where(halo_sources, source.num_owned, 0))[order].astype(np.int32)
    blocks = {}
    for name, first, last in zip(BLOCKS, bounds[:-1], bounds[1:], strict=True):
        offsets = indptr[first : last + 1]
        blocks[name] = Csr(offsets - offsets[0], columns[offsets[0] : offsets[-1]])
    there, back, nothing = source.exchange.plan, target.exchange.plan, np.empty(0, np.int32)
    plan = ExchangePlan(
        *(there.num_parts, there.part_id, num_targets, there.broadcast_indptr, there.broadcast_rows),
        *(there.source_indptr, back.broadcast_indptr, back.broadcast_rows, back.source_indptr),
    )
    fields: dict[str, Any] = {"in_degrees": nothing, "out_degrees": nothing, "global_ids": nothing, "graph": graph.info}
    fields |= {"num_nodes": 0, "num_interior": 0, "halo_counts": np.zeros((there.num_parts, 3), np.int64)}
    fields |= {"part_id": there.part_id, "num_parts": there.num_parts, "num_owned": num_targets}
    fields |= {"blocks": blocks, "arc_ids": arc_ids[order], "plan": plan, "num_sources": source.num_owned}
    return RelationPart(**fields, symmetric=False), order


def _joined_space(pieces: dict[int, Space], types: list[Space]) -> Space:
    """The space in which each piece begins at its offset: of all types in order, or of these one after the other."""
    starts = np.cumsum([0, *(one.num_global for one in types)]).tolist()
    of_types = list(zip(starts, types, strict=False))
    in_order = sorted(pieces.items(), key=lambda one: one[0])
    if all(any(start == at and one is space for at, one in of_types) for start, space in in_order):
        in_order = of_types
    spaces = [space for _, space in in_order]
    if [start for start, _ in in_order] != np.cumsum([0, *(one.num_global for one in spaces)])[:-1].tolist():
        raise InputError(
            "edge_index of several relations can be joined where the offsets of their vertices follow one another, as "
            "rows that torch.cat joins do"
        )
    return spaces[0] if len(spaces) == 1 else Joined(spaces)
