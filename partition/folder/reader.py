"""Read a partition folder: nothing in it is believed before it is checked, and nothing in it is executed.

Every damage is a `PartitionFormatError` that names the file and what is wrong with it.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from distgnn.datasets.array_files import check_header
from distgnn.datasets.fields import EDGE_SPLITS
from distgnn.datasets.links.part_edges import ids_of
from distgnn.errors import InputError, PartitionFormatError
from distgnn.partition.core.local_graph import BLOCKS, Csr, LocalGraph
from distgnn.partition.core.plan import ExchangePlan, halo_indptrs
from distgnn.partition.folder.layout import FORMAT_VERSION, MANIFEST, expected_files, part_folder
from distgnn.partition.folder.verify import check_contents
from distgnn.partition.folder.writer import manifest_digest
from distgnn.system.regular_file import NOT_REGULAR, read_text

PART_SIZES = ("owned", "interior", "rows", "source_halos", "target_halos", "arcs", "train")
MEASURES = (
    "replication_factor", "edge_balance", "owned_balance", "copies_balance", "exchange_rows", "max_rank_rows",
    "seconds", "peak_rss_bytes", "seed",
)  # fmt: skip
PREDICTED = ("seconds", "rank", "mean_seconds", "aggregate_seconds", "dense_seconds", "exchange_seconds")
GRAPH_COUNTS = ("num_feats", "num_classes", "train", "valid", "test")
OPTIONAL_COUNTS = ("num_edge_feats", "num_relations", "num_node_types")  # 0 where an older program wrote
RARE_COUNTS = ("num_values", "num_graphs", "num_edge_classes")  # written where there are any
OPTIONAL_ARRAYS = ("edge_feats", "edge_types", "node_types", "node_values", "graph_ids", "cluster_places")
GRAPH_FLAGS = ("labels", "multilabel", "sparse_feats", "edge_weight", "directed")


def read_manifest(folder: str | Path) -> dict:
    """Read and check `partition.json`.

    Raises: PartitionFormatError if it is missing, damaged, changed by hand, or from a later version.
    """
    path = Path(folder) / MANIFEST
    if not Path(folder).is_dir():
        raise PartitionFormatError(f"{folder}: no such folder (expected a partition folder)")
    try:
        manifest = json.loads(read_text(path))
    except FileNotFoundError:
        raise PartitionFormatError(f"{folder} is not a partition folder: it has no {MANIFEST}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise PartitionFormatError(f"{path}: not readable as JSON ({error})") from error
    _check_version(path, manifest)
    # Before any field is used: a damaged file is named as such, not by the first field that it breaks.
    if manifest.get("sha256") != manifest_digest(manifest):
        raise PartitionFormatError(f"{path}: its checksum is wrong: damaged, or changed by hand")
    _check_fields(path, manifest)
    return manifest


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


def _check_version(path: Path, manifest: Any) -> None:
    version: Any = manifest.get("format_version") if isinstance(manifest, dict) else None
    if not _is_count(version) or version < 1:
        raise PartitionFormatError(f"{path}: no format_version, so it is not a partition's manifest")
    if version > FORMAT_VERSION:
        raise PartitionFormatError(
            f"{path}: format version {version} is from a later distgnn; this one reads up to {FORMAT_VERSION}"
        )


def _is_count(value: object) -> bool:
    # JSON's true is an int in Python, and would pass for 1.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_number(value: object) -> bool:
    """Finite, and small enough to be printed and added up."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300


def _are_edge_splits(splits: Any) -> bool:
    """Names of arrays and their shapes, each with the array that numbers its rows."""
    if not isinstance(splits, dict) or not set(splits) <= set(EDGE_SPLITS):
        return False
    shapes = all(isinstance(shape, list) and 1 <= len(shape) <= 2 for shape in splits.values())
    beside = all(name.endswith("_negatives") or f"{name.partition('_')[0]}_edges" in splits for name in splits)
    return shapes and beside and all(_is_count(size) for shape in splits.values() for size in shape)


def _check_fields(path: Path, manifest: dict) -> None:
    def need(good: bool, what: str) -> None:
        if not good:
            raise PartitionFormatError(f"{path}: {what} is missing or wrong")

    for name in ("num_parts", "num_nodes", "num_edges", "num_rows", "num_arcs"):
        need(_is_count(manifest.get(name)), name)
    for name in ("name", "direction", "self_loops", "method", "order"):
        need(isinstance(manifest.get(name), str), name)
    for name in MEASURES:
        need(_is_number(manifest.get(name)), name)
    speeds = manifest.get("capacities")
    numbers = isinstance(speeds, list) and all(_is_number(speed) and speed > 0 for speed in speeds)
    need(speeds is None or (numbers and len(speeds) == manifest["num_parts"]), "capacities")
    predicted = manifest.get("predicted_epoch")
    numbers = isinstance(predicted, dict) and all(_is_number(predicted.get(name)) for name in PREDICTED)
    need(predicted is None or numbers, "predicted_epoch")
    groups = manifest.get("groups", 1)
    need(_is_count(groups) and groups > 0 and manifest["num_parts"] % groups == 0, "groups")
    report = manifest.get("edge_report") or {}
    need(isinstance(report, dict) and all(_is_count(count) for count in report.values()), "edge_report")
    graph: Any
    parts: Any
    pairs: Any
    graph, parts, pairs = manifest.get("graph"), manifest.get("parts"), manifest.get("pair_rows")
    need(isinstance(graph, dict), "graph")
    for name in GRAPH_COUNTS:
        need(_is_count(graph.get(name)), f"graph.{name}")
    for name in (*OPTIONAL_COUNTS, *RARE_COUNTS):
        need(_is_count(graph.get(name, 0)), f"graph.{name}")
    for name in GRAPH_FLAGS:
        need(isinstance(graph.get(name), bool), f"graph.{name}")
    need(isinstance(graph.get("clusters", False), bool), "graph.clusters")
    need(_are_edge_splits(graph.get("edge_splits", {})), "graph.edge_splits")
    need(graph.get("edge_labels", "int64") in ("int64", "float32"), "graph.edge_labels")
    need(isinstance(parts, list) and len(parts) == manifest["num_parts"] > 0, "parts")
    square = isinstance(pairs, list) and all(isinstance(row, list) and len(row) == len(parts) for row in pairs)
    need(square and len(pairs) == len(parts) and all(_is_count(n) for row in pairs for n in row), "pair_rows")
    for i, part in enumerate(parts):
        need(isinstance(part, dict) and isinstance(part.get("files"), dict), f"parts[{i}]")
        for name, entry in part["files"].items():
            need(isinstance(entry, dict) and _is_count(entry.get("bytes")), f"parts[{i}].files.{name}")
        for name in PART_SIZES:
            need(_is_count(part.get(name)), f"parts[{i}].{name}")
        need(isinstance(part.get("symmetric"), bool), f"parts[{i}].symmetric")
    # Each vertex has one owner, each arc one part: the sums must be those of the graph.
    need(sum(part["owned"] for part in parts) == manifest["num_nodes"], "the sum of owned vertices")
    need(sum(part["arcs"] for part in parts) == manifest["num_arcs"], "the sum of arcs")


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
    if not _is_count(part_id) or part_id >= num_parts:
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
        arrays.get("edge_weight"),
        _assemble_feats(part["owned"], manifest["graph"], arrays),
        arrays.get("labels"),
        arrays["train_mask"],
        arrays["valid_mask"],
        arrays["test_mask"],
        manifest["graph"],
        **{name: arrays.get(name) for name in OPTIONAL_ARRAYS},
        edge_splits=_edge_splits(manifest["graph"], arrays),
    )


def _edge_splits(graph: dict, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    names = graph.get("edge_splits", {})
    return {name: arrays[name] for name in dict.fromkeys([*names, *map(ids_of, names)])}


def _assemble_feats(owned: int, graph: dict, arrays: dict[str, np.ndarray]) -> Any:
    if not graph["sparse_feats"]:
        return arrays.get("feats")
    # Filled afterwards: the constructor would copy the mapped arrays and check them again.
    matrix = sparse.csr_matrix((owned, graph["num_feats"]), dtype=np.float32)
    matrix.indptr, matrix.indices, matrix.data = (arrays[f"feats_{name}"] for name in ("indptr", "indices", "data"))
    return matrix
