"""ArcSet: which arcs an `edge_index` stands for, and what can be computed over them on all ranks.

PyG's layers remove self-loops, add one per vertex, and select arcs. All of that is a list of places in

    [local arcs of this rank | a loop at every owned vertex | …]

Legend: O owned rows, A local arcs, M arcs of the set (loops included), D width. Roles: "source", "target".

    spread(rows [O, …], role)   -> [M, …]    the row at one end of each arc
    sum(arc_rows [M, …], role)  -> [O, …]    its transpose; so are mean, extreme, softmax, degree: over all ranks
"""

from functools import cached_property, partial
from operator import attrgetter
from typing import Any

import numpy as np
import torch

from distgnn import ops
from distgnn.comm import extreme_over_ranks, sum_over_ranks
from distgnn.errors import InputError
from distgnn.ops.aggregation.extreme import tied_arc_extreme, tied_extreme
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.edges.arc_blocks import ArcBlocks, whole_rows
from distgnn.ops.edges.on_arcs import (
    check_rows,
    check_update,
    extreme_blocks,
    grouped,
    in_blocks,
    summed,
    summed_blocks,
    to_places,
)
from distgnn.ops.edges.softmax import edge_softmax_with_own, is_wide, softmax_in_blocks
from distgnn.ops.function import constants
from distgnn.ops.sums import min_over_ranks
from distgnn.rows.space import Joined, MaskedRows, Space, checked_ids, digest_of

LOOP_IDS = 1 << 48
TWO_LOOPS = (
    "a maximum or a softmax over arcs with two self-loops of each vertex cannot run distributed: remove the first ones "
    "(remove_self_loops)"
)


class ArcSet:
    """Some arcs of a graph, in an order.

    Args:
        graph: the DistGraph.
        positions: places in [local arcs | loops], each at most once, int64 [M]; None: all of them.
        loops: how many loops every vertex has.
        order: what sorts the arcs of all ranks as a script has them, where ids chose them, int64 [M].
    """

    def __init__(
        self, graph: Any, positions: torch.Tensor | None = None, loops: int = 0, order: np.ndarray | None = None
    ):
        check_update(graph)
        self.graph, self.positions, self.loops, self.order = graph, positions, loops, order
        self._degrees: dict[str, torch.Tensor] = {}
        self._groups: dict[str, Any] = {}

    @property
    def base_size(self) -> int:
        """Places: A, and O for each loop of a vertex."""
        return self.graph.num_edges() + (self.graph.num_owned * self.loops if self.loops else 0)

    @cached_property
    def num_arcs(self) -> int:
        return self.base_size if self.positions is None else len(self.positions)

    @cached_property
    def space(self) -> Space:
        """The arcs as rows of all ranks."""
        return self.graph.arc_space if self.is_whole else ArcSpace(self)

    num_all: Any = property(attrgetter("space.num_global"), doc="Arcs of all ranks. Collective: the first time.")
    trail: Any = property(lambda arcs: vars(arcs.graph).get("trail"), doc="What keeps the origin of rows, or None.")
    is_whole: Any = property(
        lambda arcs: arcs.positions is None and not arcs.loops,
        doc="All arcs of the graph, in order, and nothing else?",
    )
    is_square: Any = property(
        lambda arcs: arcs.graph.space_at("source") is arcs.graph.space_at("target"),
        doc="Are the vertices at both ends of one type?",
    )

    def num_vertices(self, role: str) -> int:
        """Vertices of all ranks at one end."""
        return int(self.graph.space_at(role).num_global)

    # --- other sets ------------------------------------------------------------------------------------------

    def select(self, mask: torch.Tensor) -> "ArcSet":
        """The arcs where a mask [M] is true."""
        if len(mask) != self.num_arcs:
            raise InputError(f"a mask of {len(mask)} values for {self.num_arcs} arcs: give one value per arc")
        index = mask.nonzero().view(-1)
        positions = index if self.positions is None else self.positions[index]
        order = None if self.order is None else self.order[index.numpy()]
        return ArcSet(self.graph, positions, self.loops, order)

    def by_ids(self, ids: torch.Tensor) -> "ArcSet":
        """The arcs at some places of all ranks' arcs, in the order of these places, which all ranks have. Collective.

        Raises: IndexError, as torch; InputError for a place that is there twice.
        """
        wanted = checked_ids(ids.numpy(), self.num_all)
        digest_of(self.space, wanted)
        order = np.full(self.num_all, -1)
        order[wanted] = np.arange(len(wanted))
        if np.count_nonzero(order >= 0) != len(wanted):
            raise InputError("arcs cannot be selected twice: give each place once, or a mask")
        order = order[self.space.places]
        chosen = self.select(torch.from_numpy(order >= 0))
        chosen.order = order[order >= 0]
        return chosen

    def with_loops(self) -> "ArcSet":
        """The same arcs and behind them a loop at every vertex. Collective, where loops were there."""
        self.check_square("self-loops are added")
        if self.positions is None:
            return ArcSet(self.graph, None, self.loops + 1)
        count, base = self.loops, self.base_size
        if count and min_over_ranks(self.graph.comm, int((self.positions < self.graph.num_edges()).all())):
            count, base = 0, self.graph.num_edges()  # they were removed
        loops = torch.arange(self.graph.num_owned) + base
        order = None if self.order is None else np.concatenate([self.order, self.graph.owned_ids + self.num_all])
        return ArcSet(self.graph, torch.cat([self.positions, loops]), count + 1, order)

    def check_square(self, what: str, instead: str = "give the layer add_self_loops=False") -> None:
        """Raise InputError where the two ends are vertices of two types."""
        if not self.is_square:
            ends = (self.graph.space_at(role).kind for role in ("source", "target"))
            raise InputError(f"{what}, and arcs lead from {next(ends)} to {next(ends)}: {instead}")

    def same(self, other: "ArcSet") -> bool:
        """The same arcs in the same order on every rank? Collective where both are lists."""
        if self is other or self.graph is not other.graph or self.order is not None or other.order is not None:
            return self is other
        if self.positions is None or other.positions is None:
            return self.positions is other.positions and self.loops == other.loops
        return bool(min_over_ranks(self.graph.comm, int(torch.equal(self.positions, other.positions))))

    # --- rows at arcs ----------------------------------------------------------------------------------------

    def spread(self, rows: torch.Tensor, role: str) -> torch.Tensor:
        """The row at one end of each arc: [O, …] to [M, …]. Collective: yes, and again in the backward pass."""
        if self.is_whole:
            return ops.to_arcs(self.graph, rows, role)
        if in_blocks(self.graph) or not rows.is_floating_point():
            return self._chosen(torch.cat([ops.to_arcs(self.graph, rows, role), *[rows] * self.loops]))
        return to_places(self.graph, rows, role, self.copies(role), partial(self._added, role))

    def _added(self, role: str, arc_rows: torch.Tensor) -> torch.Tensor:
        """The transpose of `spread`, of rows [M, D]: [O, D]."""
        arcs, own = self.split(arc_rows)
        total = torch.from_numpy(summed(self.graph, as_array(arcs), role))
        return total if own is None else total.add_(own.sum(0))

    def _chosen(self, every: Any) -> Any:
        """Rows of [local arcs | loops] where the set has one."""
        if self.positions is None:
            return every
        return every[self.positions.numpy() if isinstance(every, np.ndarray) else self.positions]

    def ids(self, role: str) -> torch.Tensor:
        """The global id of the vertex at one end of each arc, int64 [M]."""
        ids, ends = self.graph.ids_at(role), self.graph.local_arcs.ends[role]
        loops = [ids[: self.graph.num_at(role)]] * self.loops
        return self._chosen(torch.from_numpy(np.concatenate([ids[ends], *loops])))

    def extreme_id(self, which: str, roles: tuple[str, ...]) -> torch.Tensor:
        """The largest or smallest id of a vertex with an arc, of all ranks. Collective: yes."""
        none = -1 if which == "max" else max(map(self.num_vertices, roles))
        ends = torch.cat([self.ids(role) for role in roles]).numpy()
        here = ends.max(initial=none) if which == "max" else ends.min(initial=none)
        return torch.from_numpy(extreme_over_ranks(self.graph.comm, np.array([here]), which))[0]

    def mask_ids(self) -> np.ndarray:
        """What keys random masks of arcs, int64 [M]: global arc ids, for loops ids of vertices far behind them."""
        ids = np.asarray(self.graph.local.arc_ids, dtype=np.int64)
        loops = [self.graph.owned_ids + LOOP_IDS * (1 + number) for number in range(self.loops)]
        return self._chosen(np.concatenate([ids, *loops]))

    def split(self, arc_rows: torch.Tensor, fill: float = 0.0) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Rows [M, …] as those of all local arcs [A, …] (`fill` where one is not in the set) and of loops [L, O, …]."""
        if len(arc_rows) != self.num_arcs:
            raise InputError(f"{len(arc_rows)} rows for {self.num_arcs} arcs: give one row per arc of edge_index")
        arc_rows = whole_rows(arc_rows)
        if self.positions is not None:
            every = arc_rows.new_full((self.base_size, *arc_rows.shape[1:]), fill)
            arc_rows = every.index_copy_(0, self.positions, arc_rows)
        if not self.loops:
            return arc_rows, None
        arcs, loops = arc_rows.split([self.graph.num_edges(), self.graph.num_owned * self.loops])
        return arcs, loops.view(self.loops, self.graph.num_owned, *loops.shape[1:])

    def group(self, role: str) -> Any:
        """The arcs of the set by the copy at one end, loops behind the others: for rows that are made in blocks."""
        if self.is_whole:
            return self.graph.local_arcs.grouped[role]
        if role not in self._groups:
            local, ends = self.graph.local, self.copies(role)
            halos = local.num_source_halos if role == "source" else local.num_target_halos
            by_id = np.argsort(self.mask_ids(), kind="stable")
            self._groups[role] = grouped(ends, ends, by_id, self.graph.num_at(role) + halos)
        return self._groups[role]

    def copies(self, role: str) -> np.ndarray:
        """The copy at one end of each arc, [M]."""
        ends = self.graph.local_arcs.ends[role]
        loops = [np.arange(self.graph.num_owned, dtype=ends.dtype)] * self.loops
        return self._chosen(np.concatenate([ends, *loops]))

    # --- reductions: collective, and again in the backward pass -----------------------------------------------

    def degree(self, role: str) -> torch.Tensor:
        """Arcs of the set at each vertex, int64 [O]."""
        if role not in self._degrees:
            with constants():
                if self.positions is not None:
                    counted = self.sum(torch.ones(self.num_arcs, dtype=torch.float64), role).long()
                else:
                    counted = (self.graph.in_degrees() if role == "target" else self.graph.out_degrees()) + self.loops
            self._degrees[role] = counted
        return self._degrees[role]

    def sum(self, arc_rows: torch.Tensor, role: str = "target") -> torch.Tensor:
        if not arc_rows.is_floating_point():  # as float64, which holds integers up to 2 ** 53
            return self.sum(arc_rows.double(), role).to(arc_rows.dtype)
        if isinstance(arc_rows, ArcBlocks):
            return summed_blocks(self.graph, self.group(role), arc_rows, role)
        arcs, own = self.split(arc_rows)
        total = ops.from_arcs(self.graph, arcs, role)
        return total if own is None else total + own.sum(0)

    def mean(self, arc_rows: torch.Tensor, role: str = "target") -> torch.Tensor:
        """Sum over number; 0 where there is no arc."""
        total = self.sum(arc_rows, role)
        return self.divided(total, role, in_place=total.is_floating_point() and not total.requires_grad)

    def divided(self, rows: torch.Tensor, role: str, in_place: bool = False) -> torch.Tensor:
        counts = self.degree(role).clamp(min=1).to(rows.dtype).view(-1, *[1] * (rows.dim() - 1))
        return rows.div_(counts) if in_place else rows / counts

    def extreme(self, arc_rows: torch.Tensor, reduce: str, role: str = "target") -> torch.Tensor:
        """Maximum ("max") or minimum ("min"); 0 where there is no arc; equal winners share the gradient."""
        if role != "target":
            raise InputError(f"{reduce} over the out-arcs of a vertex cannot run distributed: only sum and mean can")
        if not arc_rows.is_floating_point():
            return self.extreme(arc_rows.double(), reduce).to(arc_rows.dtype)
        if isinstance(arc_rows, ArcBlocks) and self.loops <= 1:
            found, finite = extreme_blocks(self.graph, self.group(role), arc_rows, reduce)
            return self._with_odd(found, arc_rows, reduce, self.sum, finite)
        arcs, own = self.split(arc_rows, float("-inf" if reduce == "max" else "inf"))
        if self.loops > 1:
            raise InputError(TWO_LOOPS)
        found = tied_arc_extreme(self.graph, arcs, reduce, None if own is None else own[0])
        return self._with_odd(found, arc_rows, reduce, self.sum)

    def _with_odd(
        self, found: torch.Tensor, rows: torch.Tensor, reduce: str, count: Any, finite: bool | None = None
    ) -> torch.Tensor:
        """NaN and infinite results, which kernels leave out as DGL does. Collective: yes. finite: are all rows?"""
        values = rows.detach()
        if finite is None:  # one odd number makes a sum odd; a sum may overflow
            finite = bool(values.sum().isfinite()) or bool(values.isfinite().all())
        if min_over_ranks(self.graph.comm, int(finite)):
            return found
        best = torch.inf if reduce == "max" else -torch.inf
        with constants():
            arcs = self.degree("target").clamp(min=1).view(-1, *[1] * (rows.dim() - 1))
            kinds = ((values == -best, arcs), (values == best, 1), (values.isnan(), 1))
            met = [count(kind.to(rows.dtype)) >= least for kind, least in kinds]
        for where, value in zip(met, (-best, best, torch.nan), strict=True):
            found = found.masked_fill(where, value)
        return found

    def softmax(self, logits: torch.Tensor, role: str = "target") -> torch.Tensor:
        """Softmax of [M, …] over the arcs of each vertex, every column on its own."""
        if is_wide(logits):
            return softmax_in_blocks(self.graph, self.group(role), logits, self.copies(role), role)
        arcs, own = self.split(logits, float("-inf"))
        if own is None:
            weights = ops.edge_softmax(self.graph, arcs, "dst" if role == "target" else "src")
        else:
            if self.loops > 1:
                raise InputError(TWO_LOOPS)
            weights = torch.cat(edge_softmax_with_own(self.graph, arcs, own[0], role))
        return self._chosen(weights)

    def last(self, arc_rows: torch.Tensor, role: str) -> tuple[torch.Tensor, torch.Tensor]:
        """(has the vertex an arc [O], the row of its arc with the largest id [O, …])."""
        ids = self._chosen(torch.from_numpy(np.asarray(self.graph.local.arc_ids, dtype=np.float64)) + 1)
        largest = tied_arc_extreme(self.graph, self.split(ids, float("-inf"))[0])
        chosen = self._chosen(ops.to_arcs(self.graph, largest, "target")) == ids
        kept = torch.where(chosen.view(-1, *[1] * (arc_rows.dim() - 1)), arc_rows, torch.zeros_like(arc_rows))
        return largest > 0, self.sum(kept, role)

    # --- source rows, without writing them at arcs ------------------------------------------------------------

    def sum_sources(self, rows: torch.Tensor, weight: torch.Tensor | None, mean: bool = False) -> torch.Tensor:
        """Sum (or mean) over in-arcs of source rows [O, D], times a weight per arc [M] if given: [O, D]."""
        graph = self.graph
        check_rows(graph, rows)
        if weight is None and self.is_whole:
            return ops.spmm(graph, rows, target_scale=graph.degree_scale("in", -1) if mean else None)
        if weight is None and self.positions is None:
            total = ops.spmm(graph, rows) + self.loops * rows
        else:
            weight = rows.new_ones(self.num_arcs) if weight is None else weight
            arcs, own = self.split(weight)
            total = ops.spmm(graph, rows, arcs.contiguous())
            total = total if own is None else torch.addcmul(total, own.sum(0)[:, None], rows)
        return self.divided(total, "target") if mean else total

    def sum_heads(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Sum over in-arcs of source rows [O, H, F] times a weight per arc and head [M, H]: [O, H, F]."""
        if is_wide(weight):
            return self.sum(self.spread(rows, "source") * weight.unsqueeze(-1))
        arcs, own = self.split(weight)
        total = ops.spmm_heads(self.graph, rows, arcs)
        return total if own is None else torch.addcmul(total, own.sum(0)[:, :, None], rows)

    def extreme_sources(self, rows: torch.Tensor, reduce: str) -> torch.Tensor:
        """Maximum or minimum over in-arcs of source rows [O, D]."""
        if self.is_whole:
            found = tied_extreme(self.graph, rows, reduce)
            return self._with_odd(found, rows, reduce, lambda odd: self.sum_sources(odd, None))
        return self.extreme(self.spread(rows, "source"), reduce)


class ArcSpace(Space):
    """Some arcs as rows of all ranks: arcs of the graph in the order of their ids, then loops in the order of vertices.

    Collective: the constructor, where arcs were selected.
    """

    arcs: "ArcSet"

    def __init__(self, arcs: ArcSet):
        graph = arcs.graph
        self.arcs, every = arcs, graph.arc_space.num_global + (graph.num_global_nodes * arcs.loops)
        total = every if arcs.positions is None else int(sum_over_ranks(graph.comm, np.array([arcs.num_arcs]))[0])
        super().__init__(graph, arcs.num_arcs, total, self._places, draw_ids=arcs.mask_ids, kind="arcs")

    def _places(self) -> np.ndarray:
        """Collective where arcs were selected."""
        arcs, graph = self.arcs, self.graph
        places, first = graph.arc_space.places, graph.owned_ids + graph.arc_space.num_global
        loops = [first + number * graph.num_global_nodes for number in range(arcs.loops)]
        places = np.concatenate([places, *loops])
        if arcs.positions is None:
            return places
        mine = places[arcs.positions.numpy()] if arcs.order is None else arcs.order
        every = np.concatenate(self.comm.allgather(mine))
        taken = np.zeros(every.max(initial=-1) + 1, np.int64)
        taken[every] = 1
        return taken.cumsum()[mine] - 1  # how many lie before: each place is there once

    def local_part(self, whole: torch.Tensor, dim: int) -> torch.Tensor:
        self.graph.arc_space.check_order(whole, dim)
        return super().local_part(whole, dim)

    def _matches(self, other: Space) -> bool:
        if isinstance(other, ArcSpace):
            return self.arcs.same(other.arcs)
        first, *loops = _parts(other)  # what `add_self_loops` does to weights
        if any(one is not self.graph.space_at("target") for one in loops):
            return False
        if isinstance(first, MaskedRows) and first.base is self.graph.arc_space:
            theirs = ArcSet(self.graph, first.rows)
        elif isinstance(first, ArcSpace) or first is self.graph.arc_space:
            theirs = first.arcs if isinstance(first, ArcSpace) else ArcSet(self.graph)
        else:
            return False
        for _ in loops:
            theirs = theirs.with_loops()
        return self.arcs.same(theirs)


def _parts(space: Space) -> list[Space]:
    """What spaces were joined, one after the other."""
    return [one for part in space.parts for one in _parts(part)] if isinstance(space, Joined) else [space]
