"""The type of a typed graph that a task is on, and what partition.json says of it as of a graph of one type."""

from collections.abc import Mapping
from typing import Any

from distgnn.errors import InputError

LEARNED = ("labels", "values")  # columns of a type that a task may predict


def target_type(graph: Mapping[str, Any], target: str | None) -> str | None:
    """The type that a task is on, by the section `graph` of partition.json: the one that is named, or the one that has
    labels or values, and a split where several have them; None for a graph of one type. Raises: InputError."""
    kinds = graph.get("types")
    if not kinds:
        if target is not None:
            raise InputError(f"target {target!r} is a type of vertices: this graph has one type, leave target out")
        return None
    if target is not None:
        if target not in kinds:
            raise InputError(f"there is no type {target!r}: target is one of {', '.join(kinds)}")
        return target
    columns = graph["typed"]
    having = [kind for kind in kinds if columns.get(kind, {}).keys() & set(LEARNED)]
    having = [kind for kind in having if "train_mask" in columns[kind]] or having
    if len(having) > 1:
        raise InputError(f"types {' and '.join(having)} have labels: say which is to be learned, target={having[0]!r}")
    return having[0] if having else None


def of_target(graph: Mapping[str, Any], target: str | None) -> dict[str, Any]:
    """The section as of a graph that has the vertices of the target alone; as it is for a graph of one type."""
    kind = target_type(graph, target)
    if not graph.get("types"):
        return dict(graph)
    columns = graph["typed"].get(kind, {}) if kind else {}
    labels, values = columns.get("labels"), columns.get("values")
    several, classes = labels is not None and len(labels) > 1, graph["type_classes"].get(kind, 0)
    made: dict[str, Any] = {"labels": labels is not None, "multilabel": several, "num_feats": 1, "sparse_feats": False}
    made["num_classes"] = classes if isinstance(classes, int) else len(classes)
    made |= {} if isinstance(classes, int) else {"class_names": list(classes)}
    if values is not None:
        made |= {"num_values": values[1] if len(values) > 1 else 1, "flat_values": len(values) == 1}
    left = ("class_names", "num_values", "flat_values", "name_bytes")
    made |= {} if "train_mask" in columns else {"train": 0, "valid": 0, "test": 0}
    return {name: value for name, value in graph.items() if name not in left} | made
