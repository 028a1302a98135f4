"""Check that a part's arrays make sense together: the second line behind checksums, for folders others wrote.

Shapes: V local rows, O owned, S and T source and target halos, P parts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.links.part_edges import problem_of
from distgnn.errors import PartitionFormatError
from distgnn.partition.core.local_graph import BLOCKS, LocalGraph
from distgnn.partition.core.part_arrays import arrays_of

Need = Callable[[Any, str, str], None]  # need(good, name, what): raise for the file `name` unless it is good


def check_contents(
    place: Path, manifest: dict[str, Any], part_id: int, local: LocalGraph, arrays: dict[str, Any]
) -> None:
    """Raise `PartitionFormatError` naming the first file of part `part_id` whose contents are out of range."""

    def need(good: Any, name: str, what: str) -> None:
        if not good:
            raise PartitionFormatError(f"{place / name}.npy: {what}")

    part, graph = manifest["parts"][part_id], manifest["graph"]
    _check_rows(need, part_id, part, local)
    _check_blocks(need, part, local)
    _check_plan(need, part_id, local)
    need(np.count_nonzero(arrays["train_mask"]) == part["train"], "train_mask", f"expected {part['train']} vertices")
    if graph["sparse_feats"]:
        entries = len(arrays["feats_indices"])
        good = entries == len(arrays["feats_data"]) and _rises(arrays["feats_indptr"], entries)
        need(good, "feats_indptr", f"must rise from 0 to {entries}")
    limits = graph | {"num_nodes": local.num_nodes, "num_arc_ids": 2 * manifest["num_list_edges"], "flags": 2}
    for array in arrays_of(graph):
        if array.values is not None:
            what, low, high = array.values[0], array.values[1], limits[array.values[2]]
            need(_within(arrays[array.name], low, high), array.name, f"{what} must lie in {low} to {high - 1}")
    problem = problem_of(local.edge_splits, graph, local.global_ids[: local.num_owned], local.num_nodes)
    if problem is not None:
        need(False, *problem)


def _within(values: np.ndarray, low: int, high: int) -> bool:
    return values.size == 0 or bool(values.min() >= low and values.max() < high)


def _rises(indptr: np.ndarray, count: int) -> bool:
    """From 0 to `count`, never falling; the bounds come first, because a difference of huge numbers wraps."""
    # The ends first, then the range, then the steps: each makes the next one safe.
    ends = indptr[0] == 0 and indptr[-1] == count
    return bool(ends and _within(indptr, 0, count + 1) and (np.diff(indptr) >= 0).all())


def _check_rows(need: Need, part_id: int, part: dict, local: LocalGraph) -> None:
    counts = local.halo_counts
    # A part has no halo of its own. The range comes first: a sum of huge counts would wrap and could be right.
    need(_within(counts, 0, part["rows"] + 1) and not counts[part_id].any(), "halo_counts", "impossible counts")
    need(part["interior"] <= part["owned"] <= part["rows"], "global_ids", "more owned than local rows")
    need(part["owned"] + counts.sum() == part["rows"], "halo_counts", "does not add up to the local rows")
    need(local.num_source_halos == part["source_halos"], "halo_counts", "does not add up to the source halos")
    need(local.num_target_halos == part["target_halos"], "halo_counts", "does not add up to the target halos")
    ids = local.global_ids
    # A vertex with two rows would be updated twice.
    need(len(np.unique(ids)) == len(ids), "global_ids", "an id stands twice")
    for name in ("in_degrees", "out_degrees"):
        need(_within(getattr(local, name), 0, 2**62), name, "negative degrees")


def _check_blocks(need: Need, part: dict, local: LocalGraph) -> None:
    # Columns of owned_owned, owned_halo, halo_owned, halo_halo.
    columns = (part["owned"], part["source_halos"]) * 2
    for name, num_columns in zip(BLOCKS, columns, strict=True):
        indptr, indices = local.blocks[name]
        need(_rises(indptr, len(indices)), f"{name}_indptr", f"must rise from 0 to {len(indices)}")
        need(_within(indices, 0, num_columns), f"{name}_indices", f"columns must lie in 0 to {num_columns - 1}")
    arcs = sum(len(block.indices) for block in local.blocks.values())
    need(arcs == local.num_arcs, "arc_ids", f"{local.num_arcs} ids for {arcs} arcs")


def _check_plan(need: Need, part_id: int, local: LocalGraph) -> None:
    for verb in ("broadcast", "reduce"):
        indptr, rows = getattr(local.plan, f"{verb}_indptr"), getattr(local.plan, f"{verb}_rows")
        # A rank sends itself nothing, and only boundary rows have copies elsewhere.
        good = _rises(indptr, len(rows))
        need(good and indptr[part_id] == indptr[part_id + 1], f"{verb}_indptr", f"must rise from 0 to {len(rows)}")
        owned = f"rows must lie in {local.num_interior} to {local.num_owned - 1} (boundary)"
        need(_within(rows, local.num_interior, local.num_owned), f"{verb}_rows", owned)
