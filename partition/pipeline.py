"""From a graph to a partition folder: load, cut, write."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from distgnn.atomic import new_folder
from distgnn.datasets import GraphData, load_graph
from distgnn.datasets.arc_data import num_relations
from distgnn.errors import InputError
from distgnn.partition.book import PartitionBook
from distgnn.partition.layout import FORMAT_VERSION, MANIFEST
from distgnn.partition.local_graph import build_local
from distgnn.partition.methods import check_request, cut_edges
from distgnn.partition.shares import part_shares
from distgnn.partition.vertex_cut import VertexCut
from distgnn.partition.writer import write_manifest, write_part

Progress = Callable[[str, int, int], None]


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
) -> dict:
    """Cut a graph into `num_parts` parts and write the partition folder `out`.

    Args:
        source: a `GraphData`, or anything `load_graph` takes.
        method, seed, order, refine, capacities, groups, update: see `cut_edges`.
        direction, self_loops: see `GraphData.edge_list`.
        overwrite: replace an existing partition folder.
        normalize_feats: "none", or as `GraphData.normalize_feats` takes it.
        progress: called as progress(phase, done, total) with phases "load", "cut" and "write".
    Returns: the manifest (contents of `partition.json`).
    Raises: InputError, GraphFormatError; nothing is left behind then.
    """
    clock = _Clock(progress)
    check_request(num_parts, method, seed, order, groups, update)
    part_shares(num_parts, capacities)
    with new_folder(out, MANIFEST, overwrite) as folder:
        clock.start("load", 1)
        graph = source.check() if isinstance(source, GraphData) else load_graph(source, data_root, seed)
        if normalize_feats != "none":
            graph = graph.normalize_feats(normalize_feats)
        edge_list = graph.edge_list(direction, self_loops)
        check_size(edge_list, num_parts, graph.name)
        clock.start("cut", 1)
        cut = cut_edges(edge_list, num_parts, method, seed, order, refine, capacities, groups, update)
        clock.start("write", num_parts)
        how = {"method": method, "seed": int(seed), "order": order, "refined": bool(refine) or method.startswith("cmr")}
        manifest = _write_all(folder, graph, edge_list, cut, how | {"groups": int(groups), "update": update}, clock)
    return manifest


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
) -> dict:
    """Write the partition folder of a cut that is already there; `method`, `seed`, `order` are only noted in it.

    Returns: the manifest. Raises: InputError; nothing is left behind then.
    """
    cut.check(edge_list)
    clock = _Clock(progress)
    with new_folder(out, MANIFEST, overwrite) as folder:
        clock.start("write", cut.num_parts)
        how = {"method": method, "seed": int(seed), "order": order}
        return _write_all(folder, graph, edge_list, cut, how, clock)


def check_size(edge_list, num_parts: int, name: str) -> None:
    """Refuse more parts than arcs: some rank would have nothing to do at all."""
    if edge_list.num_arcs == 0:
        raise InputError(f"graph {name!r} has no edges: there is nothing to cut")
    if num_parts > edge_list.num_arcs:
        raise InputError(f"{num_parts} parts are more than the {edge_list.num_arcs} arcs of graph {name!r}")


class _Clock:
    """Seconds per phase, and the caller's progress report."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress or (lambda phase, done, total: None)
        self._began: dict[str, float] = {}

    def start(self, phase: str, total: int) -> None:
        self._finish_last()
        self._began[phase] = time.perf_counter()
        self._phase, self._total = phase, total
        self._progress(phase, 0, total)

    def step(self, done: int) -> None:
        self._progress(self._phase, done, self._total)

    def _finish_last(self) -> None:
        if self._began:
            self.step(self._total)

    def seconds(self) -> dict[str, float]:
        times = [*self._began.values(), time.perf_counter()]
        return {phase: round(times[i + 1] - times[i], 3) for i, phase in enumerate(self._began)}


def _write_all(folder: Path, graph: GraphData, edge_list, cut: VertexCut, how: dict, clock: _Clock) -> dict:
    book = PartitionBook(edge_list, cut)
    masks = graph.split_masks()
    parts = []
    for part_id in range(cut.num_parts):
        parts.append(write_part(folder, build_local(book, part_id), graph, edge_list, masks))
        clock.step(part_id + 1)
    seconds = clock.seconds()
    manifest = _describe_cut(graph, edge_list, book) | how
    manifest["seconds"] = round(sum(seconds.values()), 3)
    manifest["phase_seconds"] = seconds
    manifest["peak_rss_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return write_manifest(folder, manifest | {"parts": parts})


def _describe_cut(graph: GraphData, edge_list, book: PartitionBook) -> dict:
    measures = ("replication_factor", "edge_balance", "owned_balance", "copies_balance")
    return {
        "format_version": FORMAT_VERSION,
        "name": graph.name,
        "num_parts": book.num_parts,
        "num_nodes": int(graph.num_nodes),
        "num_edges": len(graph.edges),
        "num_rows": len(edge_list.src),
        "num_arcs": int(edge_list.num_arcs),
        "direction": edge_list.direction,
        "self_loops": edge_list.self_loops,
        "edge_report": {key: int(value) for key, value in edge_list.report.items()},
        **{name: round(getattr(book, name), 6) for name in measures},
        "capacities": None if book.cut.capacities is None else [float(speed) for speed in book.cut.capacities],
        "exchange_rows": book.exchange_rows,
        "max_rank_rows": book.max_rank_rows,
        "pair_rows": book.pair_rows.tolist(),
        "graph": describe_graph(graph, edge_list),
    }


def describe_graph(graph: GraphData, edge_list) -> dict:
    """The `graph` section of the manifest: widths, kinds, and labelled vertices per split."""
    counts = {split: int(mask.sum()) for split, mask in graph.split_masks().items()}
    return {
        "num_feats": int(graph.num_feats),
        "num_classes": int(graph.num_classes),
        "labels": graph.labels is not None,
        "multilabel": bool(graph.multilabel),
        "sparse_feats": hasattr(graph.feats, "tocsr"),
        "edge_weight": edge_list.edge_weight is not None,
        "directed": bool(graph.directed),
        "num_edge_feats": graph.num_edge_feats,
        "num_relations": num_relations(graph, edge_list),
        "num_node_types": graph.num_node_types,
        **counts,
    }
