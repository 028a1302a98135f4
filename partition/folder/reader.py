"""Read a partition folder: nothing in it is believed before it is checked, and nothing in it is executed.

Every damage is a `PartitionFormatError` that names the file and what is wrong with it. `partition.json` is read in
manifest_file.py.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from distgnn.datasets.array_files import check_header
from distgnn.datasets.link_splits import ids_of, problem_of
from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition.core.local_graph import BLOCKS, Csr, LocalGraph
from distgnn.partition.core.part_arrays import OF_ARCS, OF_VERTICES, arrays_of, expected_files
from distgnn.partition.core.plan import ExchangePlan, halo_indptrs
from distgnn.partition.core.typed_arrays import column, typed_fields
from distgnn.partition.folder.manifest_file import MANIFEST, is_count, part_folder, read_manifest
from distgnn.system.atomic import NOT_REGULAR


def partition_files(folder: Path) -> set[str]:
    """The files of a partition folder, by its manifest, relative to it: `new_folder` replaces a folder of no others."""
    parts = read_manifest(folder)["parts"]
    arrays = {f"{part_folder(Path(), i)}/{name}.npy" for i, part in enumerate(parts) for name in part["files"]}
    return {MANIFEST} | arrays


def load_part(folder: str | Path, part_id: int, check: bool = True) -> LocalGraph:
    """One rank's `LocalGraph`, reading only `partition.json` and its own part folder.

    Args:
        check: also verify checksums and the ranges of all contents (reads every file once); sizes, shapes and
            dtypes are always verified.
    Returns: a LocalGraph whose arrays are mapped copy-on-write: pages are read when touched, writes stay private.
    Raises: PartitionFormatError; InputError if there is no such part.
    """
    manifest = read_manifest(folder)
    num_parts = manifest["num_parts"]
    if not is_count(part_id) or part_id >= num_parts:
        raise InputError(f"{folder} has parts 0 to {num_parts - 1}, no part {part_id}")
    part, place = manifest["parts"][part_id], part_folder(Path(folder), part_id)
    if not place.is_dir():
        raise PartitionFormatError(f"{place}: no such folder; the manifest names {num_parts} parts")
    arrays = {}
    # Names come from `expected_files`, not from the manifest: it cannot lead to other files.
    for name, (shape, dtypes) in expected_files(part, manifest["graph"], num_parts).items():
        arrays[name] = _load_array(place / f"{name}.npy", part["files"].get(name), shape, dtypes, check)
    check_typed(place, part, arrays)
    try:
        local = _assemble(manifest, part_id, arrays)
    except UnicodeDecodeError as error:
        raise PartitionFormatError(f"{place}: a name of a vertex is no UTF-8 ({error})") from error
    if check:
        check_contents(place, manifest, part_id, local, arrays)
    return local


def check_typed(place: Path, part: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Raise `PartitionFormatError` where columns of types cannot be put together."""
    for name, sizes in (("node_types", part.get("type_rows")), ("edge_types", part.get("relation_arcs"))):
        if sizes is None:
            continue
        good = _within(arrays[name], 0, len(sizes))
        if not good or np.bincount(arrays[name], minlength=len(sizes)).tolist() != sizes:
            raise PartitionFormatError(f"{place / name}.npy: expected {sizes} of each number")
    for name in (name for name in arrays if name.startswith("type_") and name.endswith("_indptr")):
        entries = len(arrays[name.replace("_indptr", "_indices")])
        if entries != len(arrays[name.replace("_indptr", "_data")]) or not _rises(arrays[name], entries):
            raise PartitionFormatError(f"{place / name}.npy: must rise from 0 to {entries}")


def _load_array(path: Path, entry: Any, shape: tuple, dtypes: tuple[str, ...], check: bool) -> np.ndarray:
    if not isinstance(entry, dict):
        raise PartitionFormatError(f"{path}: the manifest has no entry for it")
    try:
        if path.exists() and not path.is_file():
            raise PartitionFormatError(f"{path}: {NOT_REGULAR}")
        # The size first: it is cheap, and a mapped file that is too short is a bus error when it is read.
        size = path.stat().st_size
        if size != entry.get("bytes"):
            raise PartitionFormatError(f"{path}: {size} bytes, expected {entry.get('bytes')}: truncated or replaced")
        if check:
            digest = hashlib.sha256()
            with open(path, "rb") as file:
                while block := file.read(1 << 20):
                    digest.update(block)
            if digest.hexdigest() != entry.get("sha256"):
                raise PartitionFormatError(f"{path}: its checksum is wrong: the contents are not what was written")
        # Before it is mapped: a header may promise more than the file holds.
        check_header(path)
        # "c": copy on write, so the files stay as they are whatever a caller does.
        array = np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
    except PartitionFormatError:
        raise
    except FileNotFoundError:
        raise PartitionFormatError(f"{path}: missing") from None
    except Exception as error:  # a damaged header makes numpy's reader raise almost anything
        raise PartitionFormatError(f"{path}: not readable as an array ({error})") from error
    # None is a length that the file decides; the manifest names it all the same, and must be right.
    fits = len(array.shape) == len(shape) and all(s in (None, n) for s, n in zip(shape, array.shape, strict=True))
    if not fits or list(array.shape) != entry.get("shape"):
        wanted = tuple("any" if s is None else s for s in shape)
        raise PartitionFormatError(f"{path}: shape {array.shape}, expected {wanted}")
    if array.dtype.name not in dtypes or not array.flags.c_contiguous or not array.dtype.isnative:
        raise PartitionFormatError(f"{path}: dtype {array.dtype}, expected {' or '.join(dtypes)}")
    return array


def _assemble(manifest: dict, part_id: int, arrays: dict[str, np.ndarray]) -> LocalGraph:
    part = manifest["parts"][part_id]
    # Ranges of halos are in no file: they follow from the counts.
    source_indptr, target_indptr = halo_indptrs(arrays["halo_counts"])
    plan = ExchangePlan(
        manifest["num_parts"],
        part_id,
        part["owned"],
        source_indptr=source_indptr,
        target_indptr=target_indptr,
        **{name: arrays[name] for name in ("broadcast_indptr", "broadcast_rows", "reduce_indptr", "reduce_rows")},
    )
    named: dict[str, Any] = {name: arrays[name] for name in ("global_ids", "in_degrees", "out_degrees", "halo_counts")}
    return LocalGraph(
        part_id,
        manifest["num_parts"],
        manifest["num_nodes"],
        part["owned"],
        part["interior"],
        **named,
        arc_ids=arrays["arc_ids"],
        blocks={name: Csr(arrays[f"{name}_indptr"], arrays[f"{name}_indices"]) for name in BLOCKS},
        symmetric=part["symmetric"],
        plan=plan,
        graph=manifest["graph"],
        **data_fields(manifest["graph"], part["owned"], arrays),
    )


def data_fields(graph: dict[str, Any], owned: int, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a `LocalGraph` that hold data of vertices, arcs and splits, from the arrays of its files."""
    names = graph.get("edge_splits", {})
    splits = {name: arrays[name] for name in dict.fromkeys([*names, *map(ids_of, names)])}
    fields: dict[str, Any] = {name: arrays.get(name) for name in (*OF_VERTICES, *OF_ARCS)}
    if graph.get("types"):
        return fields | typed_fields(graph, owned, arrays)
    if graph["sparse_feats"]:
        fields["feats"] = column("feats", ["csr", graph["num_feats"]], arrays)
    return fields | {"edge_splits": splits}


def check_contents(
    place: Path, manifest: dict[str, Any], part_id: int, local: LocalGraph, arrays: dict[str, Any]
) -> None:
    """Raise `PartitionFormatError` naming the first file of part `part_id` whose contents are out of range."""

    def need(good: Any, name: str, what: str) -> None:
        if not good:
            raise PartitionFormatError(f"{place / name}.npy: {what}")

    part, graph = manifest["parts"][part_id], manifest["graph"]
    counts = local.halo_counts
    # A part has no halo of its own. The range comes first: a sum of huge counts would wrap and could be right.
    need(_within(counts, 0, part["rows"] + 1) and not counts[part_id].any(), "halo_counts", "impossible counts")
    need(part["interior"] <= part["owned"] <= part["rows"], "global_ids", "more owned than local rows")
    need(part["owned"] + counts.sum() == part["rows"], "halo_counts", "does not add up to the local rows")
    need(local.num_source_halos == part["source_halos"], "halo_counts", "does not add up to the source halos")
    need(local.num_target_halos == part["target_halos"], "halo_counts", "does not add up to the target halos")
    ids = local.global_ids
    # A vertex with two rows would be updated twice.
    need(len(np.unique(ids)) == len(ids), "global_ids", "an id stands twice")
    for name in ("in_degrees", "out_degrees"):
        need(_within(getattr(local, name), 0, 2**62), name, "negative degrees")
    # Columns of owned_owned, owned_halo, halo_owned, halo_halo.
    widths = (part["owned"], part["source_halos"]) * 2
    for name, columns_of in zip(BLOCKS, widths, strict=True):
        indptr, indices = local.blocks[name]
        need(_rises(indptr, len(indices)), f"{name}_indptr", f"must rise from 0 to {len(indices)}")
        need(_within(indices, 0, columns_of), f"{name}_indices", f"columns must lie in 0 to {columns_of - 1}")
    arcs = sum(len(block.indices) for block in local.blocks.values())
    need(arcs == local.num_arcs, "arc_ids", f"{local.num_arcs} ids for {arcs} arcs")
    for verb in ("broadcast", "reduce"):
        indptr, rows = getattr(local.plan, f"{verb}_indptr"), getattr(local.plan, f"{verb}_rows")
        # A rank sends itself nothing, and only boundary rows have copies elsewhere.
        good = _rises(indptr, len(rows))
        need(good and indptr[part_id] == indptr[part_id + 1], f"{verb}_indptr", f"must rise from 0 to {len(rows)}")
        what = f"rows must lie in {local.num_interior} to {local.num_owned - 1} (boundary)"
        need(_within(rows, local.num_interior, local.num_owned), f"{verb}_rows", what)
    if local.train_mask is not None:
        need(np.count_nonzero(local.train_mask) == part["train"], "train_mask", f"expected {part['train']} vertices")
    if graph["sparse_feats"]:
        entries = len(arrays["feats_indices"])
        good = entries == len(arrays["feats_data"]) and _rises(arrays["feats_indptr"], entries)
        need(good, "feats_indptr", f"must rise from 0 to {entries}")
    limits = graph | {"num_nodes": local.num_nodes, "num_arc_ids": 2 * manifest["num_list_edges"], "flags": 2}
    for array in arrays_of(graph):
        if array.values is not None:
            what, low, limit = array.values
            high = limits[limit] if limit in limits else int(limit)
            need(_within(arrays[array.name], low, high), array.name, f"{what} must lie in {low} to {high - 1}")
    problem = problem_of(local.edge_splits, graph, local.global_ids[: local.num_owned], local.num_nodes)
    if problem is not None:
        need(False, *problem)


def _within(values: np.ndarray, low: int, high: int) -> bool:
    return values.size == 0 or bool(values.min() >= low and values.max() < high)


def _rises(indptr: np.ndarray, count: int) -> bool:
    """From 0 to `count`, never falling; the bounds come first, because a difference of huge numbers wraps."""
    # The ends first, then the range, then the steps: each makes the next one safe.
    ends = indptr[0] == 0 and indptr[-1] == count
    return bool(ends and _within(indptr, 0, count + 1) and (np.diff(indptr) >= 0).all())
