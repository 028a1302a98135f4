"""The subgraph of training vertices, for the inductive protocol: train on it, evaluate on the whole graph.

Legend: V local rows, O owned, H halo copies, S / T source and target halos, A local arcs, P parts.

Which vertices stay is known to their owners; one broadcast tells the ranks with copies. Everything else is local,
because both sides of an exchange keep the same vertices in the same order: rows, blocks of arcs and the plan are
filtered and numbered anew. Degrees are counted again, in the subgraph.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from distgnn.comm import Exchange, sum_over_ranks
from distgnn.comm.plans import plan_to_all_copies
from distgnn.errors import InputError, on_all_ranks
from distgnn.graph.dist_graph import DistGraph
from distgnn.partition import ExchangePlan, LocalGraph
from distgnn.partition.core.local_graph import BLOCKS, Csr
from distgnn.partition.core.part_arrays import OF_ARCS, OF_VERTICES
from distgnn.partition.core.plan import halo_indptrs

SIDES = {"owned_owned": (0, 0), "owned_halo": (0, 1), "halo_owned": (1, 0), "halo_halo": (1, 1)}  # target, source


def training_subgraph(graph: DistGraph) -> DistGraph:
    """The graph of training vertices and of the arcs between them, with the settings of `graph` and its global ids.

    Collective: yes.

    Args: graph: DistGraph with a training split.

    Returns: a graph of the same kind; its degrees, `num_global_nodes` and the statistics of norms are its own.

    Raises: InputError, on every rank, where no training vertices are connected.

    Notes: memory: features and arcs of the training vertices once more.

    Example:
        >>> sub = dg.training_subgraph(graph)
        >>> sub.num_nodes() == int(graph.train_mask.sum())
        True
    """
    local = graph.local
    kept_owned = np.array(local.train_mask, dtype=bool)
    # Which local rows stay, bool [V]. Collective: yes.
    halos = to_copies(graph, graph.local, kept_owned[:, None].astype(np.float32))
    kept = np.concatenate([kept_owned, halos[:, 0] > 0])
    counts = np.array([int(kept_owned.sum()), int(_kept_arcs(local, kept).sum())])
    num_nodes, num_arcs = (int(count) for count in sum_over_ranks(graph.comm, counts))
    if num_arcs == 0:
        raise on_all_ranks(InputError("no arc joins two training vertices: there is no graph to train on inductively"))
    return graph.with_part(_with_degrees(graph, _induced(local, kept, num_nodes)))


def to_copies(graph: DistGraph, local: LocalGraph, owned: np.ndarray) -> np.ndarray:
    """Owned rows [O, D] at all halo copies, [H, D], in the order of local rows. Collective: yes."""
    exchange = Exchange(plan_to_all_copies(local.plan, local.halo_counts), graph.transport)
    exchange.start_broadcast(owned)
    halos = exchange.finish_broadcast().copy()
    exchange.drain()
    return halos


def _sides(local: LocalGraph, rows: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Per block, the entries of `rows` [V] of its targets and of its sources."""
    owned = rows[: local.num_owned]
    targets, sources = (owned, rows[local.target_halo_rows]), (owned, rows[local.source_halo_rows])
    return {name: (targets[target], sources[source]) for name, (target, source) in SIDES.items()}


def _kept_arcs(local: LocalGraph, kept: np.ndarray) -> np.ndarray:
    """Which local arcs have both ends kept, bool [A]."""
    sides = _sides(local, kept)
    pieces = []
    for name in BLOCKS:
        block, (targets, sources) = local.blocks[name], sides[name]
        pieces.append(np.repeat(targets, np.diff(block.indptr)) & sources[block.indices])
    return np.concatenate(pieces)


def _induced(local: LocalGraph, kept: np.ndarray, num_nodes: int) -> LocalGraph:
    """The part without the rows that are not kept; degrees are still those of the whole graph."""
    owned, arcs = kept[: local.num_owned], _kept_arcs(local, kept)
    groups = np.repeat(np.arange(local.halo_counts.size), local.halo_counts.ravel())
    halo_counts = np.bincount(groups[kept[local.num_owned :]], minlength=local.halo_counts.size)
    halo_counts = halo_counts.reshape(local.halo_counts.shape).astype(np.int64)
    return replace(
        local,
        num_nodes=num_nodes,
        num_owned=int(owned.sum()),
        num_interior=int(owned[: local.num_interior].sum()),
        global_ids=local.global_ids[kept],
        in_degrees=local.in_degrees[kept],
        out_degrees=local.out_degrees[kept],
        halo_counts=halo_counts,
        blocks=_induced_blocks(local, kept, arcs),
        arc_ids=local.arc_ids[arcs],
        plan=_induced_plan(local.plan, owned, halo_counts),
        graph=local.graph | {"valid": 0, "test": 0, "edge_splits": {}},
        edge_splits={},
        **{name: _taken(getattr(local, name), owned) for name in OF_VERTICES}
        | dict.fromkeys(("valid_mask", "test_mask"), np.zeros(int(owned.sum()), dtype=bool)),
        **{name: _taken(getattr(local, name), arcs) for name in OF_ARCS},
    )


def _taken(rows: Any, kept: np.ndarray) -> Any:
    return None if rows is None else rows[kept]


def _induced_blocks(local: LocalGraph, kept: np.ndarray, arcs: np.ndarray) -> dict[str, Csr]:
    blocks, first = {}, 0
    for name, (targets, sources) in _sides(local, kept).items():
        block = local.blocks[name]
        chosen = arcs[first : first + len(block.indices)]
        first += len(block.indices)
        rows = np.repeat(np.arange(len(targets)), np.diff(block.indptr))[chosen]
        counts = np.bincount(rows, minlength=len(targets))[targets]
        numbers = (np.cumsum(sources) - 1).astype(np.int32)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        blocks[name] = Csr(indptr, numbers[block.indices[chosen]])
    return blocks


def _induced_plan(plan: ExchangePlan, owned: np.ndarray, halo_counts: np.ndarray) -> ExchangePlan:
    numbers = (np.cumsum(owned) - 1).astype(np.int32)

    def sent(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        kept = owned[rows]
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
        return before[indptr], numbers[rows[kept]]

    broadcast, reduce = sent(plan.broadcast_indptr, plan.broadcast_rows), sent(plan.reduce_indptr, plan.reduce_rows)
    sources, targets = halo_indptrs(halo_counts)
    return ExchangePlan(plan.num_parts, plan.part_id, int(owned.sum()), *broadcast, sources, *reduce, targets)


def _with_degrees(graph: DistGraph, local: LocalGraph) -> LocalGraph:
    """The part with its degrees counted in the arcs that are left, over all ranks. Collective: yes."""
    numbers = _sides(local, np.arange(local.num_rows))
    into, out_of = np.zeros((local.num_rows, 1)), np.zeros((local.num_rows, 1))
    for name, (targets, sources) in numbers.items():
        block = local.blocks[name]
        into[targets, 0] += np.diff(block.indptr)
        out_of[sources, 0] += np.bincount(block.indices, minlength=len(sources))
    totals = []
    for partial, plan, halos in (
        (into, local.plan, local.target_halo_rows),
        (out_of, local.plan.transposed(), local.source_halo_rows),
    ):
        exchange = Exchange(plan, graph.transport)
        owned, sent = partial[: local.num_owned].copy(), np.ascontiguousarray(partial[halos])
        exchange.start_reduce(sent)
        exchange.finish_reduce(owned)
        exchange.drain()
        totals.append(owned)
    owned = np.concatenate(totals, axis=1)
    degrees = np.concatenate([owned, to_copies(graph, local, owned)]).astype(local.in_degrees.dtype)
    return replace(local, in_degrees=degrees[:, 0].copy(), out_degrees=degrees[:, 1].copy())
