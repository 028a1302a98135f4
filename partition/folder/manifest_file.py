"""`partition.json` as it is read: checked field by field before any of it is used. Needs no array and no kernel.

    parts/
        partition.json        what was cut, how, how well; size and SHA-256 of every file below; its own SHA-256
        part-0/               all a rank reads besides: the arrays of partition/core/part_arrays.py
        part-1/ …             as .npy files, mapped when they are read

Every damage is a `PartitionFormatError` that names the file and what is wrong with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distgnn.config.cut import ARC_ORDERS
from distgnn.config.task import EDGE_SPLITS
from distgnn.errors import PartitionFormatError
from distgnn.partition.core.part_arrays import COUNTS
from distgnn.system.regular_file import check_name, read_text

PART_SIZES = ("owned", "interior", "rows", "source_halos", "target_halos", "arcs", "train")
MEASURES = (
    "replication_factor", "edge_balance", "owned_balance", "copies_balance", "exchange_rows", "max_rank_rows",
    "seconds", "peak_rss_bytes", "seed",
)  # fmt: skip
GRAPH_COUNTS = ("num_feats", "num_classes", "train", "valid", "test")
RARE_COUNTS = (*COUNTS, "num_edge_classes", "nonpositive_weights", "name_bytes")
GRAPH_FLAGS = ("labels", "multilabel", "sparse_feats", "edge_weight", "directed")

TYPE_COLUMNS = ("feats", "labels", "values", "names", "train_mask", "valid_mask", "test_mask")
RELATION_COLUMNS = ("weight", "feat")
DTYPES = ("bool", "int8", "uint8", "int16", "int32", "int64", "float32", "csr", "text")

FORMAT_VERSION = 1
MANIFEST = "partition.json"


def part_folder(folder: Path, part_id: int) -> Path:
    """Where a part lies: made from its number, never from a name in a file."""
    return Path(folder) / f"part-{part_id}"


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Read and check `partition.json`.

    Raises: PartitionFormatError if it is missing, damaged, changed by hand, or from a later version.
    """
    path = Path(folder) / MANIFEST
    check_name(folder)
    if not Path(folder).is_dir():
        raise PartitionFormatError(
            f"{folder}: no such folder (expected a partition folder; distgnn partition makes one of a graph)"
        )
    try:
        manifest = json.loads(read_text(path))
    except FileNotFoundError:
        raise PartitionFormatError(f"{folder} is not a partition folder: it has no {MANIFEST}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise PartitionFormatError(f"{path}: not readable as JSON ({error})") from error
    version: Any = manifest.get("format_version") if isinstance(manifest, dict) else None
    if not is_count(version) or version < 1:
        raise PartitionFormatError(f"{path}: no format_version, so it is not a partition's manifest")
    if version != FORMAT_VERSION:
        raise PartitionFormatError(f"{path}: format version {version} is not {FORMAT_VERSION}: cut the graph again")
    # Before any field is used: a damaged file is named as such, not by the first field that it breaks.
    if manifest.get("sha256") != manifest_digest(manifest):
        raise PartitionFormatError(f"{path}: its checksum is wrong: damaged, or changed by hand")
    _check_fields(path, manifest)
    return manifest


def manifest_digest(manifest: dict[str, Any]) -> str:
    """SHA-256 of everything in the manifest but this digest itself."""
    # Keys are sorted: the digest does not depend on the order in which they were put in.
    content = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def is_count(value: object) -> bool:
    # JSON's true is an int in Python, and would pass for 1.
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


def _is_number(value: object) -> bool:
    """Finite, and small enough to be printed and added up."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e300 < value < 1e300


def _check_fields(path: Path, manifest: dict) -> None:
    def need(good: bool, what: str) -> None:
        if not good:
            raise PartitionFormatError(f"{path}: {what} is missing or wrong")

    for name in ("num_parts", "num_nodes", "num_edges", "num_list_edges", "num_arcs"):
        need(is_count(manifest.get(name)), name)
    for name in ("name", "direction", "self_loops", "method", "order"):
        need(isinstance(manifest.get(name), str), name)
    for name in MEASURES:
        need(_is_number(manifest.get(name)), name)
    speeds = manifest.get("capacities")
    numbers = isinstance(speeds, list) and all(_is_number(speed) and speed > 0 for speed in speeds)
    need(speeds is None or (numbers and len(speeds) == manifest["num_parts"]), "capacities")
    groups = manifest.get("groups", 1)
    need(is_count(groups) and groups > 0 and manifest["num_parts"] % groups == 0, "groups")
    report = manifest.get("edge_report") or {}
    need(isinstance(report, dict) and all(is_count(count) for count in report.values()), "edge_report")
    graph: Any
    parts: Any
    pairs: Any
    graph, parts, pairs = manifest.get("graph"), manifest.get("parts"), manifest.get("pair_rows")
    need(isinstance(graph, dict), "graph")
    for name in GRAPH_COUNTS:
        need(is_count(graph.get(name)), f"graph.{name}")
    for name in RARE_COUNTS:
        need(is_count(graph.get(name, 0)), f"graph.{name}")
    for name in GRAPH_FLAGS:
        need(isinstance(graph.get(name), bool), f"graph.{name}")
    need(isinstance(graph.get("clusters", False), bool), "graph.clusters")
    need(graph.get("arc_order", "listed") in ARC_ORDERS, "graph.arc_order")
    names = graph.get("class_names", [])
    need(isinstance(names, list) and all(isinstance(name, str) for name in names), "graph.class_names")
    # Names of arrays and their shapes, each with the array that numbers its rows.
    splits = graph.get("edge_splits", {})
    need(isinstance(splits, dict) and set(splits) <= set(EDGE_SPLITS), "graph.edge_splits")
    for name, shape in splits.items():
        sizes = isinstance(shape, list) and 1 <= len(shape) <= 2 and all(is_count(size) for size in shape)
        beside = name.endswith("_negatives") or f"{name.partition('_')[0]}_edges" in splits
        need(sizes and beside, "graph.edge_splits")
    need(graph.get("edge_labels", "int64") in ("int64", "float32"), "graph.edge_labels")
    _check_types(need, manifest)
    need(isinstance(parts, list) and len(parts) == manifest["num_parts"] > 0, "parts")
    square = isinstance(pairs, list) and all(isinstance(row, list) and len(row) == len(parts) for row in pairs)
    need(square and len(pairs) == len(parts) and all(is_count(n) for row in pairs for n in row), "pair_rows")
    for i, part in enumerate(parts):
        need(isinstance(part, dict) and isinstance(part.get("files"), dict), f"parts[{i}]")
        for name, entry in part["files"].items():
            need(isinstance(entry, dict) and is_count(entry.get("bytes")), f"parts[{i}].files.{name}")
        for name in PART_SIZES:
            need(is_count(part.get(name)), f"parts[{i}].{name}")
        need(is_count(part.get("relation_targets", 0)), f"parts[{i}].relation_targets")
        need(isinstance(part.get("symmetric"), bool), f"parts[{i}].symmetric")
        for name, of, total in (
            ("type_rows", "types", "owned"),
            ("type_train", "types", "train"),
            ("relation_arcs", "relations", "arcs"),
        ):
            if "types" in graph:
                counts = part.get(name)
                good = isinstance(counts, list) and len(counts) == len(graph[of]) and all(map(is_count, counts))
                need(good and sum(counts) == part[total], f"parts[{i}].{name}")
    # Each vertex has one owner, each arc one part: the sums must be the graph's.
    need(sum(part["owned"] for part in parts) == manifest["num_nodes"], "the sum of owned vertices")
    need(sum(part["arcs"] for part in parts) == manifest["num_arcs"], "the sum of arcs")


def _check_types(need: Callable[[bool, str], None], manifest: dict[str, Any]) -> None:
    """Of a typed graph: its types, relations, and what their columns are."""
    graph = manifest["graph"]
    if "types" not in graph:
        return
    types, counts, relations = graph["types"], graph.get("type_counts"), graph.get("relations")
    need(isinstance(types, list) and len(types) > 0 and all(isinstance(kind, str) for kind in types), "graph.types")
    good = isinstance(counts, list) and len(counts) == len(types) and all(map(is_count, counts))
    need(good and sum(counts) == manifest["num_nodes"], "graph.type_counts")
    triples = isinstance(relations, list) and all(isinstance(one, list) and len(one) == 3 for one in relations)
    need(triples and all(isinstance(word, str) for one in relations for word in one), "graph.relations")
    need(all(one[0] in types and one[2] in types for one in relations), "graph.relations")
    need(graph.get("num_relations") == len(relations) and graph.get("num_node_types") == len(types), "graph.relations")
    typed, of_relations = graph.get("typed"), graph.get("relation_columns")
    need(isinstance(typed, dict) and typed.keys() <= set(types), "graph.typed")
    need(isinstance(of_relations, list) and len(of_relations) == len(relations), "graph.relation_columns")
    for known, tables in ((TYPE_COLUMNS, [*typed.values()]), (RELATION_COLUMNS, of_relations)):
        for table in tables:
            need(isinstance(table, dict) and table.keys() <= set(known), "graph.typed")
            for kinds in table.values():
                need(isinstance(kinds, list) and len(kinds) > 0 and kinds[0] in DTYPES, "graph.typed")
                need(all(map(is_count, kinds[1:])), "graph.typed")
                need(kinds[0] not in ("csr", "text") or (len(kinds) == 2 and kinds[1] > 0), "graph.typed")
    classes = graph.get("type_classes")
    need(
        isinstance(classes, dict) and classes.keys() == {kind for kind in typed if "labels" in typed[kind]},
        "graph.type_classes",
    )
    for value in classes.values():
        need(
            is_count(value) or (isinstance(value, list) and all(isinstance(name, str) for name in value)),
            "graph.type_classes",
        )
