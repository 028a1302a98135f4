"""Cuts made by DGL, and cuts for DGL: its Libra folder, and the partition book of `dgl.distributed`.

    4Communities/                  as `dgl.distgnn.partition` writes it for 4 parts
        community0.txt …           a line `source,target,weight` for each edge in the part
    book/                          as `dgl.distributed.partition_graph` writes it
        NAME.json                  node_map and edge_map: ranges of new ids of each part
        node_orig_id.npy           the old id of each new one: what partition_graph(…, return_mapping=True) returns
        edge_orig_id.npy           likewise; written, not read

Shapes: N vertices, M edges of the edge list, P parts.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.array_files import read_json, read_npy
from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.text.table import read_table
from distgnn.errors import InputError
from distgnn.partition.baselines.vertex_cover import hybrid_cut
from distgnn.partition.core.owners import balanced_owners
from distgnn.partition.core.shares import part_shares
from distgnn.partition.core.vertex_cut import VertexCut, part_dtype
from distgnn.partition.folder.reader import load_part, read_manifest
from distgnn.partition.repartition import load_whole
from distgnn.system.atomic import new_folder
from distgnn.system.names import path_name

SIDES = ("target", "cover")


def read_dgl_cut(place: str | Path, edge_list: EdgeList, sides: str = "target") -> VertexCut:
    """The cut in a Libra folder (`…/4Communities`) or a partition book (`…/NAME.json`), for an edge list of its graph.

    Args: sides: of a book, whose owners are given: arcs are computed by the owner of the "target", as in DGL, or where
        a minimum vertex "cover" has them: fewest rows for these owners, see `hybrid_cut`.
    Raises: InputError where it is of another graph; GraphFormatError where a file is damaged.
    """
    if sides not in SIDES:
        raise InputError(f"unknown sides {sides!r}: choose one of {', '.join(SIDES)}")
    place = Path(place)
    if place.is_file():
        return _read_book(place, edge_list, sides)
    if sides == "cover":
        raise InputError(f"{place}: sides are for a partition book: a Libra folder gives no owners")
    # By length first, so that community10 comes after community9.
    files = sorted(place.glob("community*.txt"), key=lambda path: (len(path.name), path.name))
    names = [f"community{part}.txt" for part in range(len(files))]
    if not files or [path.name for path in files] != names:
        raise InputError(
            f"{place}: neither a partition book (NAME.json) nor a Libra folder (community0.txt, community1.txt, …)"
        )
    return _read_libra(place, files, edge_list)


def _read_libra(place: Path, files: list[Path], edge_list: EdgeList) -> VertexCut:
    # An empty file is a part without edges; a reader of tables would refuse it.
    used = [part for part, path in enumerate(files) if path.stat().st_size]
    tables = [read_table(files[part], np.float64)[:, :2].astype(np.int64) for part in used]
    parts: np.ndarray = np.repeat(np.array(used, dtype=part_dtype(len(files))), [len(table) for table in tables])
    rows = np.concatenate([np.zeros((0, 2), dtype=np.int64), *tables])
    # DGL names the edges of a part by their ends: sorted by both, theirs and ours must be the same, parallel edges in
    # any order.
    theirs = rows[:, 0] * edge_list.num_nodes + rows[:, 1]
    ours = edge_list.src.astype(np.int64) * edge_list.num_nodes + edge_list.dst
    order, their_order = np.argsort(ours, kind="stable"), np.argsort(theirs, kind="stable")
    if not np.array_equal(ours[order], theirs[their_order]):
        raise InputError(
            f"{place} holds {len(theirs)} edges that are not the {len(ours)} of this graph: "
            "another graph, or another direction or choice of self-loops"
        )
    edge_part = np.empty(len(ours), dtype=parts.dtype)
    # Both orders sort the same edges: the i-th of one is the i-th of the other.
    edge_part[order] = parts[their_order]
    return VertexCut(len(files), edge_part, balanced_owners(edge_list, edge_part, part_shares(len(files))))


def _read_book(config: Path, edge_list: EdgeList, sides: str) -> VertexCut:
    """Owners are the book's."""
    book = read_json(config)
    num_parts = book.get("num_parts")
    if not isinstance(num_parts, int) or not 1 <= num_parts < 2**15 or book.get("num_nodes") != edge_list.num_nodes:
        found = f"{num_parts} parts and {book.get('num_nodes')} vertices"
        raise InputError(f"{config}: {found}; expected a partition book of a graph with {edge_list.num_nodes} vertices")
    owner = np.full(edge_list.num_nodes, -1, dtype=np.int32)
    for part in range(num_parts):
        ids = _old_ids(config, book, part)
        if len(ids) and (ids.min() < 0 or ids.max() >= len(owner) or (owner[ids] >= 0).any()):
            raise InputError(f"{config}: part {part} names vertices that do not exist, or are in two parts")
        owner[ids] = part
    if (owner < 0).any():
        raise InputError(f"{config}: vertex {int(np.argmax(owner < 0))} is in no part")
    if sides == "cover":
        return hybrid_cut(edge_list, owner, num_parts)
    dtype = part_dtype(num_parts)
    edge_part = owner[edge_list.dst].astype(dtype)
    # The target of the reverse arc is the edge's source.
    reverse = owner[edge_list.src].astype(dtype) if edge_list.two_way else None
    return VertexCut(num_parts, edge_part, owner, reverse_part=reverse)


def _old_ids(config: Path, book: dict, part: int) -> np.ndarray:
    path = config.parent / "node_orig_id.npy"
    if not path.is_file():
        raise InputError(
            f"{path}: no such file; DGL does not keep the old ids: save there, as an array, the first result of "
            "dgl.distributed.partition_graph(..., return_mapping=True)"
        )
    ranges: Any = book.get("node_map")
    begin, end = (ranges["_N"] if isinstance(ranges, dict) else ranges)[part]
    return read_npy(path)[begin:end]


def write_dgl_cut(folder: str | Path, out: str | Path, form: str = "libra", overwrite: bool = False) -> Path:
    """Write the cut of a partition folder as DGL writes its own: without graphs and features, for what reads the rest.

    Args: form: "libra" (out/PCommunities/communityZ.txt) or "book" (out/NAME.json and the old ids of the new ones;
        `dgl.distributed.partition.load_partition_book` reads it).
    Raises: InputError, PartitionFormatError; nothing is left behind then.
    """
    if form not in ("libra", "book"):
        raise InputError(f"unknown form {form!r}: choose libra or book")
    manifest = read_manifest(folder)
    name = path_name(manifest["name"], f"{folder}: the graph's") if form == "book" else ""
    with new_folder(out, _book_files if form == "book" else _libra_files, overwrite) as place:
        if form == "book":
            _write_book(folder, manifest, place, name)
        else:
            _write_libra(folder, manifest, place)
    return Path(out)


def _libra_files(folder: Path) -> set[str]:
    """The files of a folder that `write_dgl_cut` made."""
    found = [path for path in folder.glob("*Communities") if path.name.removesuffix("Communities").isdigit()]
    if len(found) != 1 or not (found[0] / "community0.txt").is_file():
        raise InputError(f"{folder} holds no Libra cut (4Communities/community0.txt, …)")
    return {f"{found[0].name}/community{part}.txt" for part in range(len(list(found[0].iterdir())))}


def _book_files(folder: Path) -> set[str]:
    """The files of a partition book that `write_dgl_cut` made."""
    for path in sorted(folder.glob("*.json")):
        book = read_json(path)
        if book.get("graph_name") == path.stem and {"num_parts", "node_map", "edge_map"} <= book.keys():
            return {path.name, "node_orig_id.npy", "edge_orig_id.npy"}
    raise InputError(f"{folder} holds no partition book (NAME.json)")


def _write_libra(folder: str | Path, manifest: dict, place: Path) -> None:
    _, edge_list = load_whole(folder)
    place = place / f"{manifest['num_parts']}Communities"
    place.mkdir()
    for part in range(manifest["num_parts"]):
        ids = np.sort(load_part(folder, part, check=False).arc_ids)
        # Forward arcs: DGL has each two-way edge once.
        ids = ids[ids < edge_list.num_rows]
        rows = np.stack([edge_list.src[ids], edge_list.dst[ids], np.ones(len(ids), dtype=np.int64)], axis=1)
        np.savetxt(place / f"community{part}.txt", rows, fmt="%d", delimiter=",")


def _write_book(folder: str | Path, manifest: dict[str, Any], place: Path, name: str) -> None:
    num_parts, nodes, arcs = manifest["num_parts"], [], []
    for part in range(num_parts):
        local = load_part(folder, part, check=False)
        nodes.append(np.array(local.global_ids[: local.num_owned]))
        arcs.append(np.sort(local.arc_ids))
    for kind, ids in (("node", nodes), ("edge", arcs)):
        np.save(place / f"{kind}_orig_id.npy", np.concatenate(ids))
    # New ids are consecutive in a part, parts one after the other: a map is a range of them for each part.
    maps = [np.cumsum([0] + [len(ids) for ids in group]) for group in (nodes, arcs)]
    node_map, edge_map = ([[int(a), int(b)] for a, b in itertools.pairwise(ends)] for ends in maps)
    book = {
        "graph_name": name,
        "num_nodes": manifest["num_nodes"],
        "num_edges": manifest["num_arcs"],
        "part_method": manifest["method"],
        "num_parts": num_parts,
        "halo_hops": 1,
        "node_map": {"_N": node_map},
        "edge_map": {"_N:_E:_N": edge_map},
        "ntypes": {"_N": 0},
        "etypes": {"_N:_E:_N": 0},
    }
    (place / f"{name}.json").write_text(json.dumps(book, indent=1) + "\n", encoding="utf-8")
