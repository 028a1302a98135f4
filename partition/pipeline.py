"""From a graph to a partition folder: load, cut, write."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path

from distgnn.datasets import GraphData, load_graph
from distgnn.partition.core.book import PartitionBook
from distgnn.partition.core.local_graph import build_local
from distgnn.partition.core.shares import part_shares
from distgnn.partition.core.vertex_cut import VertexCut
from distgnn.partition.epoch.epoch_price import EpochPrices, predict_epoch, read_prices
from distgnn.partition.folder.manifest import Clock, Progress, check_size, describe_cut
from distgnn.partition.folder.reader import partition_files
from distgnn.partition.folder.writer import write_manifest, write_part
from distgnn.partition.methods import check_objective, check_request, cut_edges
from distgnn.partition.on_disk.memory_guard import MemoryGuard
from distgnn.partition.on_disk.run import check_loading, check_normalizing, partition_on_disk, works_on_disk
from distgnn.system.atomic import new_folder
from distgnn.system.sizes import parse_bytes, peak_rss_bytes


def partition_graph(
    source: str | Path | GraphData,
    num_parts: int,
    out: str | Path,
    method: str = "cmr",
    seed: int = 0,
    direction: str = "stored",
    self_loops: str = "keep",
    order: str = "shuffled",
    overwrite: bool = False,
    data_root: str | Path | None = None,
    normalize_feats: str = "none",
    progress: Progress | None = None,
    refine: bool = False,
    capacities: Sequence[float] | None = None,
    groups: int = 1,
    update: str = "owners",
    memory: str | int | None = None,
    say: Callable[[str], None] | None = None,
    objective: str = "rows",
    prices: str | Path | EpochPrices | None = None,
) -> dict:
    """Cut a graph into `num_parts` parts and write the partition folder `out`.

    Args:
        source: a `GraphData`, or anything `load_graph` takes.
        method, seed, order, refine, capacities, groups, update: see `cut_edges`.
        direction, self_loops: see `GraphData.edge_list`.
        overwrite: replace an existing partition folder.
        normalize_feats: "none", or as `GraphData.normalize_feats` takes it.
        progress: called as progress(phase, done, total) with phases "load", "cut" and "write", or those of
            `out_of_core`.
        memory: bytes, or text as "8GB", that the process may have resident; where `cmr` needs more, `cmr-stream` works
            on disk instead, in a folder beside `out` that a run with the same arguments goes on from after a kill.
        say: called with a line about such a choice.
        objective: see `cut_edges`; prices: `EpochPrices` or a file of them (`distgnn calibrate --prices`), with which
            the manifest also predicts the epoch of the worst rank.
    Returns: the manifest (contents of `partition.json`).
    Raises: InputError, GraphFormatError; nothing is left behind then.
    """
    clock = Clock(progress)
    check_request(num_parts, method, seed, order, groups, update)
    part_shares(num_parts, capacities)
    if prices is not None and not isinstance(prices, EpochPrices):
        prices = read_prices(prices)
    check_objective(objective, prices, method, refine, groups)
    how = {"method": method, "seed": int(seed), "order": order, "refined": bool(refine) or method.startswith("cmr")}
    how |= {"groups": int(groups), "update": update, "objective": objective}
    guard = contextlib.nullcontext() if memory is None else MemoryGuard(parse_bytes(memory))
    with new_folder(out, partition_files, overwrite) as folder, guard:
        clock.start("load", 1)
        graph = _load(source, data_root, seed, normalize_feats, None if memory is None else guard.limit)
        if memory is not None and works_on_disk(graph, num_parts, how, refine, direction, guard.limit, say):
            how["method"] = "cmr-stream"
            check_objective(objective, prices, "cmr-stream", refine, groups)
            choices = {"direction": direction, "self_loops": self_loops, "capacities": capacities}
            return partition_on_disk(graph, num_parts, Path(out), folder, how, choices, guard, clock, say, prices)
        edge_list = graph.edge_list(direction, self_loops)
        check_size(edge_list, num_parts, graph.name)
        clock.start("cut", 1)
        wishes = {"update": update, "objective": objective, "prices": prices}
        cut = cut_edges(edge_list, num_parts, method, seed, order, refine, capacities, groups, **wishes)
        clock.start("write", num_parts)
        return _write_all(folder, graph, edge_list, cut, how, clock, prices)


def _load(source, data_root, seed: int, normalize_feats: str, limit: int | None) -> GraphData:
    """The graph, its features normalised; limit: bytes of memory, or None."""
    if limit is not None and not isinstance(source, GraphData):
        check_loading(source, data_root, limit)
    graph = source.check() if isinstance(source, GraphData) else load_graph(source, data_root, seed)
    if normalize_feats == "none":
        return graph
    if limit is not None:
        check_normalizing(graph, limit)
    return graph.normalize_feats(normalize_feats)


def write_partition(
    graph: GraphData,
    edge_list,
    cut: VertexCut,
    out: str | Path,
    method: str = "custom",
    seed: int = 0,
    order: str = "stored",
    overwrite: bool = False,
    progress: Progress | None = None,
    noted: dict | None = None,
) -> dict:
    """Write the partition folder of a cut that is already there.

    Args: method, seed, order and whatever else is `noted` only go into the manifest.
    Returns: the manifest. Raises: InputError; nothing is left behind then.
    """
    cut.check(edge_list)
    clock = Clock(progress)
    with new_folder(out, partition_files, overwrite) as folder:
        clock.start("write", cut.num_parts)
        how = {"method": method, "seed": int(seed), "order": order} | (noted or {})
        return _write_all(folder, graph, edge_list, cut, how, clock)


def _write_all(
    folder: Path,
    graph: GraphData,
    edge_list,
    cut: VertexCut,
    how: dict,
    clock: Clock,
    prices: EpochPrices | None = None,
) -> dict:
    book = PartitionBook(edge_list, cut)
    masks = graph.split_masks()
    parts = []
    for part_id in range(cut.num_parts):
        parts.append(write_part(folder, build_local(book, part_id), graph, edge_list, masks))
        clock.step(part_id + 1)
    seconds = clock.seconds()
    manifest = describe_cut(graph, edge_list, book) | how
    if prices is not None:
        manifest["predicted_epoch"] = predict_epoch(manifest | {"parts": parts}, prices)
    manifest["seconds"] = round(sum(seconds.values()), 3)
    manifest["phase_seconds"] = seconds
    manifest["peak_rss_bytes"] = peak_rss_bytes()
    return write_manifest(folder, manifest | {"parts": parts})
