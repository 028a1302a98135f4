"""Write parts, some at once: what their arrays hold, by PART_ARRAYS, in blocks, hashed, synced before they count.

Shapes: N vertices, O owned rows of a part, D feature width.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from distgnn.datasets import GraphData
from distgnn.datasets.edge_list import EdgeList, arc_feats, arc_relations
from distgnn.datasets.link_splits import part_edge_splits
from distgnn.datasets.typed import arc_column, of_type, starts, type_ranges
from distgnn.kernels.runtime.threads import get_num_threads
from distgnn.partition.core.local_graph import LocalGraph
from distgnn.partition.core.part_arrays import arrays_of
from distgnn.partition.folder.manifest import Manifest, name_rows
from distgnn.partition.folder.manifest_file import MANIFEST, manifest_digest, part_folder

BLOCK_BYTES = 1 << 24
MOST_WRITERS = 4  # each holds a part; half of its work is waiting for memory, half Python's lock and the disk


class Rows:
    """Rows [n, …] that are made a block at a time: all of them may be larger than memory.

    Args: take: makes the rows of some ids; ids: [n]; width: the shape of a row.
    """

    def __init__(self, take: Callable[[np.ndarray], Any], ids: np.ndarray, width: tuple[int, ...], dtype: Any) -> None:
        self._take, self._ids = take, ids
        self.shape: tuple[int, ...] = (len(ids), *width)
        self.dtype: np.dtype = np.dtype(dtype)
        self.ndim: int = len(self.shape)

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        ids = self._ids[rows]
        return np.asarray(self._take(ids), dtype=self.dtype).reshape(len(ids), *self.shape[1:])


def part_data(
    local: LocalGraph, graph: GraphData, edge_list: EdgeList, masks: dict[str, np.ndarray]
) -> dict[str, np.ndarray | Rows]:
    """The arrays of a part by name, in the order of the table.

    Args: local: from `build_local`, with the `graph` section of the manifest; masks: split -> bool [N].
    """
    owned, arcs, section = local.global_ids[: local.num_owned], local.arc_ids, local.graph
    made: dict[str, Any] = {f"{split}_mask": mask[owned] for split, mask in masks.items()}
    made |= part_edge_splits(graph, owned) | _typed_data(local, graph, edge_list)
    if section["sparse_feats"]:  # three arrays, each mapped when it is read
        rows: Any = graph.feats[owned]
        made |= {f"feats_{name}": getattr(rows, name) for name in ("indptr", "indices", "data")}
    if section.get("name_bytes") is not None:
        made["node_names"] = name_rows(graph.node_names[owned], section["name_bytes"])  # type: ignore[index]
    if graph.edge_feats is not None:
        made["edge_feats"] = Rows(partial(arc_feats, graph, edge_list), arcs, (graph.num_edge_feats,), np.float32)
    if graph.edge_types is not None:
        made["edge_types"] = Rows(partial(arc_relations, graph, edge_list), arcs, (), np.int32)
    found: dict[str, np.ndarray | Rows] = {}
    for array in arrays_of(section):
        base, _, what = array.name.rpartition("_")
        # What is made already, what the cut has made, or the rows of a field of the graph; in a dtype of the table.
        if array.name not in made and array.field is None:
            place: Any = local.plan if base in ("broadcast", "reduce") else local.blocks.get(base, local)
            made[array.name] = getattr(place, what if base in local.blocks else array.name)
        values = made[array.name] if array.name in made else getattr(graph, str(array.field))
        dtype = np.dtype(values.dtype.name if values.dtype.name in array.dtypes else array.dtypes[0])
        if array.name in made:
            found[array.name] = values if values.dtype == dtype else values.astype(dtype)
        else:
            missing = len(array.shape.split()) - len(values.shape)  # values of a regression may be [N]
            found[array.name] = Rows(values.__getitem__, owned, (1,) * missing + values.shape[1:], dtype)
    return found


def _typed_data(local: LocalGraph, graph: GraphData, edge_list: EdgeList) -> dict[str, Any]:
    """Columns of types and relations, by file; empty for a graph without types."""
    section = local.graph
    made: dict[str, Any] = {}
    owned = local.global_ids[: local.num_owned]
    for number, (kind, (begin, end)) in enumerate(type_ranges(graph).items()):
        ids = owned[(owned >= begin) & (owned < end)] - begin
        masks = of_type(graph, kind).split_masks()
        for name, (dtype, *widths) in section["typed"].get(kind, {}).items():
            file, values = f"type_{number}_{name}", graph.typed[kind][name]
            if dtype == "csr":
                rows = values.tocsr()[ids]
                made |= {f"{file}_{what}": getattr(rows, what) for what in ("indptr", "indices", "data")}
            elif name.endswith("_mask"):  # of a split only vertices with a label count
                made[file] = masks[name.removesuffix("_mask")][ids]
            else:
                made[file] = (
                    name_rows(values[ids], widths[0])
                    if dtype == "text"
                    else Rows(values.__getitem__, ids, tuple(widths), dtype)
                )
    if any(section.get("relation_columns", ())):
        relations = arc_relations(graph, edge_list, local.arc_ids)
        for number, columns in enumerate(section["relation_columns"]):
            ids = local.arc_ids[relations == number]
            for name, (dtype, *widths) in columns.items():
                take = partial(arc_column, graph, edge_list, number, name)
                made[f"relation_{number}_{name}"] = Rows(take, ids, tuple(widths), dtype)
    return made


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
        `GraphData`; edge_list: of the cut; masks: split -> bool [N].
    Returns: the part's section of the manifest.
    """
    place = part_folder(folder, local.part_id)
    place.mkdir()
    arrays = part_data(local, graph, edge_list, masks)
    files = {name: write_array(place / f"{name}.npy", array) for name, array in arrays.items()}
    owned = local.global_ids[: local.num_owned]
    counts: dict[str, Any] = {}
    if "edge_types" in arrays:
        counts["relation_targets"] = count_relation_targets(local, arrays["edge_types"])
    if local.types:
        bounds = starts(graph.type_counts)
        counts["type_rows"] = np.histogram(owned, bounds)[0].tolist()
        counts["type_train"] = np.histogram(owned[masks["train"][owned]], bounds)[0].tolist()
        relations = np.asarray(arrays["edge_types"][:])
        counts["relation_arcs"] = np.bincount(relations, minlength=len(local.relations)).tolist()
    return {
        "owned": local.num_owned,
        "interior": local.num_interior,
        "rows": local.num_rows,
        "source_halos": local.num_source_halos,
        "target_halos": local.num_target_halos,
        "arcs": local.num_arcs,
        "train": int(np.count_nonzero(masks["train"][owned])),
        "symmetric": local.symmetric,
        **counts,
        "files": files,
    }


def count_relation_targets(local: LocalGraph, relations: np.ndarray | Rows) -> int:
    """Pairs of a relation and a target copy with an arc: models of relations keep a row for each.

    Args: relations: int32 [A], in the order of the part's arcs.
    """
    found = first = 0
    for over in ("owned", "halo"):  # targets; both blocks of a side have the same rows
        sides = []
        for sources in ("owned", "halo"):
            indptr = local.blocks[f"{over}_{sources}"].indptr
            arcs = slice(first, first + int(indptr[-1]))
            first = arcs.stop
            # A row for each target, a column for each relation.
            shape = len(indptr) - 1, max(local.graph["num_relations"], 1)
            ones = np.ones(arcs.stop - arcs.start, dtype=np.int32)
            sides.append(sparse.csr_matrix((ones, relations[arcs], indptr), shape=shape))
        found += (sides[0] + sides[1]).nnz
    return found


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


def num_writers(num_parts: int, most: int = MOST_WRITERS) -> int:
    """How many parts are made at once, at most `most`."""
    return max(1, min(get_num_threads(), num_parts, most))


def write_parts(
    num_parts: int, write: Callable[[int], dict[str, Any]], step: Callable[[int], None], most: int = MOST_WRITERS
) -> list[dict[str, Any]]:
    """Call `write(part_id)` for every part, on `num_writers` threads; returns what it returned, by part.

    Args: step: `step(done)`, after each part, one call at a time.
    """
    sections = []
    with ThreadPoolExecutor(num_writers(num_parts, most)) as pool:
        # An error ends the loop, and this the parts that nobody has begun.
        for section in pool.map(write, range(num_parts)):
            sections.append(section)
            step(len(sections))
    return sections
