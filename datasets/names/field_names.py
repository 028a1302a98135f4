"""What users call the columns of a graph: the usual names of DGL and PyG, the synonyms that are taken, and the rest."""

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from distgnn.config import did_you_mean
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import InputError

# Field -> names of its column, in the order in which they are taken where there are several.
OF_NODES: dict[str, tuple[str, ...]] = {
    "feats": (
        "feats", "feat", "x", "features", "feature", "node_feat", "node_feats", "node_features", "attr", "attrs",
        "node_attr", "node_attrs", "attributes",
    ),
    "labels": ("labels", "label", "y", "target", "targets", "node_label", "node_labels", "class_label"),
    "train": ("train", "train_mask", "train_idx", "train_index", "train_ids", "train_nodes", "is_train", "train_id"),
    "valid": (
        "valid", "val_mask", "valid_mask", "validation_mask", "val", "val_idx", "valid_idx", "val_index", "valid_index",
        "val_ids", "valid_ids", "val_nodes", "valid_nodes", "validation", "validation_idx", "dev_mask", "is_val",
        "is_valid",
    ),
    "test": ("test", "test_mask", "test_idx", "test_index", "test_ids", "test_nodes", "is_test", "test_id"),
    "node_types": ("node_types", "ntype", "node_type", "_TYPE"),
    "graph_ids": ("graph_ids", "batch", "graph_id"),
    "node_values": ("node_values",),
}  # fmt: skip
OF_EDGES: dict[str, tuple[str, ...]] = {
    "edge_weight": ("edge_weight", "weight", "w", "weights", "edge_weights", "edata_weight"),
    "edge_feats": ("edge_feats", "edge_attr", "feat", "edge_feat", "edge_features", "features", "feature", "attr"),
    "edge_types": ("edge_types", "etype", "edge_type", "_TYPE", "rel_type", "relation"),
}
# Field -> what DGL and PyG themselves call it: taken without a word.
DGL_NAMES = {
    "feats": "feat", "labels": "label", "train": "train_mask", "valid": "val_mask", "test": "test_mask",
    "node_types": "ntype", "edge_weight": "weight", "edge_feats": "feat", "edge_types": "etype",
}  # fmt: skip
PYG_NAMES = DGL_NAMES | {
    "feats": "x", "labels": "y", "node_types": "node_type", "edge_weight": "edge_weight", "edge_feats": "edge_attr",
    "edge_types": "edge_type", "graph_ids": "batch",
}  # fmt: skip
# Keyword argument -> field: names of columns of vertices, and of edges where they say so.
KEYWORDS = {name: field for field, names in OF_NODES.items() for name in names}
KEYWORDS |= {name: field for field, names in OF_EDGES.items() for name in names if name not in KEYWORDS}
MASK_WORDS = ("mask", "is_")
QUIET = set(PYG_NAMES.values())


def our_names(given: dict[str, Any], findings: Findings) -> dict[str, Any]:
    """Field name -> value, other names replaced by ours. Raises: InputError where one field is given twice."""
    found: dict[str, Any] = {}
    by: dict[str, str] = {}
    for name, value in given.items():
        field = KEYWORDS.get(name, name)
        if field in found:
            twice = sorted((name, by[field]), key=lambda one: one == field)
            raise InputError(f"{twice[0]} and {twice[1]} are the same field: give one of them")
        found[field], by[field] = value, name
        if field != name and name not in QUIET and value is not None:
            findings.add("renamed", field, f"{field} ← {name}")
    return found


def refuse_unknown(name: str, known: Iterable[str]) -> NoReturn:
    """Raise InputError for a name that is no field."""
    names = list(known)
    nearest = did_you_mean(name, [*names, *KEYWORDS])
    raise InputError(f"unknown field of a graph: {name!r}{nearest}; known are {', '.join(names)}")


def take_columns(
    frame: Mapping[str, Any],
    fields: Mapping[str, tuple[str, ...]],
    usual: Mapping[str, str],
    findings: Findings,
    decided: Any = (),
) -> dict[str, Any]:
    """Field -> the column of a frame that gives it.

    Args:
        frame: name -> column.
        fields: field -> names that it may have.
        usual: field -> its name in this library, which comes first and is taken without a word.
        decided: fields that the user gives, or leaves out by None: their columns are left alone.
    Notes: columns that nothing takes are named, with their shape; so is the second of two for one field.
    """
    found: dict[str, Any] = {}
    used: set[str] = set()
    for field, names in fields.items():
        present = [name for name in (usual.get(field), *names) if name is not None and name in frame]
        if not present:
            continue
        name = present[0]
        if field in decided:
            used.update(one for one in present if one == usual.get(field))
            continue
        if name in used:
            continue
        used.add(name)
        found[field] = frame[name]
        shown = f"{field} ← {name}"
        findings.add("read" if name in (usual.get(field), "_TYPE") else "renamed", field, shown, _rows(frame[name]))
    for name, column in frame.items():
        if name not in used:
            leave_out(findings, name, column)
    return found


def leave_out(findings: Findings, name: str, column: Any, why: str = "") -> None:
    """Write down a column that is not taken."""
    shape = getattr(column, "shape", None)
    kind = f"{list(shape)}" if shape is not None else type(column).__name__
    findings.add("left out", name, f"{name} ({why or kind})", _rows(column))


def _rows(column: Any) -> int:
    shape = getattr(column, "shape", None)
    return int(shape[0]) if shape is not None and len(shape) else 0


def is_mask_name(name: str) -> bool:
    """Whether a column of this name is a mask, whatever numbers it has."""
    return any(word in name for word in MASK_WORDS)
