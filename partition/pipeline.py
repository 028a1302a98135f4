"""From a graph to a partition folder: load, cut, write; or to one part in memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.config.cut import CutConfig, make_config
from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.fields import SPLITS
from distgnn.datasets.findings.cautions import add_training_cautions
from distgnn.datasets.findings.findings import Findings
from distgnn.datasets.link_splits import check_held_out
from distgnn.datasets.pairs import merge_edges
from distgnn.datasets.random_splits import parse_shares, parse_split, stratifies
from distgnn.kernels.runtime.ahead import compiling_ahead
from distgnn.kernels.runtime.compile_line import compile_line
from distgnn.partition.cmr.levels import cluster_places
from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.local_graph import LocalGraph, build_local
from distgnn.partition.core.vertex_cut import VertexCut, part_shares
from distgnn.partition.folder.manifest import Clock, Progress, check_size, describe_cut, describe_graph
from distgnn.partition.folder.reader import data_fields, partition_files
from distgnn.partition.folder.writer import part_data, write_manifest, write_part, write_parts
from distgnn.partition.methods import cut_edges
from distgnn.partition.on_disk.run import check_loading, check_normalizing, partition_on_disk, works_on_disk
from distgnn.partition.on_disk.workspace import MemoryLimit
from distgnn.system.atomic import new_folder
from distgnn.system.units import parse_bytes, peak_rss_bytes

Say = Callable[[str], None]
LAST_KERNELS = "distgnn.partition.last_kernels"


def partition_graph(
    source: Any,
    num_parts: int,
    out: str | Path,
    method: str | CutConfig = "cmr",
    *,
    overwrite: bool = False,
    data_root: str | Path | None = None,
    progress: Progress | None = None,
    say: Say | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Cut a graph into `num_parts` parts and write the partition folder `out`.

    Args:
        source: anything `load_graph` takes: a name, a path, a generator's text, or a graph in memory (`GraphData`,
            `dgl.DGLGraph`, PyG `Data`, NetworkX, scipy, edges [2, E] or [E, 2]).
        method: the name of a method, or a `CutConfig` with everything.
        overwrite: replace an existing partition folder, if nothing else is in it.
        progress: called as progress(phase, done, total); phases are "load", "cut", "write", or of `on_disk/run.py`.
        say: called with a line for what was renamed, left out or looks wrong in the graph (without `say`: one Python
            warning); and where `memory` makes it work on disk.
        options: fields of `CutConfig`: seed, direction, self_loops, order, refine, capacities, …
    Returns: the manifest (contents of `partition.json`): a dict that prints as one line.
    Raises: InputError, GraphFormatError; nothing is left behind then.

    Example:
        >>> manifest = dg.partition_graph(data, 2, "halves")
        >>> manifest["num_parts"], [part["owned"] for part in manifest["parts"]]
        (2, [30, 30])
    """
    config = make_config(method, options).check_parts(num_parts)
    # For its errors: capacities that cannot be are refused before a large graph is loaded.
    part_shares(num_parts, config.capacities)
    clock = Clock(progress)
    memory = None if config.memory is None else MemoryLimit(parse_bytes(config.memory))
    # Everything is written to a folder beside `out`, which takes its place at the end: it is whole or not there.
    ahead = [LAST_KERNELS] if config.method == "cmr" and num_parts > 1 and memory is None else []
    with (
        compile_line(),
        compiling_ahead(ahead),
        new_folder(out, partition_files, overwrite) as folder,
        memory or contextlib.nullcontext(),
    ):
        clock.start("load", 1)
        graph = _load(source, data_root, config, memory, say)
        if memory is not None and works_on_disk(graph, num_parts, config, memory.limit, say):
            # The manifest says what was done, not what was asked for.
            config = replace(config, effort="normal")
            manifest, parts = partition_on_disk(graph, num_parts, config, folder, memory, clock)
        else:
            edge_list = graph.edge_list(config.direction, config.self_loops)
            check_size(edge_list, num_parts, graph.name)
            clock.start("cut", 1)
            cut = cut_edges(edge_list, num_parts, config)
            places = cluster_places(edge_list) if config.clusters else None
            clock.start("write", num_parts)
            manifest, parts = _write_parts(folder, graph, edge_list, cut, clock, places)
        manifest |= config.manifest() | {"peak_rss_bytes": peak_rss_bytes(), "parts": parts}
        return write_manifest(folder, manifest)


def _load(
    source: Any, data_root: str | Path | None, config: CutConfig, memory: MemoryLimit | None, say: Say | None
) -> GraphData:
    """The graph, its features normalised, its vertices split and links held out; what was found in it is said."""
    shares = None if config.link_split is None else parse_shares(config.link_split)
    both = config.direction == "both"
    if memory is not None and isinstance(source, str | Path):
        check_loading(source, data_root, memory.limit)
    findings = Findings()
    graph = load_graph(source, data_root, config.seed, findings, config.renumber)
    if config.merge != "none":
        before, graph = graph.num_edges, merge_edges(graph, config.merge)
        if say is not None:
            say(f"{before - graph.num_edges:,} double edges merged ({config.merge}), {graph.num_edges:,} are left")
    if config.split is not None:
        graph = graph.split_nodes(*parse_split(config.split), seed=config.seed)
        if say is not None:
            sizes = ", ".join(f"{name} {len(getattr(graph, name))}" for name in SPLITS)
            by_class = ", stratified by class" * stratifies(graph)
            say(f"random split by seed {config.seed}{by_class}: {sizes}")
    add_training_cautions(graph, config.direction)
    if say is None:
        findings.warn(graph.name, stacklevel=3)
    else:
        for line in findings.lines():
            say(line)
    if shares is not None:
        graph = graph.split_links(*shares, seed=config.seed, either_way=both)
    elif both and graph.directed:
        check_held_out(graph, either_way=True)
    if config.normalize_feats == "none":
        return graph
    if memory is not None:
        check_normalizing(graph, memory.limit)
    return graph.normalize_feats(config.normalize_feats)


def write_partition(
    graph: GraphData,
    edge_list: EdgeList,
    cut: VertexCut,
    out: str | Path,
    method: str = "custom",
    seed: int = 0,
    order: str = "stored",
    overwrite: bool = False,
    progress: Progress | None = None,
    *,
    how: dict[str, Any] | None = None,
    places: np.ndarray | None = None,
) -> dict[str, Any]:
    """Write the partition folder of a cut that is already there.

    Args: method, seed, order: only go into the manifest; how: all that it says of the method, in their place, as
        `CutConfig.manifest` gives it; places: [N], of `cluster_places`.
    Returns: the manifest. Raises: InputError; nothing is left behind then.
    """
    how = how or {"method": method, "seed": int(seed), "order": order}
    cut.check(edge_list)
    clock = Clock(progress)
    with new_folder(out, partition_files, overwrite) as folder:
        clock.start("write", cut.num_parts)
        manifest, parts = _write_parts(folder, graph, edge_list, cut, clock, places)
        return write_manifest(folder, manifest | how | {"peak_rss_bytes": peak_rss_bytes(), "parts": parts})


def _write_parts(
    folder: Path, graph: GraphData, edge_list: EdgeList, cut: VertexCut, clock: Clock, places: np.ndarray | None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Write all part folders; returns what the manifest says of the cut, and its sections of the parts."""
    book = PartitionBook(edge_list, cut)
    masks, section = graph.split_masks(), describe_graph(graph, edge_list, places is not None)
    book.prepare()

    def write(part_id: int) -> dict[str, Any]:
        return write_part(folder, build_local(book, part_id, section, places), graph, edge_list, masks)

    parts = write_parts(cut.num_parts, write, clock.step)
    seconds = clock.seconds()
    times = {"seconds": round(sum(seconds.values()), 3), "phase_seconds": seconds}
    return describe_cut(graph, edge_list, book, section) | times, parts


def local_part(
    graph: GraphData, edge_list: EdgeList, cut: VertexCut, part_id: int, places: np.ndarray | None = None
) -> LocalGraph:
    """One part with its features, labels and masks, as `load_part` gives it, of a graph that is in every rank's memory.

    Args: edge_list: made from the graph; cut: of that edge list; places: [N], of `cluster_places`, or None.
    Raises: InputError where the cut does not fit.
    """
    cut.check(edge_list)
    section = describe_graph(graph, edge_list, places is not None)
    local = build_local(PartitionBook(edge_list, cut), part_id, section, places)
    arrays = part_data(local, graph, edge_list, graph.split_masks())
    fields = data_fields(local.graph, local.num_owned, {name: array[:] for name, array in arrays.items()})
    return replace(local, **fields)
