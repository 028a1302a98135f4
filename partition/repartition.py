"""Cut a graph anew from a partition folder of it: nothing else is needed, and nothing is lost.

Arcs, weights, features and relations of arcs are found again by global arc id; features, labels, splits and types of
vertices by global vertex id. Rows of features stay where they are, mapped, until they are written.

Shapes: M edges of the edge list, N vertices, A arcs of a part, O owned rows, D width.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from distgnn.config.cut import EFFORTS, METHODS, ORDERS, CutConfig, check_names
from distgnn.config.task import SPLITS
from distgnn.datasets import GraphData
from distgnn.datasets.edge_list import EdgeList, node_kinds
from distgnn.datasets.link_splits import whole_edge_splits
from distgnn.datasets.typed import relation_starts, set_views, type_ranges
from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition.cmr.levels import cluster_places
from distgnn.partition.core.book import PartitionBook, balance
from distgnn.partition.core.local_graph import LocalGraph
from distgnn.partition.core.owners import balanced_owners
from distgnn.partition.core.part_arrays import OF_VERTICES, arrays_of
from distgnn.partition.core.vertex_cut import VertexCut, part_dtype, part_shares
from distgnn.partition.folder.manifest import Progress, check_size, names_of
from distgnn.partition.folder.manifest_file import read_manifest
from distgnn.partition.folder.reader import load_part, partition_files
from distgnn.partition.folder.writer import Rows
from distgnn.partition.methods import cut_edges
from distgnn.partition.pipeline import write_partition
from distgnn.partition.refinement.cut_state import arc_limit, rebalance, start_state
from distgnn.system.atomic import check_target

# From the array of a part to the field of the graph
BACK = {"node_names": names_of} | {f"{split}_mask": np.flatnonzero for split in SPLITS}
OPTIONS = ("method", "seed", "order", "refine", "effort", "capacities")

MEASURES = ("replication_factor", "exchange_rows", "max_rank_rows", "edge_balance", "owned_balance", "copies_balance")

BALANCE = 1.05  # arcs of a part over its share, beyond which it gives edges away
ABOUT_AS_LIGHT = 1.1


def _places(ids: list[np.ndarray], size: int) -> np.ndarray:
    """int64 [size]: where the row of each id stands in the tables of all parts, one behind the other; -1: nowhere."""
    places = np.full(size, -1, dtype=np.int64)
    places[np.concatenate(ids)] = np.arange(sum(map(len, ids)))
    return places


def _gathered(tables: list[Any], places: np.ndarray) -> Any:
    """The rows at these places [n] of tables that follow one another; of arrays they are read when asked for."""
    if sparse.issparse(tables[0]):
        return sparse.vstack(tables, format="csr")[places]
    if tables[0].dtype.kind == "U":
        return np.concatenate(tables)[places]
    starts, width, dtype = np.cumsum([0, *map(len, tables)]), tables[0].shape[1:], tables[0].dtype

    def take(some: np.ndarray) -> np.ndarray:
        out = np.empty((len(some), *width), dtype=dtype)
        pieces = np.searchsorted(starts, some, side="right") - 1
        # One table after the other: each is a mapped file.
        for number in np.unique(pieces):
            chosen = pieces == number
            out[chosen] = tables[number][some[chosen] - starts[number]]
        return out

    return Rows(take, places, width, dtype)


def repartition(
    folder: str | Path,
    num_parts: int,
    out: str | Path,
    *,
    overwrite: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Cut the graph of a partition folder into another number of parts and write them to `out`.

    Args: as of `partition_graph`; options: method, effort, seed and order, by default (None) those of the old cut;
        refine, capacities.
    Returns: the manifest.
    Raises: PartitionFormatError where the old folder is damaged, InputError; nothing is left behind then.
    Notes: gives the same files as `partition_graph` from the source. Memory: 20 bytes per edge of the edge list, 8 per
        vertex, and what the cut needs; features stay on disk.
    """
    tell = progress or (lambda phase, done, total: None)
    check_names(options, OPTIONS)
    old = read_manifest(folder)
    # None means: as in the old cut.
    given = {name: value for name, value in options.items() if value is not None}
    config = replace(config_of(old), **given)
    if "effort" not in given and not config.uses_effort:
        config = replace(config, effort="normal")  # the old cut's, of another method or refinement
    config.check_parts(num_parts)
    check_target(out, partition_files, overwrite)
    graph, edge_list = load_whole(folder, progress)[2:4]
    check_size(edge_list, num_parts, graph.name)
    tell("cut", 0, 1)
    cut = cut_edges(edge_list, num_parts, config)
    tell("cut", 1, 1)
    places = cluster_places(edge_list) if config.clusters else None
    how = config.manifest()
    return write_partition(graph, edge_list, cut, out, overwrite=overwrite, progress=progress, how=how, places=places)


def config_of(manifest: dict[str, Any]) -> CutConfig:
    """How an old cut was made; defaults where it was made by something else."""
    found: dict[str, Any] = {"seed": int(manifest["seed"]), "clusters": manifest["graph"].get("clusters", False)}
    for name, choices in (("method", METHODS), ("effort", EFFORTS), ("order", ORDERS)):
        if manifest.get(name) in choices:
            found[name] = manifest[name]
    return CutConfig(**found)


class Whole(NamedTuple):
    """A loaded partition folder: its manifest, its parts (mapped), and the graph and edge list as they were cut; home:
    int32 [M], the part of each edge's forward arc."""

    manifest: dict[str, Any]
    parts: list[LocalGraph]
    graph: GraphData
    edge_list: EdgeList
    home: np.ndarray


def load_whole(folder: str | Path, progress: Progress | None = None) -> Whole:
    """All that a partition folder holds. Raises: PartitionFormatError."""
    manifest, tell = read_manifest(folder), progress or (lambda phase, done, total: None)
    parts = []
    for part_id in range(manifest["num_parts"]):
        parts.append(load_part(folder, part_id))
        tell("load", part_id + 1, manifest["num_parts"])
    edge_list, home, places = _edges(folder, manifest, parts)
    graph, section = _vertices(folder, manifest, parts), manifest["graph"]
    if section.get("types"):
        _put_types(graph, manifest, parts, edge_list)
        return Whole(manifest, parts, graph, edge_list, home)
    if section.get("num_edge_feats"):
        graph.edge_feats = _gathered([part.edge_feats for part in parts], places)
    if section.get("num_relations"):
        graph.edge_types = _gathered([part.edge_types for part in parts], places)[:]
        # Reverse arcs of a directed graph have relations of their own, as many again: half of the number are the
        # graph's.
        inverses = graph.directed and edge_list.two_way
        graph.edge_type_names = tuple(str(t) for t in range(section["num_relations"] // (2 if inverses else 1)))
    return Whole(manifest, parts, graph, edge_list, home)


def _put_types(graph: GraphData, manifest: dict, parts: list[LocalGraph], edge_list: EdgeList) -> None:
    """Types, relations and their columns; relations of reverse arcs are named again when parts are written."""
    section = manifest["graph"]
    relations = parts[0].relations
    if edge_list.direction == "reversed":
        relations = tuple((target, name.removeprefix("rev_"), source) for source, name, target in relations)
    graph.relations = relations[: len(relations) // 2] if edge_list.two_way else relations
    graph.types, graph.type_counts = parts[0].types, tuple(section["type_counts"])
    graph.type_classes = {k: tuple(v) if isinstance(v, list) else v for k, v in section["type_classes"].items()}
    for kind, (begin, end) in type_ranges(graph).items():
        owned = [part.global_ids[: part.num_owned] for part in parts]
        places = _places([some[(some >= begin) & (some < end)] - begin for some in owned], end - begin)
        graph.typed[kind] = _columns([part.typed[kind] for part in parts], section["typed"].get(kind, ()), places)
    graph.edge_types = np.empty(edge_list.num_edges, dtype=np.int16)
    forward = [part.arc_ids < edge_list.num_edges for part in parts]
    for part, mine in zip(parts, forward, strict=True):
        graph.edge_types[part.arc_ids[mine]] = np.asarray(part.edge_types)[mine]
    bounds = relation_starts(graph)
    for number, relation in enumerate(graph.relations):
        ids = [part.arc_ids[part.edge_types == number] - bounds[number] for part in parts]
        tables, names = [part.relation_columns[number] for part in parts], section["relation_columns"][number]
        graph.relation_columns[relation] = _columns(tables, names, _places(ids, sum(map(len, ids))))
    set_views(graph)
    edge_list.node_kinds, edge_list.edge_kinds = node_kinds(graph), graph.edge_types


def _columns(tables: list[dict[str, Any]], names: Iterable[str], places: np.ndarray) -> dict[str, Any]:
    """Columns of one type or relation, of all parts: features stay where they are until they are asked for."""
    found = {}
    for name in names:
        rows = _gathered([table[name] for table in tables], places)
        small = isinstance(rows, Rows) and (rows.ndim == 1 or rows.dtype.kind != "f")
        found[name] = rows[:] if small else rows
    return found


def _edges(folder: str | Path, manifest: dict, parts: list[LocalGraph]) -> tuple[EdgeList, np.ndarray, np.ndarray]:
    """The edge list, and where each forward arc lies: its part int32 [M], and its place among all arcs int64 [M]."""
    num_edges, num_nodes = manifest["num_list_edges"], manifest["num_nodes"]
    home, places, first = np.full(num_edges, -1, dtype=np.int32), np.zeros(num_edges, dtype=np.int64), 0
    src, dst = np.empty((2, num_edges), dtype=np.int32 if num_nodes <= np.iinfo(np.int32).max else np.int64)
    weight = np.empty(num_edges, dtype=np.float32) if manifest["graph"]["edge_weight"] else None
    for part in parts:
        # Ids below the number of edges are forward arcs; each edge has one, and its reverse arc says nothing more.
        forward = np.flatnonzero(part.arc_ids < num_edges)
        ids = part.arc_ids[forward]
        # In a part before this one, or twice in this one.
        if (home[ids] >= 0).any() or len(np.unique(ids)) != len(ids):
            raise PartitionFormatError(f"{folder}: an arc stands twice (in part {part.part_id} again)")
        home[ids], places[ids] = part.part_id, first + forward
        first += part.num_arcs
        sources, targets = _ends(part)
        src[ids], dst[ids] = sources[forward], targets[forward]
        if weight is not None and part.edge_weight is not None:
            weight[ids] = part.edge_weight[forward]
    if (home < 0).any():
        raise PartitionFormatError(f"{folder}: arc {int(np.argmax(home < 0))} is in no part")
    edge_list = EdgeList(
        num_nodes,
        src,
        dst,
        manifest["direction"] == "both" or not manifest["graph"]["directed"],
        edge_weight=weight,
        direction=manifest["direction"],
        self_loops=manifest["self_loops"],
        report=dict(manifest.get("edge_report") or {}),
    )
    return edge_list, home, places


def _ends(part: LocalGraph) -> tuple[np.ndarray, np.ndarray]:
    """Global ids of the source and the target of each local arc, [A] each."""
    # The blocks number columns and rows each in its own way: see LocalGraph.
    owned = part.global_ids[: part.num_owned]
    row_ids = (owned, part.global_ids[part.target_halo_rows])
    column_ids = (owned, part.global_ids[part.source_halo_rows])
    sources, targets = [], []
    for number, (indptr, indices) in enumerate(part.blocks.values()):
        # owned_owned, owned_halo, halo_owned, halo_halo: the first word, number // 2, is the target, the second the
        # source.
        sources.append(column_ids[number % 2][indices])
        targets.append(np.repeat(row_ids[number // 2], np.diff(indptr)))
    return np.concatenate(sources), np.concatenate(targets)


def _vertices(folder: str | Path, manifest: dict, parts: list[LocalGraph]) -> GraphData:
    num_nodes, section = manifest["num_nodes"], manifest["graph"]
    places = _places([part.global_ids[: part.num_owned] for part in parts], num_nodes)
    if (places < 0).any():
        raise PartitionFormatError(f"{folder}: vertex {int(np.argmax(places < 0))} has no owner")

    def column(name: str) -> Any:
        return _gathered([getattr(part, name) for part in parts], places)

    # Only the number of input edges is known any more, and only it is needed.
    edges = np.broadcast_to(np.int64(0), (manifest["num_edges"], 2))
    graph = GraphData(manifest["name"], num_nodes, edges, section["directed"])
    if section["labels"] and not section["multilabel"]:
        graph.num_label_classes = section["num_classes"]
        graph.class_names = tuple(section.get("class_names", ()))
    if section["num_feats"] and not section.get("types"):
        graph.feats = column("feats")
    for array in arrays_of(section):
        if array.name in OF_VERTICES and array.field not in (None, "feats"):
            setattr(graph, array.field, BACK.get(array.name, np.asarray)(column(array.name)[:]))
    if section.get("flat_values") and not section.get("types"):
        graph.node_values = graph.node_values[:, 0]  # type: ignore[index]
    if section.get("num_node_types") and not section.get("types"):
        graph.node_type_names = tuple(str(t) for t in range(section["num_node_types"]))
    graph.arc_order = section.get("arc_order", "listed")
    graph.held_out = section.get("held_out", True)
    try:
        found = whole_edge_splits([part.edge_splits for part in parts], section.get("edge_splits", {}))
    except ValueError as error:
        raise PartitionFormatError(f"{folder}: {error}") from error
    for name, split in found.items():
        setattr(graph, name, split)
    return graph


def against_libra(folder: str | Path, seed: int = 0, progress: Progress | None = None) -> dict[str, Any]:
    """Quality of a partition folder and of Libra's cut (shuffled, arcs limited) of its graph.

    Returns: {"this": …, "libra": …}, each with `replication_factor`, `exchange_rows`, `max_rank_rows`, the three
        balances, and `rows_balance`, the largest rank's exchanged rows over the mean.
    Raises: PartitionFormatError.
    Notes: reads the whole graph; memory as of `repartition` with `libra`.
    """
    manifest, edge_list = read_manifest(folder), load_whole(folder, progress).edge_list
    cut = cut_edges(edge_list, manifest["num_parts"], "libra", seed=seed, capacities=manifest.get("capacities"))
    book = PartitionBook(edge_list, cut)
    # Each row is sent by one rank and received by another, and counts at both.
    mean = 2 * manifest["exchange_rows"] / manifest["num_parts"]
    this = {name: manifest[name] for name in MEASURES}
    this["rows_balance"] = manifest["max_rank_rows"] / mean if mean else 1.0
    libra = {name: getattr(book, name) for name in MEASURES}
    libra["rows_balance"] = balance(book.pair_rows.sum(axis=0) + book.pair_rows.sum(axis=1))
    return {"this": this, "libra": libra}


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
    whole = load_whole(folder, progress)
    manifest, parts, graph, edge_list, _ = whole
    tell("cut", 0, 1)
    config = config_of(manifest)
    group = join_parts(np.array([part.num_arcs for part in parts]), np.array(manifest["pair_rows"]), num_parts)
    capacities = manifest.get("capacities")
    speeds = None if capacities is None else np.bincount(group, weights=capacities, minlength=num_parts)
    shares = part_shares(num_parts, None if speeds is None else tuple(speeds))
    forward, reverse = _joined_edges(whole, group.astype(part_dtype(num_parts)))
    if reverse is None and num_parts > 1:
        state = start_state(edge_list, forward, num_parts)
        rebalance(edge_list, state, arc_limit(edge_list, shares, BALANCE))
        forward = state.edge_part
    owner = balanced_owners(edge_list, forward, shares, reverse)
    # A key that keeps vertices of an old part side by side, in their old order.
    order = _places([part.global_ids[: part.num_owned] for part in parts], edge_list.num_nodes)
    cut = VertexCut(num_parts, forward, owner, reverse, order, speeds)
    tell("cut", 1, 1)
    how = config.manifest() | {"merged_from": old_parts}
    return write_partition(graph, edge_list, cut, out, overwrite=overwrite, progress=progress, how=how)


def join_parts(arcs: np.ndarray, pair_rows: np.ndarray, num_parts: int) -> np.ndarray:
    """New part int64 [P] of each old part, numbered by the first old part in each."""
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


def _joined_edges(whole: Whole, group: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """New part [M] of each edge's forward arc, and of its reverse arc where one is in another part."""
    forward = group[whole.home]
    if not whole.edge_list.two_way:
        return forward, None
    reverse = forward.copy()
    for part in whole.parts:
        # The reverse arc of edge e has the id e + M; a self-loop has none.
        ids = part.arc_ids[part.arc_ids >= len(reverse)] - len(reverse)
        reverse[ids] = group[part.part_id]
    return forward, None if (reverse == forward).all() else reverse
