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

Need = Callable[[Any, str, str], None]  # need(good, name, what): raise for the file `name` unless it is good


def check_contents(place: Path, manifest: dict, part_id: int, local: LocalGraph, arrays: dict) -> None:
    """Raise `PartitionFormatError` naming the first file of part `part_id` whose contents are out of range."""

    def need(good: Any, name: str, what: str) -> None:
        if not good:
            raise PartitionFormatError(f"{place / name}.npy: {what}")

    part, graph = manifest["parts"][part_id], manifest["graph"]
    _check_rows(need, part_id, part, local)
    _check_blocks(need, part, local)
    _check_plan(need, part_id, local)
    arc_limit = 2 * manifest["num_list_edges"]
    need(_within(local.arc_ids, 0, arc_limit), "arc_ids", f"ids must lie in 0 to {arc_limit - 1}")
    _check_vertex_data(need, part, graph, local, arrays)
    _check_types(need, graph, local)
    if graph.get("num_graphs"):
        ids = local.graph_ids
        need(ids is not None and _within(ids, 0, graph["num_graphs"]), "graph_ids", "ids out of range")
    if graph.get("clusters"):
        places = local.cluster_places
        need(places is not None and _within(places, 0, local.num_nodes), "cluster_places", "places out of range")
    problem = problem_of(local.edge_splits, graph, local.global_ids[: local.num_owned], local.num_nodes)
    if problem is not None:
        need(False, *problem)


def _check_types(need: Need, graph: dict, local: LocalGraph) -> None:
    for name, count in (("edge_types", "num_relations"), ("node_types", "num_node_types")):
        if graph.get(count):
            need(_within(getattr(local, name), 0, graph[count]), name, f"types must lie in 0 to {graph[count] - 1}")


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
    need(_within(ids, 0, local.num_nodes), "global_ids", f"ids must lie in 0 to {local.num_nodes - 1}")
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


def _check_vertex_data(need: Need, part: dict, graph: dict, local: LocalGraph, arrays: dict) -> None:
    need(np.count_nonzero(arrays["train_mask"]) == part["train"], "train_mask", f"expected {part['train']} vertices")
    if graph["multilabel"]:
        need(_within(arrays["labels"], -1, 2), "labels", "labels must be 0, 1 or -1")
    elif graph["labels"]:
        high = graph["num_classes"]
        need(_within(arrays["labels"], -1, high), "labels", f"labels must lie in -1 to {high - 1}")
    if graph["sparse_feats"]:
        indptr, indices, data = (arrays[f"feats_{name}"] for name in ("indptr", "indices", "data"))
        good = len(indices) == len(data) and _rises(indptr, len(indices))
        need(good, "feats_indptr", f"must rise from 0 to {len(indices)}")
        need(_within(indices, 0, graph["num_feats"]), "feats_indices", "columns out of range")
