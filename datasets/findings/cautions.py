"""Cautions: what is taken as it stands, although it is probably not what was meant. Each comes once.

Legend: N vertices, E edges.
"""

import numpy as np

from distgnn.datasets.checks import NUMBERS, blocks
from distgnn.datasets.fields import SPLITS, GraphFields
from distgnn.datasets.link_splits import has_edge_splits
from distgnn.datasets.objects.values import WHOLE_FLOAT32, add_vanished
from distgnn.datasets.pairs import are_edges, pair_keys

FEW = 20  # vertices of a graph in which isolated ones are no surprise
MOST_IDS = 0.5  # classes for each labelled vertex: more are ids
MANY_CLASSES = 50
ONE_WAY = 0.1  # of the edges have an opposite: fewer, and the graph is one-way
SAMPLE, FEWEST_PAIRS = 1000, 10  # edges that are looked at; fewer say nothing
BLOCK = 1 << 22
MOST_FLOAT32 = float(np.finfo(np.float32).max)


def add_cautions(graph: GraphFields) -> None:
    """Write down what is suspicious in a checked graph."""
    if graph.findings.wrong:
        return
    _of_ids(graph)
    _of_labels(graph)
    if graph.valid is not None and graph.test is not None and (both := len(np.intersect1d(graph.valid, graph.test))):
        text = (
            f"validation and test have {both} vertices in common: the test metric of the best epoch is chosen by them"
        )
        graph.findings.add("caution", "test", text, both)
    _of_values(graph)


def _of_ids(graph: GraphFields) -> None:
    touched = np.zeros(graph.num_nodes, dtype=bool)
    for start in range(0, graph.num_edges, BLOCK):
        touched[graph.edges[start : start + BLOCK]] = True
    isolated = graph.num_nodes - int(np.count_nonzero(touched))
    if graph.num_edges == 0:
        return
    if not touched[0] and touched[1:].all() and graph.num_nodes > 3:
        text = "vertex ids seem to start at 1: vertex 0 alone has no edge; give edges - 1 (a file: --renumber)"
        graph.findings.add("caution", "edges", f"{text} if they do", 1)
    elif graph.num_nodes >= FEW and 2 * isolated > graph.num_nodes:
        text = f"{isolated} of {graph.num_nodes} vertices have no edge: are these the ids of the features' rows?"
        graph.findings.add("caution", "edges", text + " dg.renumber (of a file: --renumber) closes gaps", isolated)


def _of_labels(graph: GraphFields) -> None:
    labels = graph.labels
    if labels is None or graph.class_names:
        return
    if labels.ndim == 2:
        ones = labels.sum(axis=1)  # negative: no label
        if labels.shape[1] > 1 and (ones == 1).any() and (ones[ones >= 0] == 1).all():
            graph.findings.add(
                "caution", "labels", "labels are taken as several per vertex, and each has exactly one: give "
                "labels.argmax(1) where these are classes", len(labels),
            )  # fmt: skip
        return
    known = labels[labels >= 0]
    top = int(known.max(initial=-1))
    if graph.num_label_classes is not None:
        return
    if top >= 2 and known.size > top and np.array_equal(np.unique(known), np.arange(1, top + 1)):
        graph.findings.add(
            "caution", "labels", f"labels seem to start at 1: class 0 of {top + 1} is empty; give labels - 1 "
            "if they do (-1 is no label)", len(known),
        )  # fmt: skip
    elif top >= MANY_CLASSES and top + 1 > MOST_IDS * known.size:
        text = f"{top + 1} classes for {known.size} labelled vertices: are these ids, or values (node_values)?"
        graph.findings.add("caution", "labels", text, top + 1)


def _of_values(graph: GraphFields) -> None:
    weight = graph.edge_weight
    if weight is not None and len(weight):
        with np.errstate(under="ignore"):
            bad = np.asarray(weight, dtype=np.float32) <= 0
        if bad.any():
            graph.findings.add(
                "note", "edge_weight", f"row {int(np.argmax(bad))} holds "
                f"{weight[int(np.argmax(bad))]}: models that divide by sums of weights refuse it under --weighted",
                int(np.count_nonzero(bad)),
            )  # fmt: skip
        largest = float(np.abs(weight).max(initial=0))
        if largest * len(weight) > MOST_FLOAT32:  # else no sum is beyond
            sums = [np.bincount(ends, np.abs(weight).astype(np.float64)).max(initial=0) for ends in graph.edges.T]
            if max(sums) > MOST_FLOAT32:
                text = (
                    f"edge_weight: weights of a vertex add up to {max(sums):.4g}, beyond float32's 3.4e38; scale them"
                )
                graph.findings.add("caution", "edge_weight", f"{text} (layers that divide by such a sum give 0)")
    for name in NUMBERS:
        values = getattr(graph, name)
        values = getattr(values, "data", values) if hasattr(values, "tocsr") else values
        if values is None or not values.size:
            continue
        if values.dtype.kind == "f" and values.dtype.itemsize > 4:
            with np.errstate(over="ignore", under="ignore"):
                lost = [block[(block != 0) & (block.astype(np.float32) == 0)] for _, block in blocks(values)]
            add_vanished(name, np.concatenate(lost), graph.findings)
        elif values.dtype.kind in "iu" and values.dtype.itemsize > 2:
            most = max(abs(int(values.min())), abs(int(values.max())))
            if most > WHOLE_FLOAT32:
                text = f"{name}: whole numbers up to {most} are rounded to float32 (24 bits); scale them"
                graph.findings.add("caution", name, text)


def add_training_cautions(graph: GraphFields, direction: str, split: bool = False) -> None:
    """Write down what a training on this graph would not expect: one-way arcs, and no split (unless one is made)."""
    if graph.findings.wrong:
        return
    carries = graph.feats is not None or graph.labels is not None or graph.node_values is not None
    if carries and graph.directed and direction != "both" and graph.edge_types is None and _is_one_way(graph):
        how = "--direction both (direction='both') sends them back too"
        if graph.edge_weight is not None or graph.edge_feats is not None:  # both merges no edges that carry numbers
            how = "store both arcs of each edge, with its weight or features, to send them back too"
        text = f"messages travel one way only: fewer than 1 in 10 edges has its opposite; {how}"
        graph.findings.add("caution", "edges", text, graph.num_edges)
    targets = graph.labels is not None or graph.node_values is not None
    typed = any("feats" in columns for columns in graph.typed.values())
    if not graph.num_feats and not typed:  # edges alone may be meant for their cut: a line, no warning
        text = "no features: train and fit need at least one per vertex; give x or feats (in a shell --feats FILE)"
        graph.findings.add("caution" if targets else "understood", "feats", text)
    if targets and not split and not has_edge_splits(graph) and all(getattr(graph, name) is None for name in SPLITS):
        graph.findings.add(
            "caution", "train", "no vertex is for training: --split 0.6,0.2,0.2 (split='0.6,0.2,0.2', or "
            "GraphData.split_nodes) makes a random split", graph.num_nodes,
        )  # fmt: skip
    if graph.labels is not None and not graph.multilabel and graph.train is not None and not split:
        _of_unseen_classes(graph, graph.labels)


def _of_unseen_classes(graph: GraphFields, labels: np.ndarray) -> None:
    masks = graph.split_masks()
    tested = labels[masks["valid"] | masks["test"]]
    unseen = np.setdiff1d(tested, labels[masks["train"]])
    if len(unseen) and masks["train"].any():
        count = int(np.isin(tested, unseen).sum())
        first = graph.class_names[unseen[0]] if graph.class_names else unseen[0]
        text = (
            f"classes without a vertex for training: {len(unseen)}, first {first}; vertices for validation or test of "
        )
        graph.findings.add("caution", "train", f"{text}such a class: {count}, and no model learns them", count)


def _is_one_way(graph: GraphFields) -> bool:
    """Do fewer than a tenth of the edges, by a sample, have an edge the other way?"""
    chosen = np.unique(np.linspace(0, max(graph.num_edges - 1, 0), SAMPLE).astype(np.int64))
    sample = np.asarray(graph.edges[chosen[: graph.num_edges]]).astype(np.int64)
    sample = sample[sample[:, 0] != sample[:, 1]]
    wanted = np.unique(pair_keys(sample[:, 1], sample[:, 0], graph.num_nodes))
    if len(wanted) < FEWEST_PAIRS:
        return False
    there = are_edges(wanted, graph.edges, graph.num_nodes)
    return bool(np.count_nonzero(there) < ONE_WAY * len(wanted))
