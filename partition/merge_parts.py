"""Fewer parts from a partition folder, in seconds: parts are joined whole, and the largest of them give edges away.

Nothing is clustered or refined again, so more copies are left than a new cut has: for a job that goes on with fewer
ranks. Two parts are joined where that makes the lightest part; among pairs about as light, where they exchange most.

Shapes: M edges of the edge list, N vertices, P old parts, Q new parts.
Source: ours.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.edge_list import EdgeList
from distgnn.errors import InputError
from distgnn.partition.core.local_graph import LocalGraph
from distgnn.partition.core.owners import balanced_owners
from distgnn.partition.core.shares import part_shares
from distgnn.partition.core.vertex_cut import VertexCut, part_dtype
from distgnn.partition.folder.manifest import Progress
from distgnn.partition.folder.manifest_file import read_manifest
from distgnn.partition.folder.reader import partition_files
from distgnn.partition.moves.cut_state import arc_limit, rebalance, start_state
from distgnn.partition.pipeline import write_cut
from distgnn.partition.repartition import config_of, find_edges, load_parts, whole_of
from distgnn.system.atomic import check_target

BALANCE = 1.05  # arcs of a part over its share, beyond which it gives edges away
ABOUT_AS_LIGHT = 1.1


def merge_parts(
    folder: str | Path, num_parts: int, out: str | Path, *, overwrite: bool = False, progress: Progress | None = None
) -> dict[str, Any]:
    """Join the parts of a partition folder into `num_parts` parts and write them to `out`.

    Returns: the manifest, with the old number of parts as "merged_from".
    Raises: PartitionFormatError where the old folder is damaged, InputError; nothing is left behind then.
    Notes: capacities of joined parts are added. Memory as of `repartition`, less what its cut needs.
    """
    tell = progress or (lambda phase, done, total: None)
    check_target(out, partition_files, overwrite)
    old_parts = read_manifest(folder)["num_parts"]
    if not 1 <= num_parts <= old_parts:
        raise InputError(f"{old_parts} parts cannot be merged into {num_parts}: expected 1 to {old_parts}")
    manifest, parts = load_parts(folder, progress)
    graph, edge_list = whole_of(folder, manifest, parts)
    tell("cut", 0, 1)
    config = config_of(manifest)
    group = join_parts(np.array([part.num_arcs for part in parts]), np.array(manifest["pair_rows"]), num_parts)
    capacities = manifest.get("capacities")
    speeds = None if capacities is None else np.bincount(group, weights=capacities, minlength=num_parts)
    shares = part_shares(num_parts, None if speeds is None else tuple(speeds))
    forward, reverse = _joined_edges(folder, manifest, parts, edge_list, group.astype(part_dtype(num_parts)))
    if reverse is None and num_parts > 1:
        state = start_state(edge_list, forward, num_parts)
        rebalance(edge_list, state, arc_limit(edge_list, shares, BALANCE))
        forward = state.edge_part
    owner = balanced_owners(edge_list, forward, shares, reverse, config.update or "owners")
    cut = VertexCut(num_parts, forward, owner, reverse, _old_order(parts, edge_list.num_nodes), speeds)
    tell("cut", 1, 1)
    how = config.manifest() | {"merged_from": old_parts}
    return write_cut(graph, edge_list, cut, out, how, overwrite, progress)


def join_parts(arcs: np.ndarray, pair_rows: np.ndarray, num_parts: int) -> np.ndarray:
    """New part int64 [P] of each old part, numbered by the first old part in each.

    Args: arcs: [P]; pair_rows: [P, P] rows that each part sends to each other.
    """
    groups = [[part] for part in range(len(arcs))]
    rows = pair_rows + pair_rows.T
    while len(groups) > num_parts:
        loads = [int(arcs[group].sum()) for group in groups]
        pairs = [(a, b) for a in range(len(groups)) for b in range(a + 1, len(groups))]
        lightest = min(loads[a] + loads[b] for a, b in pairs)
        light = [(a, b) for a, b in pairs if loads[a] + loads[b] <= ABOUT_AS_LIGHT * lightest]
        a, b = max(light, key=lambda pair: int(rows[np.ix_(groups[pair[0]], groups[pair[1]])].sum()))
        groups[a] += groups.pop(b)
    joined = np.empty(len(arcs), dtype=np.int64)
    for number, group in enumerate(groups):
        joined[group] = number
    return joined


def _joined_edges(
    folder: str | Path, manifest: dict, parts: list[LocalGraph], edge_list: EdgeList, group: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """New part [M] of each edge's forward arc, and of its reverse arc where one is in another part."""
    part_of = find_edges(folder, manifest, parts)[0]
    if not edge_list.two_way:
        return group[part_of], None
    reverse = part_of.copy()
    for part in parts:
        # The reverse arc of edge e has the id e + M; a self-loop has none.
        ids = part.arc_ids[part.arc_ids >= len(part_of)] - len(part_of)
        reverse[ids] = part.part_id
    return group[part_of], None if (group[reverse] == group[part_of]).all() else group[reverse]


def _old_order(parts: list[LocalGraph], num_nodes: int) -> np.ndarray:
    """Key int64 [N] that keeps vertices of an old part side by side, in their old order."""
    order, first = np.empty(num_nodes, dtype=np.int64), 0
    for part in parts:
        order[part.global_ids[: part.num_owned]] = first + np.arange(part.num_owned)
        first += part.num_owned
    return order
