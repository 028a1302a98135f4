"""ArcSet: which arcs an `edge_index` stands for, and what can be computed over them on all ranks.

PyG's layers remove self-loops, add one per vertex, and select arcs. All of that is a list of places in

    [local arcs of this rank | a loop at every owned vertex]

Legend: O owned rows, A local arcs, M arcs of the set (loops included), D width. Roles: "source", "target".

    spread(rows [O, …], role)   -> [M, …]    the row at one end of each arc
    sum(arc_rows [M, …], role)  -> [O, …]    its transpose; so are mean, extreme, softmax, degree: over all ranks
"""

from functools import cached_property
from typing import Any

import numpy as np
import torch

from distgnn import ops
from distgnn.comm import extreme_over_ranks, sum_over_ranks
from distgnn.errors import InputError
from distgnn.ops.aggregation.extreme import tied_arc_extreme, tied_extreme
from distgnn.ops.edges.on_arcs import check_rows, check_update
from distgnn.ops.edges.softmax import edge_softmax_with_own
from distgnn.ops.function import constants
from distgnn.ops.sums import min_over_ranks
from distgnn.rows.space import Joined, MaskedRows, Space

LOOP_IDS = 1 << 48


class ArcSet:
    """Some arcs of a graph, in an order.

    Args:
        graph: the DistGraph.
        positions: places in [local arcs | loops], each at most once, int64 [M]; None: all of them.
        loops: are there loops?
        rows: are the rows of vertices and arcs those of all ranks (`distgnn.rows`)?
    """

    graph: Any  # a RowGraph, where rows are those of all ranks
    positions: torch.Tensor | None
    loops: bool
    rows: bool

    def __init__(self, graph: Any, positions: torch.Tensor | None = None, loops: bool = False, rows: bool = False):
        check_update(graph)
        self.graph, self.positions, self.loops, self.rows = graph, positions, loops, rows
        self._degrees: dict[str, torch.Tensor] = {}

    @property
    def base_size(self) -> int:
        """Places: A, or A + O with loops."""
        return self.graph.num_edges() + (self.graph.num_owned if self.loops else 0)

    @cached_property
    def num_arcs(self) -> int:
        return self.base_size if self.positions is None else len(self.positions)

    @cached_property
    def space(self) -> Space:
        """The arcs as rows of all ranks."""
        return self.graph.arc_space if self.is_whole else ArcSpace(self)

    @property
    def num_all(self) -> int:
        """Arcs of all ranks where rows are, else M. Collective: the first time."""
        return self.space.num_global if self.rows else self.num_arcs

    @property
    def num_vertices(self) -> int:
        """Vertices of all ranks where rows are, else O."""
        return self.graph.num_global_nodes if self.rows else self.graph.num_owned

    @property
    def is_whole(self) -> bool:
        """All arcs of the graph, in order, and nothing else?"""
        return self.positions is None and not self.loops

    # --- other sets ------------------------------------------------------------------------------------------

    def select(self, index: torch.Tensor) -> "ArcSet":
        """The arcs where a mask [M] is true, or those at some places."""
        if index.dtype == torch.bool:
            if len(index) != self.num_arcs:
                raise InputError(f"a mask of {len(index)} values for {self.num_arcs} arcs: give one value per arc")
            index = index.nonzero().view(-1)
        elif len(index.unique()) != len(index):
            raise InputError("arcs cannot be selected twice: give each place once, or a mask")
        return ArcSet(self.graph, index if self.positions is None else self.positions[index], self.loops, self.rows)

    def with_loops(self) -> "ArcSet":
        """The same arcs and behind them a loop at every vertex."""
        if self.loops:
            raise InputError("self-loops were added twice: remove them in between (remove_self_loops)")
        if self.positions is None:
            return ArcSet(self.graph, None, True, self.rows)
        loops = torch.arange(self.graph.num_owned) + self.graph.num_edges()
        return ArcSet(self.graph, torch.cat([self.positions, loops]), True, self.rows)

    # --- rows at arcs ----------------------------------------------------------------------------------------

    def spread(self, rows: torch.Tensor, role: str) -> torch.Tensor:
        """The row at one end of each arc: [O, …] to [M, …]. Collective: yes, and again in the backward pass."""
        out = ops.to_arcs(self.graph, rows, role)
        out = torch.cat([out, rows]) if self.loops else out
        return out if self.positions is None else out[self.positions]

    def ids(self, role: str) -> torch.Tensor:
        """The global id of the vertex at one end of each arc, int64 [M]."""
        local, ends = self.graph.local, self.graph.local_arcs.ends[role]
        halos = local.source_halo_rows if role == "source" else local.target_halo_rows
        owned = local.global_ids[: local.num_owned]
        ids = np.concatenate([owned, local.global_ids[halos]])[ends]
        every = torch.from_numpy(np.concatenate([ids, owned]) if self.loops else ids)
        return every if self.positions is None else every[self.positions]

    def extreme_id(self, which: str) -> torch.Tensor:
        """The largest or smallest id of a vertex with an arc, of all ranks (collective), or those that a part has."""
        if not self.rows:
            return torch.tensor(self.num_vertices - 1 if which == "max" else 0)
        none = -1 if which == "max" else self.graph.num_global_nodes
        ends = torch.cat([self.ids("source"), self.ids("target")]).numpy()
        here = ends.max(initial=none) if which == "max" else ends.min(initial=none)
        return torch.from_numpy(extreme_over_ranks(self.graph.comm, np.array([here]), which))[0]

    def mask_ids(self) -> np.ndarray:
        """What keys random masks of arcs, int64 [M]: global arc ids, for loops those of vertices far behind them."""
        ids = np.asarray(self.graph.local.arc_ids, dtype=np.int64)
        ids = np.concatenate([ids, self.graph.owned_ids + LOOP_IDS]) if self.loops else ids
        return ids if self.positions is None else ids[self.positions.numpy()]

    def split(self, arc_rows: torch.Tensor, fill: float = 0.0) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Rows [M, …] as those of all local arcs [A, …] (`fill` where one is not in the set) and of loops [O, …]."""
        if len(arc_rows) != self.num_arcs:
            raise InputError(f"{len(arc_rows)} rows for {self.num_arcs} arcs: give one row per arc of edge_index")
        if self.positions is not None:
            every = arc_rows.new_full((self.base_size, *arc_rows.shape[1:]), fill)
            arc_rows = every.index_copy(0, self.positions, arc_rows)
        if not self.loops:
            return arc_rows, None
        arcs, loops = arc_rows.split([self.graph.num_edges(), self.graph.num_owned])
        return arcs, loops

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
        arcs, own = self.split(arc_rows)
        total = ops.from_arcs(self.graph, arcs, role)
        return total if own is None else total + own

    def mean(self, arc_rows: torch.Tensor, role: str = "target") -> torch.Tensor:
        """Sum over number; 0 where there is no arc."""
        return self.divided(self.sum(arc_rows, role), role)

    def divided(self, rows: torch.Tensor, role: str) -> torch.Tensor:
        counts = self.degree(role).clamp(min=1).to(rows.dtype)
        return rows / counts.view(-1, *[1] * (rows.dim() - 1))

    def extreme(self, arc_rows: torch.Tensor, reduce: str, role: str = "target") -> torch.Tensor:
        """Maximum ("max") or minimum ("min"); 0 where there is no arc; equal winners share the gradient."""
        if role != "target":
            raise InputError(f"{reduce} over the out-arcs of a vertex cannot run distributed: only sum and mean can")
        if not arc_rows.is_floating_point():
            return self.extreme(arc_rows.double(), reduce).to(arc_rows.dtype)
        arcs, own = self.split(arc_rows, float("-inf" if reduce == "max" else "inf"))
        return tied_arc_extreme(self.graph, arcs, reduce, own)

    def softmax(self, logits: torch.Tensor, role: str = "target") -> torch.Tensor:
        """Softmax of [M, …] over the arcs of each vertex, every column on its own."""
        arcs, own = self.split(logits, float("-inf"))
        if own is None:
            weights = ops.edge_softmax(self.graph, arcs, "dst" if role == "target" else "src")
        else:
            weights = torch.cat(edge_softmax_with_own(self.graph, arcs, own, role))
        return weights if self.positions is None else weights[self.positions]

    def last(self, arc_rows: torch.Tensor, role: str) -> tuple[torch.Tensor, torch.Tensor]:
        """(has the vertex an arc [O], the row of its arc with the largest id [O, …])."""
        ids = torch.from_numpy(np.asarray(self.graph.local.arc_ids, dtype=np.float64)) + 1
        ids = ids if self.positions is None else ids[self.positions]
        largest = tied_arc_extreme(self.graph, self.split(ids, float("-inf"))[0])
        chosen = ops.to_arcs(self.graph, largest, "target")
        chosen = (chosen if self.positions is None else chosen[self.positions]) == ids
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
            total = ops.spmm(graph, rows) + rows
        else:
            weight = rows.new_ones(self.num_arcs) if weight is None else weight
            arcs, own = self.split(weight)
            total = ops.spmm(graph, rows, arcs.contiguous())
            total = total if own is None else torch.addcmul(total, own[:, None], rows)
        return self.divided(total, "target") if mean else total

    def sum_heads(self, rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Sum over in-arcs of source rows [O, H, F] times a weight per arc and head [M, H]: [O, H, F]."""
        arcs, own = self.split(weight)
        total = ops.spmm_heads(self.graph, rows, arcs)
        return total if own is None else torch.addcmul(total, own[:, :, None], rows)

    def extreme_sources(self, rows: torch.Tensor, reduce: str) -> torch.Tensor:
        """Maximum or minimum over in-arcs of source rows [O, D]."""
        if self.is_whole:
            return tied_extreme(self.graph, rows, reduce)
        return self.extreme(self.spread(rows, "source"), reduce)


class ArcSpace(Space):
    """Some arcs as rows of all ranks: arcs of the graph in the order of their ids, then loops in the order of vertices.

    Collective: the constructor, where arcs were selected.
    """

    arcs: "ArcSet"

    def __init__(self, arcs: ArcSet):
        graph = arcs.graph
        self.arcs, every = arcs, graph.arc_space.num_global + (graph.num_global_nodes if arcs.loops else 0)
        total = every if arcs.positions is None else int(sum_over_ranks(graph.comm, np.array([arcs.num_arcs]))[0])
        super().__init__(graph, arcs.num_arcs, total, self._places, draw_ids=arcs.mask_ids, kind="arcs")

    def _places(self) -> np.ndarray:
        """Collective where arcs were selected."""
        arcs, graph = self.arcs, self.graph
        places = graph.arc_space.places
        if arcs.loops:
            places = np.concatenate([places, graph.owned_ids + graph.arc_space.num_global])
        if arcs.positions is None:
            return places
        mine = places[arcs.positions.numpy()]
        return np.searchsorted(np.sort(np.concatenate(self.comm.allgather(mine))), mine)

    def local_part(self, whole: torch.Tensor, dim: int) -> torch.Tensor:
        self.graph.arc_space.check_order(whole, dim)
        return super().local_part(whole, dim)

    def _matches(self, other: Space) -> bool:
        arcs, mine = self.arcs, self.arcs.positions
        if isinstance(other, ArcSpace):
            theirs = other.arcs.positions
            return arcs.loops == other.arcs.loops and self._agree(mine, theirs)
        if isinstance(other, Joined) and arcs.loops and len(other.parts) == 2:  # what `add_self_loops` does to weights
            first, second = other.parts
            if second is not self.graph.vertex_space:
                return False
            mine = None if mine is None else mine[: len(mine) - self.graph.num_owned]
        elif not arcs.loops:
            first = other
        else:
            return False
        if first is self.graph.arc_space:
            return mine is None
        if isinstance(first, ArcSpace):
            return not first.arcs.loops and self._agree(mine, first.arcs.positions)
        return isinstance(first, MaskedRows) and first.base is self.graph.arc_space and self._agree(mine, first.rows)

    def _agree(self, mine: torch.Tensor | None, theirs: torch.Tensor | None) -> bool:
        """The same positions on every rank? Collective where both are lists."""
        if mine is None or theirs is None or mine is theirs:
            return mine is theirs
        return bool(min_over_ranks(self.comm, int(torch.equal(mine, theirs))))
