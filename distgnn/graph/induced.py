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
from distgnn.comm.plans import indptr_of, plan_of_some, plan_to_all_copies
from distgnn.errors import InputError, on_all_ranks
from distgnn.graph.dist_graph import DistGraph
from distgnn.ops.aggregation.halo import reduce_onto
from distgnn.ops.edges.on_arcs import SIDES, arc_ends
from distgnn.partition import LocalGraph
from distgnn.partition.core.local_graph import BLOCKS, Csr
from distgnn.partition.core.part_arrays import OF_ARCS, OF_VERTICES


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
    sources, targets = arc_ends(local, kept)
    kept_arcs = sources & targets
    counts = np.array([int(kept_owned.sum()), int(kept_arcs.sum())])
    num_nodes, num_arcs = (int(count) for count in sum_over_ranks(graph.comm, counts))
    if num_arcs == 0:
        raise on_all_ranks(InputError("no arc joins two training vertices: there is no graph to train on inductively"))
    return graph.with_part(_with_degrees(graph, _induced(local, kept, kept_arcs, num_nodes)))


def to_copies(graph: DistGraph, local: LocalGraph, owned: np.ndarray) -> np.ndarray:
    """Owned rows [O, D] at all halo copies, [H, D], in the order of local rows. Collective: yes."""
    exchange = Exchange(plan_to_all_copies(local.plan, local.halo_counts), graph.transport)
    exchange.start_broadcast(owned)
    halos = exchange.finish_broadcast().copy()
    exchange.drain()
    return halos


def _induced(local: LocalGraph, kept: np.ndarray, arcs: np.ndarray, num_nodes: int) -> LocalGraph:
    """The part without the rows [V] and arcs [A] that are not kept; degrees stay the whole graph's."""
    owned = kept[: local.num_owned]
    groups = np.repeat(np.arange(local.halo_counts.size), local.halo_counts.ravel())
    halo_counts = np.bincount(groups[kept[local.num_owned :]], minlength=local.halo_counts.size)
    halo_counts = halo_counts.reshape(local.halo_counts.shape).astype(np.int64)
    blocks, first = {}, 0
    for name in BLOCKS:
        block, (halo_targets, halo_sources) = local.blocks[name], SIDES[name]
        targets = kept[local.target_halo_rows] if halo_targets else owned
        sources = kept[local.source_halo_rows] if halo_sources else owned
        chosen = arcs[first : first + len(block.indices)]
        first += len(block.indices)
        rows = np.repeat(np.arange(len(targets)), np.diff(block.indptr))[chosen]
        counts = np.bincount(rows, minlength=len(targets))[targets]
        numbers = (np.cumsum(sources) - 1).astype(np.int32)
        blocks[name] = Csr(indptr_of(counts), numbers[block.indices[chosen]])
    plan = plan_of_some(local.plan, owned, kept[local.source_halo_rows], kept[local.target_halo_rows])
    chosen_rows: dict[str, Any] = dict.fromkeys(OF_VERTICES, owned) | dict.fromkeys(OF_ARCS, arcs)
    own = {name: getattr(local, name) for name in chosen_rows}
    own = {name: None if rows is None else rows[chosen_rows[name]] for name, rows in own.items()}
    return replace(
        local,
        num_nodes=num_nodes,
        num_owned=plan.num_owned,
        num_interior=int(owned[: local.num_interior].sum()),
        global_ids=local.global_ids[kept],
        in_degrees=local.in_degrees[kept],
        out_degrees=local.out_degrees[kept],
        halo_counts=halo_counts,
        blocks=blocks,
        arc_ids=local.arc_ids[arcs],
        plan=plan,
        graph=local.graph | {"valid": 0, "test": 0, "edge_splits": {}},
        edge_splits={},
        **own | dict.fromkeys(("valid_mask", "test_mask"), np.zeros(plan.num_owned, dtype=bool)),
    )


def _with_degrees(graph: DistGraph, local: LocalGraph) -> LocalGraph:
    """The part with its degrees counted in the arcs that are left, over all ranks. Collective: yes."""
    ends, totals = arc_ends(local, np.arange(local.num_rows)), []
    for rows, plan, halos in (
        (ends[1], local.plan, local.target_halo_rows),
        (ends[0], local.plan.transposed(), local.source_halo_rows),
    ):
        partial = np.bincount(rows, minlength=local.num_rows).astype(np.float64)[:, None]
        exchange = Exchange(plan, graph.transport)
        totals.append(reduce_onto(exchange, partial[halos], partial[: local.num_owned].copy()))
        exchange.drain()
    owned = np.concatenate(totals, axis=1)
    degrees = np.concatenate([owned, to_copies(graph, local, owned)]).astype(local.in_degrees.dtype)
    return replace(local, in_degrees=degrees[:, 0].copy(), out_degrees=degrees[:, 1].copy())
