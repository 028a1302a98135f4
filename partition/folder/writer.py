"""Write one part after the other: arrays in blocks, hashed as they are written, synced before they count.

Shapes: N vertices, O owned rows of a part, D feature width.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets import GraphData
from distgnn.datasets.edge_list import EdgeList
from distgnn.partition.core.local_graph import LocalGraph
from distgnn.partition.folder.layout import MANIFEST, part_folder
from distgnn.partition.folder.manifest import Manifest
from distgnn.partition.folder.manifest_file import manifest_digest
from distgnn.partition.folder.part_data import Rows, part_data

BLOCK_BYTES = 1 << 24


def write_manifest(folder: Path, manifest: dict[str, Any]) -> Manifest:
    """Write `partition.json` with its own checksum; returns the manifest as written."""
    manifest = manifest | {"sha256": manifest_digest(manifest)}
    with open(folder / MANIFEST, "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
        file.write("\n")
        _sync(file)
    return Manifest(manifest)


def write_part(
    folder: Path, local: LocalGraph, graph: GraphData, edge_list: EdgeList, masks: dict[str, np.ndarray]
) -> dict[str, Any]:
    """Write one part's folder.

    Args: folder: the partition folder; local: from `build_local`, with the `graph` section of the manifest; graph:
        `GraphData`; edge_list: that of the cut; masks: split -> bool [N].
    Returns: the part's section of the manifest.
    """
    place = part_folder(folder, local.part_id)
    place.mkdir()
    arrays = part_data(local, graph, edge_list, masks)
    files = {name: write_array(place / f"{name}.npy", array) for name, array in arrays.items()}
    return {
        "owned": local.num_owned,
        "interior": local.num_interior,
        "rows": local.num_rows,
        "source_halos": local.num_source_halos,
        "target_halos": local.num_target_halos,
        "arcs": local.num_arcs,
        "train": int(np.count_nonzero(masks["train"][local.global_ids[: local.num_owned]])),
        "symmetric": local.symmetric,
        "files": files,
    }


def write_array(path: Path, array: np.ndarray | Rows) -> dict[str, Any]:
    """Write a .npy file; returns its entry for the manifest: shape, dtype, bytes, sha256."""
    shape, dtype, digest = array.shape, array.dtype, hashlib.sha256()
    # Features may be mapped and larger than memory: never more than a block at once.
    step = max(1, BLOCK_BYTES // max(dtype.itemsize * int(np.prod(shape[1:], dtype=np.int64)), 1))
    with open(path, "wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": tuple(shape)}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        # The header is in the checksum, because a changed shape or dtype is damage too.
        digest.update(path.read_bytes())
        for start in range(0, len(array), step):
            block = array[start : start + step]
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
