"""Cutting within a memory limit: what fits, and the run on disk from the loaded graph to the folder.

Shapes: N vertices, E edges of the input, P parts.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from scipy import sparse

from distgnn.config.cut import CutConfig
from distgnn.datasets import GraphData
from distgnn.datasets.registry import loading_bytes
from distgnn.errors import InputError
from distgnn.partition.core.shares import part_shares
from distgnn.partition.folder.manifest import Clock, check_size, describe_cut, describe_graph
from distgnn.partition.folder.writer import num_writers
from distgnn.partition.on_disk.phases import ARC_BYTES, FILLED, DiskCut, check_fits, own_bytes
from distgnn.partition.on_disk.workspace import MemoryLimit, Workspace, resident
from distgnn.partition.refinement.replica_table import table_bytes

# Generous, edge list included.
EDGE_BYTES = {"cmr": 80, "libra": 40, "metis": 120, "kahypar": 400, "random": 40}
REFINE_EDGE_BYTES = 60
NODE_BYTES = 160


def in_memory_bytes(graph: GraphData, num_parts: int, config: CutConfig) -> int:
    """What a cut, and writing its parts, needs beside the graph if all arrays are in memory: a generous estimate."""
    refined, both = config.refined, config.direction == "both"
    edge = max(EDGE_BYTES[config.method], REFINE_EDGE_BYTES if refined else 0)
    merges = 24 if both and graph.directed else 0
    arcs = len(graph.edges) * (1 if graph.directed and not both else 2)
    edges = len(graph.edges) * (edge + merges)
    vertices = graph.num_nodes * (NODE_BYTES + num_parts // 4)
    return edges + vertices + int(ARC_BYTES * arcs * num_writers(num_parts) / num_parts)


def check_loading(source: str | Path, data_root: str | Path | None, limit: int) -> None:
    """Raise `InputError` where what loading alone takes in memory is known to be beyond the limit."""
    need, own = loading_bytes(source, data_root), resident()[1]
    if need and need + own > limit:
        raise InputError(
            f"loading {source} takes about {need / 1e9:.1f} GB beside the {own / 1e9:.1f} GB of this process, the "
            f"limit is {limit / 1e9:.1f} GB: text and generated graphs are in memory; save it as a graph folder "
            "(edges.npy, feats.npy), which is mapped"
        )


def check_normalizing(graph: GraphData, limit: int) -> None:
    """Raise `InputError` where normalised features, which are in memory, are beyond the limit."""
    need = 4 * graph.num_nodes * graph.num_feats
    if not sparse.issparse(graph.feats) and need + resident()[1] > limit:
        raise InputError(
            f"normalised features of graph {graph.name!r} take {need / 1e9:.1f} GB in memory, the limit is "
            f"{limit / 1e9:.1f} GB: normalise feats.npy beforehand"
        )


def works_on_disk(
    graph: GraphData, num_parts: int, config: CutConfig, limit: int, say: Callable[[str], None] | None = None
) -> bool:
    """Whether the cut is to be made on disk: `cmr` where it does not fit."""
    total = in_memory_bytes(graph, num_parts, config) + resident()[1]
    if total <= FILLED * limit:
        return False
    about = f"needs about {total / FILLED / 1e9:.1f} GB, the limit is {limit / 1e9:.1f} GB"
    if config.method != "cmr" or config.groups > 1:
        raise InputError(
            f"{config.method} of graph {graph.name!r} into {num_parts} parts {about}; cmr in one level works on disk"
        )
    if say is not None:
        say(f"cmr {about}: it works on disk, with more copies")
    return True


def partition_on_disk(
    graph: GraphData,
    num_parts: int,
    config: CutConfig,
    folder: Path,
    memory: MemoryLimit,
    clock: Clock,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Cut a loaded graph with all large arrays on disk and write the parts.

    Args: folder: an empty one to be filled, and for the work; memory: entered.
    Returns: what the manifest says of the cut, among it `phases`: seconds, CPU seconds and peaks of memory by phase;
        and its sections of the parts.
    """
    shares = part_shares(num_parts, config.capacities)
    own, two_way = resident()[1], config.direction == "both" or not graph.directed
    # Before anything is written, with what is known by now; again below, when degrees are known.
    needs = own_bytes(graph.num_nodes, len(graph.edges), num_parts, two_way, table=0)
    check_fits(needs, own, memory.limit, graph.name)
    with Workspace(folder / "work") as space:
        work = DiskCut(graph, shares, space, memory, clock)
        edge_list = work.edges(config.direction, config.self_loops)
        check_size(edge_list, num_parts, graph.name)
        table = table_bytes(edge_list.ends, num_parts)
        needs = own_bytes(graph.num_nodes, edge_list.num_edges, num_parts, two_way, table)
        check_fits(needs, own, memory.limit, graph.name)
        book = work.book(edge_list, config.capacities)
        parts = work.write(edge_list, book, folder)
        manifest = describe_cut(graph, edge_list, book, describe_graph(graph, edge_list)) | {"phases": work.measured}
    manifest["phase_seconds"] = {phase: figures["seconds"] for phase, figures in work.measured.items()}
    manifest["seconds"] = round(sum(manifest["phase_seconds"].values()), 3)
    manifest["memory_limit_bytes"] = memory.limit
    return manifest, parts
