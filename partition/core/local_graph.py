"""LocalGraph: everything one rank holds, in local numbers.

The arcs of a part stand in four CSR blocks by who owns the target (row) and the source (column): `owned_owned`,
`owned_halo`, `halo_owned`, `halo_halo`. Halo columns are numbered as source halos, halo rows as target halos. Inside
a row arcs are sorted by the column's global id, then by global arc id.

Shapes: V local rows, O owned, H halo, S source halos, T target halos, A local arcs, D feature width, C classes,
P parts.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from distgnn.datasets.link_splits import ids_of
from distgnn.kernels import transpose_csr
from distgnn.kernels.graph.csr import stable_order
from distgnn.kernels.runtime.jit import kernel
from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.part_arrays import BLOCKS
from distgnn.partition.core.plan import ExchangePlan, build_plan


class Csr(NamedTuple):
    """indptr int64 [rows + 1] from 0, indices int32."""

    indptr: np.ndarray
    indices: np.ndarray


@dataclass(repr=False)
class LocalGraph:
    """One rank's share of a graph. Arrays: part_arrays.py, None where there is none.

    Args:
        blocks: name in `BLOCKS` -> Csr; arc_ids has the arcs in the order of the concatenated blocks.
        symmetric: whether the transpose of every block is the block it would be used for (weights included), so that
            backward passes need no transposes.
        feats: float32 [O, D], or scipy CSR; graph: the section of the manifest; edge_splits: arrays of pairs by name.
        typed: type -> column -> rows of owned vertices of that type, in the order of rows: feats (dense or CSR),
            labels, values, names, train_mask, …; relation_columns: number of a relation -> "weight", "feat" -> rows of
            its arcs, in the order of arcs. Of a typed graph feats, labels, node_values and masks are views of these.
    """

    part_id: int
    num_parts: int
    num_nodes: int
    num_owned: int
    num_interior: int
    global_ids: np.ndarray
    in_degrees: np.ndarray
    out_degrees: np.ndarray
    halo_counts: np.ndarray
    blocks: dict[str, Csr]
    arc_ids: np.ndarray
    symmetric: bool
    plan: ExchangePlan
    edge_weight: np.ndarray | None = None
    feats: Any = None
    labels: np.ndarray | None = None
    train_mask: np.ndarray | None = None
    valid_mask: np.ndarray | None = None
    test_mask: np.ndarray | None = None
    graph: dict[str, Any] = field(default_factory=dict)
    edge_feats: np.ndarray | None = None
    edge_types: np.ndarray | None = None
    node_types: np.ndarray | None = None
    node_values: np.ndarray | None = None
    graph_ids: np.ndarray | None = None
    node_names: np.ndarray | None = None
    cluster_places: np.ndarray | None = None
    edge_splits: dict[str, np.ndarray] = field(default_factory=dict)
    typed: dict[str, dict[str, Any]] = field(default_factory=dict)
    relation_columns: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)

    def __repr__(self) -> str:
        optional = ("edge_weight", "edge_feats", "edge_types", "node_types")
        words = [f"part {self.part_id} of {self.num_parts}", f"num_owned={self.num_owned}"]
        words += [f"num_halos={self.num_rows - self.num_owned}", f"num_arcs={self.num_arcs}"]
        if self.feats is not None:
            words.append(f"feats={'x'.join(map(str, self.feats.shape))} {self.feats.dtype}")
        return f"LocalGraph({', '.join(words + [name for name in optional if getattr(self, name) is not None])})"

    def num_at(self, role: str) -> int:
        """Owned rows at one end of arcs, "source" or "target": O at both, but in a relation of two types."""
        return self.num_owned

    def edge_split_ids(self, name: str) -> np.ndarray:
        """Rows, in their whole split, of the array `name` of `edge_splits`, int64."""
        return self.edge_splits[ids_of(name)]

    @property
    def types(self) -> tuple[str, ...]:
        """Vertex types of a typed graph, by number."""
        return tuple(self.graph.get("types", ()))

    @property
    def relations(self) -> tuple[tuple[str, str, str], ...]:
        """(source type, name, target type) of the relations of a typed graph, by number in `edge_types`."""
        return tuple((source, name, target) for source, name, target in self.graph.get("relations", ()))

    @property
    def num_rows(self) -> int:
        """V."""
        return len(self.global_ids)

    @property
    def num_arcs(self) -> int:
        """A."""
        return len(self.arc_ids)

    @property
    def num_source_halos(self) -> int:
        """S."""
        return self.plan.num_source_halos

    @property
    def num_target_halos(self) -> int:
        """T."""
        return self.plan.num_target_halos

    @property
    def source_halo_rows(self) -> np.ndarray:
        """int32 [S], local row of each source halo."""
        return halo_rows(self.num_owned, self.halo_counts, 0)

    @property
    def target_halo_rows(self) -> np.ndarray:
        """int32 [T], local row of each target halo."""
        return halo_rows(self.num_owned, self.halo_counts, 1)


def halo_rows(num_owned: int, halo_counts: np.ndarray, first_role: int) -> np.ndarray:
    """Local rows (int32) of the halos of roles `first_role` and the next, in compact order."""
    sizes = np.asarray(halo_counts, dtype=np.int64)
    wanted = np.zeros(sizes.shape, dtype=bool)
    # Roles stand in the order source only, both, target only: sources are the first two, targets the last two.
    wanted[:, first_role : first_role + 2] = True
    return (num_owned + np.flatnonzero(np.repeat(wanted.ravel(), sizes.ravel()))).astype(np.int32)


def build_local(
    book: PartitionBook, part_id: int, graph: dict[str, Any] | None = None, places: np.ndarray | None = None
) -> LocalGraph:
    """One part's structure (no features, labels or masks).

    Args: graph: the section of the manifest, if there is one; places: [N], of `cluster_places`, or None.
    Notes: memory 60 bytes for each arc of the part and 4 for each vertex of the graph.
    """
    edges = book.edge_list
    ids = book.global_ids(part_id)
    num_owned, halo_counts = int(book.num_owned[part_id]), book.halo_counts[part_id]
    plan = build_plan(book, part_id)
    blocks, arc_ids = _build_blocks(book, part_id, ids, plan)
    # Arc ids e and e + M are the two arcs of edge e, and weigh the same.
    weight = None if edges.edge_weight is None else edges.edge_weight[arc_ids % max(len(edges.src), 1)]
    return LocalGraph(
        part_id,
        book.num_parts,
        book.num_nodes,
        num_owned,
        int(book.num_interior[part_id]),
        ids,
        _narrow(book.in_degrees[ids]),
        _narrow(book.out_degrees[ids]),
        halo_counts.copy(),
        blocks,
        arc_ids,
        _is_symmetric(book, plan, halo_counts, blocks, weight),
        plan,
        weight,
        graph=graph or {},
        cluster_places=None if places is None else places[ids[:num_owned]],
    )


def _narrow(values: np.ndarray) -> np.ndarray:
    return values.astype(np.int32) if values.max(initial=0) < 2**31 else values


def _build_blocks(
    book: PartitionBook, part_id: int, ids: np.ndarray, plan: ExchangePlan
) -> tuple[dict[str, Csr], np.ndarray]:
    """All four blocks by two stable counting sorts, by source and then by (block, target), and the arc ids.

    The rows of all blocks are numbered one after the other, so that one sort makes all of them:

        owned_owned         owned_halo          halo_owned          halo_halo
        0 … O - 1           O … 2 O - 1         2 O … 2 O + T - 1   … 2 O + 2 T - 1
    """
    num_owned, num_targets = plan.num_owned, plan.num_target_halos
    row_of = np.full(book.num_nodes, -1, dtype=np.int32)
    row_of[ids] = np.arange(len(ids), dtype=np.int32)
    # Local row -> column (owned row or source halo) and row (owned row or target halo), int32 [V]; -1 for none.
    columns = np.full(len(ids), -1, dtype=np.int32)
    columns[:num_owned] = np.arange(num_owned)
    rows = columns.copy()
    columns[halo_rows(num_owned, book.halo_counts[part_id], 0)] = np.arange(plan.num_source_halos)
    rows[halo_rows(num_owned, book.halo_counts[part_id], 1)] = np.arange(num_targets)
    # Rank of each local row by global id: inside a row of a block, arcs are in the order of global ids, whatever the
    # local rows are.
    by_id = np.empty(len(ids), dtype=np.int32)
    by_id[np.argsort(ids)] = np.arange(len(ids), dtype=np.int32)
    sources, targets, arc_ids = book.arcs(part_id)
    keys, cols, ranks = (np.empty(len(arc_ids), dtype=np.int32) for _ in range(3))
    numbering, sizes = (row_of, columns, rows, by_id), (num_owned, num_targets)
    _number_arcs(sources, targets, numbering, sizes, keys, cols, ranks)
    # the largest arrays here: the sorts below need the memory
    del sources, targets
    bounds = np.cumsum([0, num_owned, num_owned, num_targets, num_targets])
    # By (key, rank, position), the last key first: the second pass keeps the order of the first where keys are equal.
    _, by_rank = stable_order(ranks, len(ids))
    indptr, order = stable_order(keys, int(bounds[-1]), stream=by_rank)
    indices, arc_ids = cols[order], arc_ids[order]
    blocks = {}
    for name, first, last in zip(BLOCKS, bounds[:-1], bounds[1:], strict=True):
        offsets = indptr[first : last + 1]
        blocks[name] = Csr(offsets - offsets[0], indices[offsets[0] : offsets[-1]])
    return blocks, arc_ids


@kernel
def _number_arcs(sources, targets, numbering, sizes, keys, cols, ranks):
    """Of each arc: its row among all blocks' rows, its column, and its source's rank by id."""
    row_of, columns, rows, by_id = numbering
    num_owned, num_targets = sizes
    for i in range(sources.shape[0]):
        u, v = row_of[sources[i]], row_of[targets[i]]
        # The row in the first block of its kind, then on by the blocks before: see the drawing in _build_blocks.
        key = rows[v]
        if v >= num_owned:
            key += 2 * num_owned
            if u >= num_owned:
                key += num_targets
        elif u >= num_owned:
            key += num_owned
        keys[i] = key
        cols[i] = columns[u]
        ranks[i] = by_id[u]


def _is_symmetric(
    book: PartitionBook, plan: ExchangePlan, halo_counts: np.ndarray, blocks: dict[str, Csr], weight: np.ndarray | None
) -> bool:
    """See `LocalGraph.symmetric`; two-way edges kept together are symmetric by construction if nothing weighs them."""
    # A halo with one role has no counterpart in the transpose.
    if halo_counts[:, 0].any() or halo_counts[:, 2].any():
        return False
    if len(blocks["owned_halo"].indices) != len(blocks["halo_owned"].indices):
        return False
    if book.edge_list.two_way and book.cut.reverse_part is None and weight is None:
        return True
    sizes = np.cumsum([0] + [len(blocks[name].indices) for name in BLOCKS])
    weights = {name: None if weight is None else weight[sizes[i] : sizes[i + 1]] for i, name in enumerate(BLOCKS)}
    num_owned, num_sources = plan.num_owned, plan.num_source_halos
    # Each block and the one that its transpose would have to be.
    pairs = [("owned_owned", "owned_owned", num_owned), ("owned_halo", "halo_owned", num_sources)]
    pairs.append(("halo_halo", "halo_halo", num_sources))
    return all(_is_transpose(blocks[a], blocks[b], n, weights[a], weights[b]) for a, b, n in pairs)


def _is_transpose(
    block: Csr, other: Csr, num_cols: int, weight: np.ndarray | None, other_weight: np.ndarray | None
) -> bool:
    """Whether `other` is the transpose of `block`, arcs of a row compared as sorted lists of (column, weight)."""
    indptr, indices, positions = transpose_csr(block.indptr, block.indices, num_cols)
    if not np.array_equal(indptr, other.indptr):
        return False
    # (row, column) as one number: one sort orders the columns inside each row.
    rows = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr)) << 32
    if weight is None or other_weight is None:
        return np.array_equal(np.sort(rows | indices), np.sort(rows | other.indices))
    # Parallel arcs may stand in any order: their weights are compared as sorted.
    weight, keys, other_keys = weight[positions], rows | indices, rows | other.indices
    order, other_order = np.lexsort((weight, keys)), np.lexsort((other_weight, other_keys))
    same_arcs = np.array_equal(keys[order], other_keys[other_order])
    return same_arcs and np.array_equal(weight[order], other_weight[other_order])
