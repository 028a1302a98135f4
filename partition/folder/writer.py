"""Write one part after the other: arrays in blocks, hashed as they are written, synced before they count.

Shapes: N vertices, O owned rows of a part, D feature width.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from distgnn.datasets import GraphData
from distgnn.datasets.arc_data import arc_feats, arc_relations
from distgnn.datasets.edge_list import EdgeList
from distgnn.datasets.links.part_edges import part_edge_splits
from distgnn.partition.core.local_graph import LocalGraph
from distgnn.partition.folder.layout import MANIFEST, part_folder
from distgnn.partition.folder.manifest import Manifest
from distgnn.partition.folder.manifest_file import manifest_digest
from distgnn.partition.folder.name_rows import name_bytes, name_rows

BLOCK_BYTES = 1 << 24


def write_manifest(folder: Path, manifest: dict) -> Manifest:
    """Write `partition.json` with its own checksum; returns the manifest as written."""
    manifest = manifest | {"sha256": manifest_digest(manifest)}
    with open(folder / MANIFEST, "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.write("\n")
        _sync(file)
    return Manifest(manifest)


def write_part(
    folder: Path, local: LocalGraph, graph: GraphData, edge_list: EdgeList, masks: dict[str, np.ndarray]
) -> dict:
    """Write one part's folder.

    Args: folder: the partition folder; local: from `build_local`; graph: `GraphData`; edge_list: that of the cut;
        masks: split -> bool [N].
    Returns: the part's section of the manifest.
    """
    place = part_folder(folder, local.part_id)
    place.mkdir()
    ids = local.global_ids[: local.num_owned]
    files = {name: write_array(place / f"{name}.npy", array) for name, array in _structure(local).items()}
    for split, mask in masks.items():
        files[f"{split}_mask"] = write_array(place / f"{split}_mask.npy", mask[ids])
    if graph.labels is not None:
        labels = graph.labels[ids]
        files["labels"] = write_array(place / "labels.npy", labels if labels.ndim == 2 else labels.astype(np.int64))
    files |= _write_feats(place, graph.feats, ids)
    if graph.node_types is not None:
        files["node_types"] = write_array(place / "node_types.npy", graph.node_types[ids].astype(np.int32))
    more = owned_values(graph, ids) | part_edge_splits(graph, ids)
    files |= {name: write_array(place / f"{name}.npy", array) for name, array in more.items()}
    if local.cluster_places is not None:
        files["cluster_places"] = write_array(place / "cluster_places.npy", local.cluster_places)
    files |= _write_arc_data(place, local.arc_ids, graph, edge_list)
    return {
        "owned": local.num_owned,
        "interior": local.num_interior,
        "rows": local.num_rows,
        "source_halos": local.num_source_halos,
        "target_halos": local.num_target_halos,
        "arcs": local.num_arcs,
        "train": int(np.count_nonzero(masks["train"][ids])),
        "symmetric": local.symmetric,
        "files": files,
    }


def owned_values(graph: GraphData, ids: np.ndarray) -> dict[str, np.ndarray]:
    """`node_values` [O, T], `graph_ids` [O] and `node_names` of these vertices, where there are any."""
    found = {}
    if graph.node_values is not None:
        found["node_values"] = graph.node_values[ids].reshape(len(ids), graph.num_values).astype(np.float32)
    if graph.graph_ids is not None:
        found["graph_ids"] = graph.graph_ids[ids].astype(np.int64)
    if graph.node_names is not None:
        found["node_names"] = name_rows(graph.node_names[ids], name_bytes(graph.node_names))
    return found


def _structure(local: LocalGraph) -> dict[str, np.ndarray]:
    plan = local.plan
    arrays = {name: getattr(local, name) for name in ("global_ids", "in_degrees", "out_degrees", "halo_counts")}
    for name, block in local.blocks.items():
        arrays[f"{name}_indptr"], arrays[f"{name}_indices"] = block
    arrays["arc_ids"] = local.arc_ids
    if local.edge_weight is not None:
        arrays["edge_weight"] = local.edge_weight
    for name in ("broadcast_indptr", "broadcast_rows", "reduce_indptr", "reduce_rows"):
        arrays[name] = getattr(plan, name)
    return arrays


def _write_feats(place: Path, feats: Any, ids: np.ndarray) -> dict:
    if feats is None or feats.shape[1] == 0:
        return {}
    if not sparse.issparse(feats):
        # A generator: a block is read when the one before it is written.
        blocks = (np.asarray(feats[block], dtype=np.float32) for block in _blocks(ids, 4 * feats.shape[1]))
        return {"feats": _write_blocks(place / "feats.npy", (len(ids), feats.shape[1]), np.dtype(np.float32), blocks)}
    # Stored as three arrays, each mapped when it is read.
    rows = feats.tocsr()[ids]
    arrays = {
        "feats_indptr": rows.indptr.astype(np.int64),
        "feats_indices": rows.indices,
        "feats_data": rows.data.astype(np.float32, copy=False),
    }
    return {name: write_array(place / f"{name}.npy", array) for name, array in arrays.items()}


def _write_arc_data(place: Path, arc_ids: np.ndarray, graph: GraphData, edge_list: EdgeList) -> dict:
    """Features and relations of arcs, in the part's order; features are written block by block."""
    files = {}
    if graph.edge_feats is not None:
        shape = (len(arc_ids), graph.num_edge_feats)
        blocks: Any = (arc_feats(graph, edge_list, ids) for ids in _blocks(arc_ids, 4 * graph.num_edge_feats))
        files["edge_feats"] = _write_blocks(place / "edge_feats.npy", shape, np.dtype(np.float32), blocks)
    if graph.edge_types is not None:
        relations: Any = arc_relations(graph, edge_list, arc_ids)
        files["edge_types"] = write_array(place / "edge_types.npy", relations)
    return files


def write_array(path: Path, array: np.ndarray) -> dict:
    """Write a .npy file; returns its entry for the manifest: shape, dtype, bytes, sha256."""
    width = array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64))
    return _write_blocks(path, array.shape, array.dtype, _blocks(array, width))


def _blocks(array: np.ndarray, bytes_per_row: int) -> Iterator[np.ndarray]:
    # Features may be mapped and larger than memory: never more than a block at once.
    step = max(1, BLOCK_BYTES // max(bytes_per_row, 1))
    for start in range(0, len(array), step):
        yield array[start : start + step]


def _write_blocks(path: Path, shape: tuple, dtype: np.dtype, blocks: Iterable[np.ndarray]) -> dict:
    digest = hashlib.sha256()
    with open(path, "wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        # The header is in the checksum, because a changed shape or dtype is damage too.
        digest.update(path.read_bytes())
        for block in blocks:
            # Memory without elements cannot be cast to bytes.
            data = np.ascontiguousarray(block).data.cast("B") if block.size else b""
            digest.update(data)
            file.write(data)
        _sync(file)
        size = file.tell()
    return {"shape": list(shape), "dtype": dtype.name, "bytes": size, "sha256": digest.hexdigest()}


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())
