"""PartitionBook: which part has a copy of which vertex, in which role, and at which local row.

Local rows of a part are [interior | boundary | halo]. Owned rows are sorted by the cut's order, then global id, inside
interior and boundary. Halo rows are grouped by owner, in a group [source only | both | target only], and sorted by
the owner's local row: what a broadcast receives and what a reduce sends are contiguous row ranges.

Shapes: N vertices, M edges of the edge list, P parts, W words of a part mask, V local rows, H halo rows.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numba import uint64

from distgnn.datasets.edge_list import EdgeList
from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.core.edges import group
from distgnn.partition.core.part_masks import count_copies, empty_mask, has_bit, lowest_bit, mark_arcs
from distgnn.partition.core.vertex_cut import VertexCut

SOURCE_ONLY, BOTH, TARGET_ONLY = range(3)


class PartitionBook:
    """Who has what, derived from an edge list and a cut; the arrays of all parts together are O(N W + P^2).

    Args:
        edge_list: an `EdgeList`.
        cut: a `VertexCut` that fits it (checked here).
    Attributes:
        owner: int32 [N]; local_row: int32 [N], the row of each vertex on its owner.
        source_mask, target_mask: uint64 [N, W], the parts where arcs leave from / arrive at each vertex.
        halo_counts: int64 [P, P, 3]: [p, q] = halos on p that q owns: source only, both, target only.
        num_owned, num_interior, num_arcs, num_rows: int64 [P] (rows: all local rows, halos included).
    """

    def __init__(self, edge_list: EdgeList, cut: VertexCut) -> None:
        self.edge_list = edge_list
        self.cut: VertexCut = cut.check(edge_list)
        self.source_mask: np.ndarray = empty_mask(edge_list.num_nodes, cut.num_parts)
        self.target_mask: np.ndarray = empty_mask(edge_list.num_nodes, cut.num_parts)
        # The arc src -> dst is computed in its part: src is needed there as a source, dst as a target.
        mark_arcs(edge_list.src, edge_list.dst, cut.edge_part, False, self.source_mask, self.target_mask)
        # The reverse arcs, once more with the ends exchanged; a self-loop is one arc.
        if edge_list.two_way:
            mark_arcs(edge_list.dst, edge_list.src, self.reverse_part, True, self.source_mask, self.target_mask)
        self._derive()
        counts = np.bincount(cut.edge_part, minlength=self.num_parts)
        if edge_list.two_way:
            counts = counts + np.bincount(self.reverse_part, minlength=self.num_parts)
            # Counted twice above, but one arc only.
            loops = edge_list.src == edge_list.dst
            counts -= np.bincount(self.reverse_part[loops], minlength=self.num_parts)
        self.num_arcs: np.ndarray = counts.astype(np.int64)

    def __repr__(self) -> str:
        num_arcs, num_halos = int(self.num_arcs.sum()), int((self.num_rows - self.num_owned).sum())
        return (
            f"PartitionBook(num_parts={self.num_parts}, num_nodes={self.num_nodes}, "
            f"num_arcs={num_arcs}, num_halos={num_halos})"
        )

    def _derive(self) -> None:
        """Everything that follows from the masks and the owners."""
        self.num_parts: int = self.cut.num_parts
        self.num_nodes: int = self.edge_list.num_nodes
        self.owner: np.ndarray = np.ascontiguousarray(self.cut.owner, dtype=np.int32)
        self.halo_counts: np.ndarray = np.zeros((self.num_parts, self.num_parts, 3), dtype=np.int64)
        section = np.empty(self.num_nodes, dtype=np.int32)
        _count_halos(self.owner, self.source_mask, self.target_mask, self.halo_counts, section)
        # The vertices by (owner, interior before boundary, order, id); section = 2 * owner + is boundary.
        if self.cut.order is not None:
            # Two stable sorts, the less significant key first: ties of both are left in the order of ids.
            by_order = np.argsort(self.cut.order, kind="stable")
            by_owner = by_order[np.argsort(section[by_order], kind="stable")]
        else:
            by_owner = np.argsort(section, kind="stable")
        # Sections of a part follow one another: 2 p its interior, 2 p + 1 its boundary.
        sizes = np.bincount(section, minlength=2 * self.num_parts).reshape(self.num_parts, 2)
        self.num_interior: np.ndarray = sizes[:, 0]
        self.num_owned: np.ndarray = sizes.sum(axis=1)
        self.owned_indptr: np.ndarray = np.concatenate([[0], np.cumsum(self.num_owned)])
        self.owned_ids: np.ndarray = by_owner.astype(np.int64, copy=False)
        first_rows = np.repeat(self.owned_indptr[:-1], self.num_owned)
        self.local_row: np.ndarray = np.empty(self.num_nodes, dtype=np.int32)
        self.local_row[by_owner] = np.arange(self.num_nodes) - first_rows
        self.num_rows: np.ndarray = self.num_owned + self.halo_counts.sum(axis=(1, 2))

    @property
    def reverse_part(self) -> np.ndarray:
        """[M] the part of each edge's reverse arc."""
        return self.cut.edge_part if self.cut.reverse_part is None else self.cut.reverse_part

    @cached_property
    def _edges_by_part(self) -> tuple[np.ndarray, np.ndarray]:
        """Edges sorted by the part of the forward arc (stable), and where each part begins."""
        return group(self.cut.edge_part, self.num_parts)

    @cached_property
    def _reverse_edges_by_part(self) -> tuple[np.ndarray, np.ndarray]:
        return self._edges_by_part if self.cut.reverse_part is None else group(self.reverse_part, self.num_parts)

    @cached_property
    def in_degrees(self) -> np.ndarray:
        """[N] arcs that arrive at each vertex, of the whole graph."""
        return self.edge_list.in_degrees()

    @cached_property
    def out_degrees(self) -> np.ndarray:
        """[N] arcs that leave each vertex, of the whole graph."""
        return self.edge_list.out_degrees()

    def prepare(self) -> None:
        """Compute what all parts need, before several threads ask for it at once."""
        _ = self.in_degrees, self.out_degrees, self._edges_by_part, self._reverse_edges_by_part

    def arcs(self, part_id: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sources, targets and global arc ids (int64) of a part's arcs: forward ones, then reverse ones, by edge."""
        edges, (by_part, starts) = self.edge_list, self._edges_by_part
        forward = by_part[starts[part_id] : starts[part_id + 1]]
        backward = forward[:0]
        if edges.two_way:
            by_part, starts = self._reverse_edges_by_part
            backward = by_part[starts[part_id] : starts[part_id + 1]]
            backward = backward[edges.src[backward] != edges.dst[backward]]
        sources = np.concatenate([edges.src[forward], edges.dst[backward]])
        targets = np.concatenate([edges.dst[forward], edges.src[backward]])
        # The reverse arc of edge e has the id e + M.
        return sources, targets, np.concatenate([forward.astype(np.int64), backward + np.int64(edges.num_edges)])

    def owned(self, part_id: int) -> np.ndarray:
        """Global ids [O] of the rows a part owns, in local row order (a view)."""
        return self.owned_ids[self.owned_indptr[part_id] : self.owned_indptr[part_id + 1]]

    def halos(self, part_id: int) -> np.ndarray:
        """Global ids [H] of a part's halo rows, in local row order."""
        size = int(self.halo_counts[part_id].sum())
        ids, groups = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
        _find_halos(part_id, self.owner, self.source_mask, self.target_mask, ids, groups)
        # By owner and role, then in the order in which the owner packs its rows: what arrives needs no sorting.
        return ids[np.lexsort((self.local_row[ids], groups))]

    def global_ids(self, part_id: int) -> np.ndarray:
        """Global ids int64 [V] of a part's rows, in local row order."""
        return np.concatenate([self.owned(part_id), self.halos(part_id)])

    @cached_property
    def copies(self) -> np.ndarray:
        """[N] parts with a row of each vertex, the owner's included."""
        mask = self.source_mask | self.target_mask
        # An owner has a row of each of its vertices, whether or not it holds an arc.
        mask[np.arange(self.num_nodes), self.owner >> 6] |= np.uint64(1) << (self.owner & 63).astype(np.uint64)
        return count_copies(mask, mask)

    @property
    def replication_factor(self) -> float:
        """Mean number of copies, the owner's included, of the vertices that have an arc (1 if there are none)."""
        has_arc = ((self.source_mask | self.target_mask) != 0).any(axis=1)
        return float(self.copies[has_arc].mean()) if has_arc.any() else 1.0

    @property
    def exchange_rows(self) -> int:
        """Rows that cross between ranks per layer and direction: all source halos and all target halos."""
        return int(self.pair_rows.sum())

    @cached_property
    def pair_rows(self) -> np.ndarray:
        """[P, P] rows p sends to q in one broadcast and one reduce: q's source halos of p + p's target halos of q."""
        # halo_counts[p, q] is what p holds of q: for source halos q is the sender, for target halos p is.
        sources = self.halo_counts[:, :, SOURCE_ONLY] + self.halo_counts[:, :, BOTH]
        targets = self.halo_counts[:, :, BOTH] + self.halo_counts[:, :, TARGET_ONLY]
        return sources.T + targets

    @property
    def max_rank_rows(self) -> int:
        """Rows sent and received, per layer and direction, by the rank that has most of them."""
        return int((self.pair_rows.sum(axis=0) + self.pair_rows.sum(axis=1)).max())

    @property
    def edge_balance(self) -> float:
        """Largest part's arcs over its share."""
        return balance(self.num_arcs, self.cut.shares)

    @property
    def owned_balance(self) -> float:
        """Largest part's owned vertices over its share."""
        return balance(self.num_owned, self.cut.shares)

    @property
    def copies_balance(self) -> float:
        """Largest part's local rows (owned and halo) over its share."""
        return balance(self.num_rows, self.cut.shares)


def balance(loads: np.ndarray, shares: np.ndarray | None = None) -> float:
    """Largest load over its share of the sum (over the mean, without shares); 1 if there is nothing."""
    if not loads.sum():
        return 1.0
    return float(loads.max() / loads.mean() if shares is None else (loads / shares).max() / loads.sum())


@kernel
def _count_halos(owner, source_mask, target_mask, counts, section):
    """counts[p, owner, role] += halos; section[v] = 2 * owner[v] + (v has a copy elsewhere)."""
    for v in range(owner.shape[0]):
        home = np.int64(owner[v])
        away = 0
        # For each part in either set, ascending: the lowest bit of a word is taken and cleared.
        for w in range(source_mask.shape[1]):
            word = source_mask[v, w] | target_mask[v, w]
            while word != uint64(0):
                p = (w << 6) + lowest_bit(word)
                word &= word - uint64(1)
                if p == home:
                    continue
                # SOURCE_ONLY 0, BOTH 1, TARGET_ONLY 2, as a sum of two bits: p is in one set at least.
                role = has_bit(target_mask, v, p) + (not has_bit(source_mask, v, p))
                counts[p, home, role] += 1
                away = 1
        section[v] = 2 * home + away


@kernel
def _find_halos(part, owner, source_mask, target_mask, ids, groups):
    """ids = vertices with a copy on `part` that it does not own, ascending; groups = 3 * owner + role."""
    found = 0
    for v in range(owner.shape[0]):
        is_source, is_target = has_bit(source_mask, v, part), has_bit(target_mask, v, part)
        if owner[v] != part and (is_source or is_target):
            ids[found] = v
            groups[found] = 3 * np.int64(owner[v]) + (is_target + (not is_source))
            found += 1
