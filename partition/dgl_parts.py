"""The partition book of `dgl.distributed`.

book/                          as `dgl.distributed.partition_graph` writes it
    NAME.json                  node_map: ranges of new ids of each part
    node_orig_id.npy           the old id of each new one: what partition_graph(…, return_mapping=True) returns
    node_mapping.pt            or the same from GraphStorm; or part0/orig_nids.dgl … from DGL's dispatch
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.array_files import read_json, read_npy
from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.formats.foreign_arrays import read_dgl_tensors, read_torch_arrays
from distgnn.errors import GraphFormatError, InputError
from distgnn.partition.core.vertex_cut import VertexCut, part_dtype


def read_dgl_cut(config: str | Path, edge_list: EdgeList) -> VertexCut:
    """The cut of a partition book (`…/NAME.json`), for an edge list of its graph; arcs at the target's owner.

    Raises: InputError where it is of another graph; GraphFormatError where a file is damaged.
    """
    config = Path(config)
    if not config.is_file():
        raise InputError(f"{config}: no partition book (NAME.json, as dgl.distributed.partition_graph writes it)")
    book = read_json(config)
    num_parts = book.get("num_parts")
    if type(num_parts) is not int or not 1 <= num_parts < 2**15 or book.get("num_nodes") != edge_list.num_nodes:
        found = f"{num_parts} parts and {book.get('num_nodes')} vertices"
        raise InputError(f"{config}: {found}; expected a partition book of a graph with {edge_list.num_nodes} vertices")
    owner = np.full(edge_list.num_nodes, -1, dtype=np.int32)
    ranges: Any = book.get("node_map")
    if isinstance(ranges, dict) and len(ranges) > 1:
        raise InputError(f"{config}: a book of {len(ranges)} vertex types ({', '.join(ranges)}): one type can be read")
    ranges = next(iter(ranges.values()), None) if isinstance(ranges, dict) else ranges
    num_nodes = edge_list.num_nodes
    if not _are_ranges(ranges, num_nodes) or len(ranges) != num_parts:
        raise GraphFormatError(f"{config}: node_map must be {num_parts} ranges of the vertices 0 to {num_nodes}")
    path, old_ids = _read_old_ids(config, num_parts)
    if old_ids.ndim != 1 or old_ids.dtype.kind not in "iu" or len(old_ids) != num_nodes:
        raise GraphFormatError(f"{path}: expected the old ids of {num_nodes} vertices, whole numbers")
    # The vertices of a part are a range of new ids, looked up.
    for part, (begin, end) in enumerate(ranges):
        ids = old_ids[begin:end]
        if len(ids) and (ids.min() < 0 or ids.max() >= len(owner) or (owner[ids] >= 0).any()):
            raise InputError(f"{config}: part {part} names vertices that do not exist, or are in two parts")
        owner[ids] = part
    if (owner < 0).any():
        raise InputError(f"{config}: vertex {int(np.argmax(owner < 0))} is in no part")
    dtype = part_dtype(num_parts)
    edge_part = owner[edge_list.dst].astype(dtype)
    # The target of the reverse arc is the edge's source.
    reverse = owner[edge_list.src].astype(dtype) if edge_list.two_way else None
    return VertexCut(num_parts, edge_part, owner, reverse_part=reverse)


def _read_old_ids(config: Path, num_parts: int) -> tuple[Path, np.ndarray]:
    """(file, old id of each new one): from a saved array, GraphStorm's file, or those in DGL's parts."""
    saved, mapping = config.parent / "node_orig_id.npy", config.parent / "node_mapping.pt"
    in_parts = [config.parent / f"part{part}" / "orig_nids.dgl" for part in range(num_parts)]
    if saved.exists():
        return saved, read_npy(saved)
    if mapping.exists():
        return mapping, _only(mapping, read_torch_arrays(mapping))
    if in_parts[0].exists():
        return in_parts[0], np.concatenate([_only(path, read_dgl_tensors(path)) for path in in_parts])
    raise InputError(
        f"{saved}: no such file, nor node_mapping.pt (GraphStorm) or part0/orig_nids.dgl; DGL does not keep the old "
        "ids: save there, as an array, the first result of dgl.distributed.partition_graph(..., return_mapping=True)"
    )


def _only(path: Path, arrays: dict[str, np.ndarray]) -> np.ndarray:
    if len(arrays) != 1:
        raise GraphFormatError(f"{path}: expected the ids of one vertex type, found {', '.join(arrays) or 'none'}")
    return next(iter(arrays.values())).reshape(-1)


def _are_ranges(found: Any, end: int) -> bool:
    """Are these pairs of whole numbers, begin and end, from 0 to `end` without gaps?"""
    if not isinstance(found, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in found):
        return False
    ends = [0, *(number for pair in found for number in pair), end]
    whole = all(type(number) is int for number in ends)
    return whole and ends == sorted(ends) and ends[::2] == ends[1::2]
