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
from distgnn.datasets.links.part_edges import ids_of
from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition.core.local_graph import BLOCKS, Csr, LocalGraph
from distgnn.partition.core.part_arrays import OF_ARCS, OF_VERTICES, expected_files
from distgnn.partition.core.plan import ExchangePlan, halo_indptrs
from distgnn.partition.folder.layout import MANIFEST, part_folder
from distgnn.partition.folder.manifest_file import is_count, read_manifest
from distgnn.partition.folder.verify import check_contents
from distgnn.system.regular_file import NOT_REGULAR


def partition_files(folder: Path) -> set[str]:
    """The files of a partition folder, by its manifest, relative to it: `new_folder` replaces a folder of no others.

    Raises: PartitionFormatError where there is no valid manifest.
    """
    parts = read_manifest(folder)["parts"]
    arrays = {f"{part_folder(Path(), i)}/{name}.npy" for i, part in enumerate(parts) for name in part["files"]}
    tunings = {str(path.relative_to(folder)) for i in range(len(parts)) for path in _tunings(part_folder(folder, i))}
    return {MANIFEST} | arrays | tunings


def _tunings(part: Path) -> list[Path]:
    """What `load` measured of a part, and what it leaves of that when it is killed (distgnn/graph/tuning.py)."""
    return [*part.glob("tuning.json"), *part.glob(".tuning.json.*")]


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
    local = _assemble(manifest, part_id, arrays)
    if check:
        check_contents(place, manifest, part_id, local, arrays)
    return local


def _load_array(path: Path, entry: Any, shape: tuple, dtypes: tuple[str, ...], check: bool) -> np.ndarray:
    if not isinstance(entry, dict):
        raise PartitionFormatError(f"{path}: the manifest has no entry for it")
    array = _map_array(path, entry, check)
    # None is a length that the file decides; the manifest names it all the same, and must be right.
    fits = len(array.shape) == len(shape) and all(s in (None, n) for s, n in zip(shape, array.shape, strict=True))
    if not fits or list(array.shape) != entry.get("shape"):
        wanted = tuple("any" if s is None else s for s in shape)
        raise PartitionFormatError(f"{path}: shape {array.shape}, expected {wanted}")
    if array.dtype.name not in dtypes or not array.flags.c_contiguous or not array.dtype.isnative:
        raise PartitionFormatError(f"{path}: dtype {array.dtype}, expected {' or '.join(dtypes)}")
    return array


def _map_array(path: Path, entry: dict, check: bool) -> np.ndarray:
    try:
        if path.exists() and not path.is_file():
            raise PartitionFormatError(f"{path}: {NOT_REGULAR}")
        # The size first: it is cheap, and a mapped file that is too short is a bus error when it is read.
        size = path.stat().st_size
        if size != entry.get("bytes"):
            raise PartitionFormatError(f"{path}: {size} bytes, expected {entry.get('bytes')}: truncated or replaced")
        if check:
            _check_digest(path, entry)
        # Before it is mapped: a header may promise more than the file holds.
        check_header(path)
        # "c": copy on write, so the files stay as they are whatever a caller does.
        return np.asarray(np.load(path, mmap_mode="c", allow_pickle=False))
    except PartitionFormatError:
        raise
    except FileNotFoundError:
        raise PartitionFormatError(f"{path}: missing") from None
    except Exception as error:  # a damaged header makes numpy's reader raise almost anything
        raise PartitionFormatError(f"{path}: not readable as an array ({error})") from error


def _check_digest(path: Path, entry: dict) -> None:
    with open(path, "rb") as file:
        # file_digest came with Python 3.11.
        digest = hashlib.file_digest(file, "sha256") if hasattr(hashlib, "file_digest") else _digest(file)
    if digest.hexdigest() != entry.get("sha256"):
        raise PartitionFormatError(f"{path}: its checksum is wrong: the contents are not what was written")


def _digest(file: Any) -> Any:
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest


def _assemble(manifest: dict, part_id: int, arrays: dict[str, np.ndarray]) -> LocalGraph:
    part = manifest["parts"][part_id]
    # Ranges of halos are in no file: they follow from the counts.
    source_indptr, target_indptr = halo_indptrs(arrays["halo_counts"])
    plan = ExchangePlan(
        manifest["num_parts"],
        part_id,
        part["owned"],
        arrays["broadcast_indptr"],
        arrays["broadcast_rows"],
        source_indptr,
        arrays["reduce_indptr"],
        arrays["reduce_rows"],
        target_indptr,
    )
    return LocalGraph(
        part_id,
        manifest["num_parts"],
        manifest["num_nodes"],
        part["owned"],
        part["interior"],
        arrays["global_ids"],
        arrays["in_degrees"],
        arrays["out_degrees"],
        arrays["halo_counts"],
        {name: Csr(arrays[f"{name}_indptr"], arrays[f"{name}_indices"]) for name in BLOCKS},
        arrays["arc_ids"],
        part["symmetric"],
        plan,
        graph=manifest["graph"],
        **data_fields(manifest["graph"], part["owned"], arrays),
    )


def data_fields(graph: dict[str, Any], owned: int, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    """The fields of a `LocalGraph` that hold data of vertices, arcs and splits, from the arrays of its files."""
    names = graph.get("edge_splits", {})
    splits = {name: arrays[name] for name in dict.fromkeys([*names, *map(ids_of, names)])}
    fields: dict[str, Any] = {name: arrays.get(name) for name in (*OF_VERTICES, *OF_ARCS)}
    return fields | {"feats": _assemble_feats(owned, graph, arrays), "edge_splits": splits}


def _assemble_feats(owned: int, graph: dict, arrays: dict[str, np.ndarray]) -> Any:
    if not graph["sparse_feats"]:
        return arrays.get("feats")
    from scipy import sparse

    # Filled afterwards: the constructor would copy the mapped arrays and check them again.
    matrix = sparse.csr_matrix((owned, graph["num_feats"]), dtype=np.float32)
    matrix.indptr, matrix.indices, matrix.data = (arrays[f"feats_{name}"] for name in ("indptr", "indices", "data"))
    return matrix
