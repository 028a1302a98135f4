"""PART_ARRAYS: every array of a part. What writes, reads, checks, moves and hashes arrays goes by this table.

A further array of vertices or arcs: a row here and a field of `LocalGraph`; its values are the field of `GraphData`
that the row names. `python tests/house/make_formats.py` writes docs/part-files.md.

Shapes: V local rows, O owned (O0 of type 0), T target halos, A arcs (A0 of relation 0), P parts. D feature width, De of
edge features, C classes, W values, B bytes of a name. m and k pairs of vertices, K targets; n: as many as the array
beside it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from distgnn.config.task import SPLITS

BLOCKS = ("owned_owned", "owned_halo", "halo_owned", "halo_halo")
FREE = dict.fromkeys("nmkK")  # lengths that a file itself decides
VIEWS = ("feats", "labels", "node_values", *SPLITS)  # fields that a part of a typed graph has in columns of its types


@dataclass(frozen=True)
class PartArray:
    """One array.

    Args:
        name: of the file, without .npy, and of the field of `LocalGraph`. dtypes: the first is written, but an array
            of another of them stays. shape: letters as above, with spaces. says: what it is.
        when: the key of `kinds` without which a part has no such array; None: every part has it.
        field: of `GraphData`; None: it is made by the cut. values: what they are, the least, and the key of `limits`
            that they stay below; hashed: its name in a fingerprint of the graph.
    """

    name: str
    dtypes: tuple[str, ...]
    shape: str
    says: str
    when: str | None = None
    field: str | None = None
    values: tuple[str, int, str] | None = None
    hashed: str | None = None


KINDS, ARCS, MANY = "num_node_types", "num_relations", "num_graphs"
ORDER = "place in an order that keeps clusters"
INTS, I64, I32, F32 = ("int32", "int64"), ("int64",), ("int32",), ("float32",)
CLASSES = ("bool", "int8", "uint8", "int16", "int32", "int64")  # 0, 1 and -1 in the dtype of the source


def _block(name: str) -> tuple[PartArray, PartArray]:
    target, source = ({"owned": "owned vertices", "halo": "halos"}[side] for side in name.split("_"))
    rows = "O+1" if name.startswith("owned") else "T+1"
    return (
        PartArray(f"{name}_indptr", I64, rows, f"arcs from {source} to {target}, CSR"),
        PartArray(f"{name}_indices", I32, "n", "their columns"),
    )


def _exchange(verb: str) -> tuple[PartArray, PartArray]:
    rows = f"boundary rows that each other rank {'receives' if verb == 'broadcast' else 'sends'}"
    return PartArray(f"{verb}_indptr", I64, "P+1", f"{verb}: {rows}"), PartArray(f"{verb}_rows", I32, "n", "their rows")


def _split(split: str) -> tuple[PartArray, ...]:
    """Pairs of vertices: of a part are those whose source it owns."""
    pairs, labels, negatives = f"{split}_edges", f"{split}_edge_labels", f"{split}_negatives"
    targets = f"{split}_negative_targets"
    found = (
        PartArray(f"{split}_edge_ids", I64, "m", "their rows in the whole split", pairs, pairs),
        PartArray(pairs, I64, "m 2", "global ids of pairs whose source is owned", pairs, pairs),
        PartArray(labels, ("int64", "float32"), "m", "their classes or values", labels, labels),
        PartArray(targets, I64, "m K", "the same with other targets", targets, targets),
        PartArray(negatives, I64, "k 2", "pairs that are no edges", negatives, negatives),
        PartArray(f"{split}_negative_ids", I64, "k", "their rows in the whole split", negatives, negatives),
    )
    return found[:3] if split == "train" else found


PART_ARRAYS = (
    PartArray("global_ids", I64, "V", "rows [interior, boundary, halo]", values=("ids", 0, "num_nodes")),
    PartArray("in_degrees", INTS, "V", "over all arcs of the whole graph"),
    PartArray("out_degrees", INTS, "V", "likewise"),
    PartArray("halo_counts", I64, "P 3", "source only, both, target only of each owner rank"),
    *(array for name in BLOCKS for array in _block(name)),
    PartArray("arc_ids", I64, "A", "global arc ids", values=("ids", 0, "num_arc_ids")),
    PartArray("edge_weight", F32, "A", "weights", "edge_weight"),
    *(array for verb in ("broadcast", "reduce") for array in _exchange(verb)),
    *(PartArray(f"{split}_mask", ("bool",), "O", f"of the {split} split", field=split) for split in SPLITS),
    PartArray("labels", I64, "O", "classes, -1: none", "classes", "labels", ("labels", -1, "num_classes"), "labels"),
    PartArray("labels", CLASSES, "O C", "0, 1, -1: none", "multilabel", "labels", ("labels", -1, "flags"), "labels"),
    PartArray("feats", F32, "O D", "features", "dense_feats", "feats"),
    PartArray("feats_indptr", I64, "O+1", "features, CSR", "sparse_feats", "feats"),
    PartArray("feats_indices", INTS, "n", "their columns", "sparse_feats", "feats", ("columns", 0, "num_feats")),
    PartArray("feats_data", F32, "n", "their values", "sparse_feats", "feats"),
    PartArray("node_types", I32, "O", "types of vertices", KINDS, "node_types", ("types", 0, KINDS), "vertex types"),
    PartArray("node_values", F32, "O W", "of a regression", "num_values", "node_values", hashed="vertex values"),
    PartArray("graph_ids", I64, "O", "which of many graphs", MANY, "graph_ids", ("ids", 0, MANY), "graph ids"),
    PartArray("node_names", I64, "O", "names that are numbers", "numbers", "node_names"),
    PartArray("node_names", ("uint8",), "O B", "names: UTF-8 with zeros behind", "texts", "node_names"),
    *(array for split in SPLITS for array in _split(split)),
    PartArray("cluster_places", I64, "O", ORDER, "clusters", None, ("places", 0, "num_nodes")),
    PartArray("edge_feats", F32, "A De", "features of arcs", "num_edge_feats", "edge_feats", hashed="edge features"),
    PartArray("edge_types", I32, "A", "relations of arcs", ARCS, "edge_types", ("types", 0, ARCS), "edge types"),
)
OF_VERTICES = tuple(dict.fromkeys(array.name for array in PART_ARRAYS if array.shape.split()[0] == "O"))
OF_ARCS = tuple(array.name for array in PART_ARRAYS if array.shape.split()[0] == "A" and array.name != "arc_ids")
COUNTS = tuple(dict.fromkeys(array.when for array in PART_ARRAYS if array.when and array.when.startswith("num_")))


def arrays_of(graph: dict[str, Any]) -> list[PartArray]:
    """The rows of `PART_ARRAYS` that each part of a graph has, by the `graph` section of the manifest."""
    width, sparse = graph.get("name_bytes"), graph["sparse_feats"]
    kinds = graph | dict.fromkeys(graph.get("edge_splits", {}), True)
    kinds |= {"dense_feats": graph["num_feats"] and not sparse, "numbers": width == 0, "texts": width}
    kinds["classes"] = graph["labels"] and not graph["multilabel"]
    found = [array for array in PART_ARRAYS if array.when is None or kinds.get(array.when)]
    if not graph.get("types"):
        return found
    return [*(array for array in found if array.field not in VIEWS), *_typed_arrays(graph)]


def _typed_arrays(graph: dict[str, Any]) -> Iterator[PartArray]:
    """The columns of types and relations that each part of a typed graph has.

    A column is described by a list: its dtype and the widths of a row, or "csr" and the width, or "text" and the bytes.
    """
    for number, kind in enumerate(graph.get("types", ())):
        for name, kinds in graph["typed"].get(kind, {}).items():
            classes = graph["type_classes"].get(kind, 0)
            high = str(classes if isinstance(classes, int) else len(classes)) if len(kinds) == 1 else "2"
            values = ("labels", -1, high) if name == "labels" else None
            yield from _files(f"type_{number}_{name}", kinds, f"O{number}", f"{name} of type {number}", values)
    for number, columns in enumerate(graph.get("relation_columns", ())):
        for name, kinds in columns.items():
            yield from _files(f"relation_{number}_{name}", kinds, f"A{number}", f"{name} of relation {number}", None)


def _files(name: str, kinds: list[Any], rows: str, says: str, values: Any) -> list[PartArray]:
    dtype, *widths = kinds
    if dtype == "csr":
        columns = ("columns", 0, str(widths[0]))
        return [
            PartArray(f"{name}_indptr", ("int64", "int32"), f"{rows}+1", f"{says}, CSR"),
            PartArray(f"{name}_indices", ("int32", "int64"), "n", "their columns", values=columns),
            PartArray(f"{name}_data", ("float32",), "n", "their values"),
        ]
    shape = " ".join([rows, *map(str, widths)])
    return [PartArray(name, ("uint8" if dtype == "text" else dtype,), shape, says, values=values)]


def expected_files(
    part: dict[str, Any], graph: dict[str, Any], num_parts: int
) -> dict[str, tuple[tuple[int | None, ...], tuple[str, ...]]]:
    """Array name -> (shape, allowed dtypes) of one part, from its sizes in the manifest; None: any length."""
    owned, targets = part["owned"], part["target_halos"]
    sizes = {"V": part["rows"], "O": owned, "O+1": owned + 1, "T+1": targets + 1, "A": part["arcs"], "P": num_parts}
    sizes |= {"P+1": num_parts + 1, "D": graph["num_feats"], "De": graph.get("num_edge_feats")}
    for number, rows in enumerate(part.get("type_rows", ())):
        sizes |= {f"O{number}": rows, f"O{number}+1": rows + 1}
    sizes |= {f"A{number}": arcs for number, arcs in enumerate(part.get("relation_arcs", ()))}
    sizes |= {"C": graph["num_classes"], "W": graph.get("num_values"), "B": graph.get("name_bytes")} | FREE
    files = {}
    for array in arrays_of(graph):
        shape, dtypes = tuple(sizes[one] if one in sizes else int(one) for one in array.shape.split()), array.dtypes
        if array.name in graph.get("edge_splits", {}):
            shape = (None, *graph["edge_splits"][array.name][1:])
        if array.name.endswith("_edge_labels"):
            dtypes = (graph["edge_labels"],)
        files[array.name] = (shape, dtypes)
    return files
