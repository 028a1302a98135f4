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
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from distgnn.config.cut import ARC_ORDERS
from distgnn.config.task import EDGE_SPLITS
from distgnn.errors import PartitionFormatError
from distgnn.partition.core.part_arrays import COUNTS
from distgnn.system.atomic import check_name, read_text

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

# Of a part of a typed graph: a count for each of these, and what they sum to.
TYPE_SIZES = (("type_rows", "types", "owned"), ("type_train", "types", "train"), ("relation_arcs", "relations", "arcs"))

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


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_list(values: Any, fits: Callable[[Any], bool], size: int | None = None) -> bool:
    return isinstance(values, list) and size in (None, len(values)) and all(map(fits, values))


def _check_fields(path: Path, manifest: dict[str, Any]) -> None:
    def need(good: bool, what: str) -> None:
        if not good:
            raise PartitionFormatError(f"{path}: {what} is missing or wrong")

    def each(fits: Callable[[Any], bool], found: dict[str, Any], names: Iterable[str], where: str = "") -> None:
        for name in names:
            need(fits(found.get(name)), f"{where}{name}")

    each(is_count, manifest, ("num_parts", "num_nodes", "num_edges", "num_list_edges", "num_arcs"))
    each(_is_text, manifest, ("name", "direction", "self_loops", "method", "order"))
    each(_is_number, manifest, MEASURES)
    num_parts, speeds, groups = manifest["num_parts"], manifest.get("capacities"), manifest.get("groups", 1)
    need(speeds is None or _is_list(speeds, lambda one: _is_number(one) and one > 0, num_parts), "capacities")
    need(is_count(groups) and groups > 0 and num_parts % groups == 0, "groups")
    report = manifest.get("edge_report") or {}
    need(isinstance(report, dict) and all(map(is_count, report.values())), "edge_report")
    graph: Any = manifest.get("graph")
    need(isinstance(graph, dict), "graph")
    each(is_count, graph, GRAPH_COUNTS, "graph.")
    each(is_count, dict.fromkeys(RARE_COUNTS, 0) | graph, RARE_COUNTS, "graph.")
    each(_is_flag, {"clusters": False} | graph, (*GRAPH_FLAGS, "clusters"), "graph.")
    need(graph.get("arc_order", "listed") in ARC_ORDERS, "graph.arc_order")
    need(_is_list(graph.get("class_names", []), _is_text), "graph.class_names")
    # Names of arrays and their shapes, each with the array that numbers its rows.
    splits = graph.get("edge_splits", {})
    need(isinstance(splits, dict) and set(splits) <= set(EDGE_SPLITS), "graph.edge_splits")
    for name, shape in splits.items():
        beside = name.endswith("_negatives") or f"{name.partition('_')[0]}_edges" in splits
        need(_is_list(shape, is_count) and 1 <= len(shape) <= 2 and beside, "graph.edge_splits")
    need(graph.get("edge_labels", "int64") in ("int64", "float32"), "graph.edge_labels")
    _check_types(need, manifest)
    parts: Any = manifest.get("parts")
    need(_is_list(parts, lambda part: isinstance(part, dict), num_parts) and num_parts > 0, "parts")
    need(_is_list(manifest.get("pair_rows"), lambda row: _is_list(row, is_count, num_parts), num_parts), "pair_rows")
    for i, part in enumerate(parts):
        where, files = f"parts[{i}].", part.get("files")
        need(isinstance(files, dict), f"parts[{i}]")
        for name, entry in files.items():
            need(isinstance(entry, dict) and is_count(entry.get("bytes")), f"{where}files.{name}")
        each(is_count, {"relation_targets": 0} | part, (*PART_SIZES, "relation_targets"), where)
        each(_is_flag, part, ["symmetric"], where)
        for name, of, total in TYPE_SIZES if "types" in graph else ():
            counts = part.get(name)
            need(_is_list(counts, is_count, len(graph[of])) and sum(counts) == part[total], f"{where}{name}")
    # Each vertex has one owner, each arc one part: the sums must be the graph's.
    need(sum(part["owned"] for part in parts) == manifest["num_nodes"], "the sum of owned vertices")
    need(sum(part["arcs"] for part in parts) == manifest["num_arcs"], "the sum of arcs")


def _check_types(need: Callable[[bool, str], None], manifest: dict[str, Any]) -> None:
    """Of a typed graph: its types, relations, and what their columns are."""
    graph = manifest["graph"]
    if "types" not in graph:
        return
    types, counts, relations = graph["types"], graph.get("type_counts"), graph.get("relations")
    need(_is_list(types, _is_text) and len(types) > 0, "graph.types")
    need(_is_list(counts, is_count, len(types)) and sum(counts) == manifest["num_nodes"], "graph.type_counts")
    need(_is_list(relations, lambda one: _is_list(one, _is_text, 3)), "graph.relations")
    need(all(one[0] in types and one[2] in types for one in relations), "graph.relations")
    need(graph.get("num_relations") == len(relations) and graph.get("num_node_types") == len(types), "graph.relations")
    typed, of_relations, classes = graph.get("typed"), graph.get("relation_columns"), graph.get("type_classes")
    need(isinstance(typed, dict) and typed.keys() <= set(types), "graph.typed")
    need(_is_list(of_relations, lambda table: isinstance(table, dict), len(relations)), "graph.relation_columns")
    for known, tables in ((TYPE_COLUMNS, [*typed.values()]), (RELATION_COLUMNS, of_relations)):
        for table in tables:
            need(isinstance(table, dict) and table.keys() <= set(known), "graph.typed")
            for kinds in table.values():
                need(isinstance(kinds, list) and len(kinds) > 0 and kinds[0] in DTYPES, "graph.typed")
                need(_is_list(kinds[1:], is_count), "graph.typed")
                need(kinds[0] not in ("csr", "text") or (len(kinds) == 2 and kinds[1] > 0), "graph.typed")
    labelled = {kind for kind in typed if "labels" in typed[kind]}
    good = isinstance(classes, dict) and classes.keys() == labelled
    need(good and all(is_count(one) or _is_list(one, _is_text) for one in classes.values()), "graph.type_classes")
