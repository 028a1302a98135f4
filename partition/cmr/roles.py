"""Refinement of one-way graphs for the rows exchanged with update on owners: each role of a copy is charged.

Vertex v is taken apart into v, the source of its arcs, and N + v, the target; one more edge, its *joint*, joins the
two, and the part of the joint is the owner. An arc u -> v becomes the edge (u, N + v). So

    arcs leave v in part 0, and arrive in parts 1 and 2; its joint is in part 1
    v has copies in 0 and 1 (the joint), N + v in 1 and 2: two each

Less one each, copies are exactly the rows that a vertex exchanges in a layer (here: part 1, the owner, sends v's row to
part 0 and gets a partial sum from part 2), and moving the joint is moving the owner.

Arcs and joints move in turn, as edges do in edge_moves.py, under a limit of arcs and one of owned vertices. Two-way
graphs have no use for it: a copy there has both roles (docs/internals/cmr.md).

Shapes: M arcs, N vertices, P parts.
"""

from __future__ import annotations

import numpy as np

from distgnn.partition.cmr.method import NORMAL, Effort
from distgnn.partition.core.edges import SMALL, EdgeArrays, Edges, group
from distgnn.partition.core.owners import even_exchange
from distgnn.partition.core.part_masks import count_parts, empty_mask, mark_arcs
from distgnn.partition.core.vertex_cut import MOST_ARCS, owned_limit
from distgnn.partition.refinement.cut_state import State, arc_limit, rebalance
from distgnn.partition.refinement.edge_moves import SCHEDULE, sweep
from distgnn.partition.refinement.group_loads import row_price
from distgnn.partition.refinement.replica_table import count_copies, count_edges, empty_table
from distgnn.partition.refinement.vertex_moves import move_vertices

BETA = 1.0  # local rows may differ a little more between parts here than arcs and owned vertices

Pair = tuple[np.ndarray, np.ndarray]  # one array for arcs and one for joints
Sets = tuple[EdgeArrays, EdgeArrays]


def refine_roles(
    edge_list: Edges, edge_part: np.ndarray, owner: np.ndarray, shares: np.ndarray, effort: Effort = NORMAL
) -> Pair:
    """Fewer exchange rows: part [M] int16 of each arc and owner [N] int32; edge_list: one arc per edge.

    Notes: memory about 20 bytes for each arc, 30 and two sets of parts for each vertex.
    """
    if len(edge_part) == 0:
        return np.asarray(edge_part, dtype=np.int16), np.asarray(owner, dtype=np.int32)
    num_nodes = edge_list.num_nodes
    ids = np.arange(num_nodes, dtype=edge_list.src.dtype)
    arcs = EdgeArrays(
        edge_list.src, edge_list.dst + ids.dtype.type(num_nodes), 2 * num_nodes, False, len(edge_list.src)
    )
    joints = EdgeArrays(ids, ids + ids.dtype.type(num_nodes), 2 * num_nodes, False, num_nodes)
    # One more than the arcs: the joint is an edge of v and of N + v.
    degrees = np.bincount(arcs.src, minlength=2 * num_nodes) + np.bincount(arcs.dst, minlength=2 * num_nodes) + 1
    parts = edge_part.astype(np.int16), owner.astype(np.int16)
    limits = arc_limit(arcs, shares, MOST_ARCS), owned_limit(num_nodes, shares).astype(np.float64)
    for left in reversed(range(effort.cycles if len(edge_part) <= SMALL else 1)):
        parts = _refine_both((arcs, joints), parts, limits, degrees, shares)
        if left:
            # All arcs of a source in one part move together, then all of a target; joints stay.
            for by, other in ((arcs.src, arcs.dst), (arcs.dst, arcs.src)):
                order, _ = group(by, 2 * num_nodes)
                edges = arcs._replace(src=by[order], dst=other[order])
                parts[0][order] = move_vertices(
                    edges, parts[0][order], degrees, shares, fixed=(joints, parts[1]), row_price=row_price(len(shares))
                )
    owners = parts[1].astype(np.int32)
    sources, targets = (empty_mask(num_nodes, len(shares)) for _ in range(2))
    mark_arcs(edge_list.src, edge_list.dst, parts[0], False, sources, targets)
    even_exchange(sources, targets, owners, shares)
    return parts[0], owners


def _room(sets: Sets, parts: Pair, shares: np.ndarray) -> np.ndarray:
    """Shares [P] of all copies with which parts have their shares of local rows, as many in both roles as now.

    What training holds is local rows: a vertex that has both roles in a part is one there, and two copies here.
    """
    arcs, joints = sets
    sources, targets = (empty_mask(len(joints.src), len(shares)) for _ in range(2))
    mark_arcs(arcs.src, arcs.dst - arcs.dst.dtype.type(len(joints.src)), parts[0], False, sources, targets)
    mark_arcs(joints.src, joints.src, parts[1], False, sources, targets)
    local = count_parts(sources, targets, len(shares))
    both = count_parts(sources, sources, len(shares)) + count_parts(targets, targets, len(shares)) - local
    room = both + local.sum() * shares
    return room / room.sum()


def _refine_both(sets: Sets, parts: Pair, limits: Pair, degrees: np.ndarray, shares: np.ndarray) -> Pair:
    """Sweeps over arcs and joints in turn; both are counted in one table."""
    table = empty_table(degrees, len(shares))
    copies = np.zeros(len(shares), dtype=np.int64)
    states = []
    for edges, part in zip(sets, parts, strict=True):
        # The load of a set is its own edges: arcs of the arcs, owned vertices of the joints.
        states.append(State(part.copy(), table, np.bincount(part, minlength=len(shares)).astype(float), copies))
        count_edges(edges, part, table)
    count_copies(table, copies)
    room = _room(sets, parts, shares)
    for s in SCHEDULE:
        for edges, state, limit in zip(sets, states, limits, strict=True):
            # Each set has its own parts and loads; the table and the copies belong to both, so each sees the other's
            # moves.
            sweep(edges, state, limit, BETA, s, room)
    rebalance(sets[0], states[0], limits[0])
    return states[0].edge_part, states[1].edge_part
