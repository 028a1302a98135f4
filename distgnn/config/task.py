"""What a run learns to predict: tasks, their losses, metrics and decoders, and the type of vertices they are on.

| task | predicts | of | loss |
|---|---|---|---|
| node | a class (or several) | vertices | cross entropy |
| regression | values | vertices | mse, mae |
| edge | a class | pairs of vertices | cross entropy |
| edge-regression | a value | pairs of vertices | mse, mae |
| link | whether there is an edge | pairs of vertices | binary cross entropy, with negatives |

The type of a typed graph that a task is on, and what partition.json says of it as of a graph of one type.
"""

from collections.abc import Mapping
from typing import Any

from distgnn.errors import InputError
from distgnn.system.units import human_share

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


TASKS = ("node", "regression", "edge", "edge-regression", "link")
SPLITS = ("train", "valid", "test")  # of vertices or of pairs
HELD_OUT = SPLITS[1:]
EDGE_SPLITS = (  # arrays of splits of edges
    *(f"{split}_edges" for split in SPLITS),
    *(f"{split}_edge_labels" for split in SPLITS),
    *(f"{split}_negatives" for split in HELD_OUT),
    *(f"{split}_negative_targets" for split in HELD_OUT),
)
CLASS_TASKS = ("node", "edge")
PAIR_TASKS = ("edge", "edge-regression", "link")
LOSSES = ("mse", "mae")
DECODERS = ("dot", "mlp", "concat")
NEGATIVES = ("uniform", "source")
HITS = tuple(f"hits@{most}" for most in (1, 3, 10, 20, 50, 100))
CLASS_METRICS, VALUE_METRICS, LINK_METRICS = ("accuracy", "rocauc", "f1"), ("mse", "mae"), ("mrr", "rocauc", *HITS)
METRICS = tuple(dict.fromkeys((*CLASS_METRICS, *VALUE_METRICS, *LINK_METRICS)))
METRICS_OF: dict[str, tuple[str, ...]] = {
    "node": CLASS_METRICS,
    "regression": VALUE_METRICS,
    "edge": CLASS_METRICS,
    "edge-regression": VALUE_METRICS,
    "link": LINK_METRICS,
}
LOWER_IS_BETTER = VALUE_METRICS


def human_metric(name: str, value: float | None) -> str:
    """A metric as people read it: a share in per cent, an error as a number."""
    return f"{value:.4g}" if name in LOWER_IS_BETTER and value is not None else human_share(value)


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_training_graph(config: Any, graph: dict[str, Any]) -> None:
    """Raise InputError where the graph (of a partition's manifest) has not what this TrainConfig trains on."""
    task, classes = config.task, graph["num_classes"]
    if not graph["num_feats"]:
        raise InputError("the graph has no features: training needs at least one feature per vertex")
    if task == "node" and not graph["labels"] and graph.get("num_values"):
        raise InputError("labels of this graph are floats, values: task regression; give whole numbers for classes")
    if task == "node" and not graph["labels"]:
        raise InputError("the graph has no labels: training needs labels")
    if task == "node" and not graph["train"]:
        raise InputError("no training vertex has a label: give a train split with labelled vertices")
    if task == "regression" and not graph["train"]:
        raise InputError("there are no training vertices: give a train split")
    if config.metric == "rocauc" and task == "node" and not graph["multilabel"] and classes != 2:
        raise InputError(f"metric rocauc needs two classes or several tasks: this graph has {classes} classes")
    edge_classes = graph.get("num_edge_classes", 0)
    if config.metric == "rocauc" and task == "edge" and edge_classes != 2:
        raise InputError(f"metric rocauc needs two classes: the edges of this graph have {edge_classes}")
    if config.label_smoothing and task == "node" and graph["multilabel"]:
        raise InputError("label_smoothing is for one label each, and this graph is multi-label: leave it out")


def check_graph_for(task: str, graph: dict[str, Any]) -> None:
    """Raise InputError where the graph (of a partition's manifest) has not what a task predicts."""
    splits, labels = graph.get("edge_splits", {}), graph.get("edge_labels")
    if task == "regression" and not graph.get("num_values"):
        if not graph["labels"]:
            raise InputError("task regression needs values of vertices: the graph has no labels (y)")
        text = next((name for name in graph.get("class_names", ()) if not is_number(name)), None)
        if text is not None:
            raise InputError(f"task regression needs numbers: the labels of this graph are texts, as {text!r}")
    if task in PAIR_TASKS and not splits.get("train_edges", [0])[0]:
        raise InputError(
            f"task {task} needs a split of edges, this partition has none for training: hold some out with distgnn "
            "partition --link-split 0.05,0.1, or give the graph train_edges.npy, valid_edges.npy and test_edges.npy"
        )
    wanted = {"edge": "int64", "edge-regression": "float32"}.get(task)
    if wanted is not None and labels != wanted:
        what = "none" if labels is None else "whole numbers" if labels == "int64" else "floats"
        kind = "whole numbers (classes)" if task == "edge" else "floats (values)"
        raise InputError(f"task {task} needs labels of edges that are {kind}: this partition has {what}")
    if task == "link" and labels is not None:
        raise InputError("task link predicts edges: the edges of this partition's split have labels (task edge)")
