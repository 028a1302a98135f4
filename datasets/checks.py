"""Check a graph at the border, and count what is unusual in it.

Legend: N vertices, E edges. Arrays may be mapped from disk: all passes go block by block.
"""

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse

from distgnn.datasets.fields import SPLITS, GraphFields
from distgnn.datasets.links.check import check_edge_splits
from distgnn.datasets.pairs import count_pairs
from distgnn.datasets.text.table import is_table, line_of_row
from distgnn.datasets.tidy import mask_hint

BLOCK_BYTES = 1 << 25
# A pair of vertices must fit one int64 (distgnn.datasets.pairs).
MAX_NODES = 3_000_000_000
MAX_TYPES = 1 << 15
MOST_CLASSES = 1 << 20
FREE_NODES, NODES_PER_ROW = 1 << 22, 1000
RENUMBER = "; dg.renumber takes other ids"


def blocks(array: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(first row, rows) over an array, about 32 MB at a time."""
    row_bytes = max(array.itemsize * int(np.prod(array.shape[1:])), 1)
    step = max(BLOCK_BYTES // row_bytes, 1)
    for start in range(0, len(array), step):
        yield start, array[start : start + step]


def _check_counts(graph: GraphFields) -> None:
    if not isinstance(graph.num_nodes, int | np.integer) or isinstance(graph.num_nodes, bool):
        graph.fail("num_nodes", f"num_nodes must be a whole number, found {graph.num_nodes!r}")
    if graph.num_nodes < 1:
        graph.fail("num_nodes", f"the graph has {graph.num_nodes} vertices; at least one is needed")
    if graph.num_nodes > MAX_NODES:
        graph.fail(
            "num_nodes", f"the graph has {graph.num_nodes} vertices; at most {MAX_NODES} can be handled{RENUMBER}"
        )
    check_size(graph.num_nodes, _known_rows(graph), lambda text: graph.fail("num_nodes", text + RENUMBER))


def check_graph(graph: GraphFields) -> None:
    """Raise through `graph.fail` at the first thing that is wrong; or write all down where `findings` collects errors.

    Notes: a field that is wrong is checked for its first fault only.
    """
    reading = graph.findings.reading
    with reading("num_nodes"):
        _check_counts(graph)
    if any(one.field == "num_nodes" for one in graph.findings.wrong):
        return
    for name, check in CHECKS.items():
        with reading(name):
            check(graph)
    if not any(one.field in ("num_nodes", "edges") for one in graph.findings.wrong):
        with reading("edge splits"):
            check_edge_splits(graph)


def check_size(num_nodes: int, known_rows: int, fail: Callable[[str], object]) -> None:
    """Call `fail` where so many vertices are out of all proportion to what is known of them: memory for each is needed.

    Args: known_rows: edges, or rows of features or labels, whichever are most.
    """
    if num_nodes > FREE_NODES and num_nodes > NODES_PER_ROW * known_rows:
        fail(f"the graph has {num_nodes} vertices but only {known_rows} edges and no rows for most of them")


def _known_rows(graph: GraphFields) -> int:
    arrays = (graph.edges, graph.feats, graph.labels)
    return max(int(array.shape[0]) for array in arrays if array is not None and len(array.shape))


def _check_edges(graph: GraphFields) -> None:
    edges = graph.edges
    if edges.ndim != 2 or edges.shape[1] != 2:
        hint = "; transpose it" if edges.ndim == 2 and edges.shape[0] == 2 else ""
        if edges.ndim == 2 and edges.shape[1] == 3:
            hint = "; a third column is no part of an edge: edge_weight, or edge_types, is an array of its own"
        graph.fail("edges", f"expected shape [E, 2], found {list(edges.shape)}{hint}")
    if edges.dtype.kind not in "iu":
        graph.fail("edges", f"expected integer vertex ids, found {edges.dtype}; store them as int32 or int64")
    row, count = first_row(edges, lambda block: _outside(block, graph.num_nodes))
    if row is not None:
        ends = np.asarray(edges[row])
        value = ends[(ends < 0) | (ends >= graph.num_nodes)][0]
        what = "a negative vertex id" if value < 0 else "a vertex id outside the graph"
        graph.fail(
            "edges",
            f"{_place(graph, 'edges', row)} holds {what}, {value} "
            f"(num_nodes is {graph.num_nodes}; ids run from 0 to {graph.num_nodes - 1}"
            f"{_from_one(edges, graph.num_nodes) or RENUMBER})",
            count,
        )


def _outside(block: np.ndarray, num_nodes: int) -> np.ndarray:
    """Which ids are no vertex."""
    if block.min() < 0 or block.max() >= num_nodes:
        return (block < 0) | (block >= num_nodes)
    return np.zeros(len(block), dtype=bool)


def _from_one(edges: np.ndarray, num_nodes: int) -> str:
    """A hint where ids run from 1 to N."""
    lowest = min(int(block.min()) for _, block in blocks(edges))
    highest = max(int(block.max()) for _, block in blocks(edges))
    return "; they seem to start at 1: give edges - 1" if (lowest, highest) == (1, num_nodes) else ""


def _place(graph: GraphFields, name: str, row: int) -> str:
    """A row as its user finds it: the line of a text file, counted from 1, or the row of an array, counted from 0."""
    path = graph.files.get(name)
    return f"line {line_of_row(path, row)}" if path is not None and is_table(path) else f"row {row}"


def first_row(array: np.ndarray, is_bad: Callable[[np.ndarray], np.ndarray]) -> tuple[int | None, int]:
    """(the first row with a bad entry, or None; how many such rows there are), block by block."""
    first, count = None, 0
    for start, block in blocks(array):
        bad = is_bad(block)
        if bad.any():
            rows = bad.reshape(len(block), -1).any(axis=1)
            first = start + int(np.argmax(rows)) if first is None else first
            count += int(np.count_nonzero(rows))
    return first, count


def no_float32(block: np.ndarray) -> np.ndarray:
    """Which entries are NaN, infinite, or beyond what float32 holds."""
    if block.dtype.kind != "f":
        return np.zeros(block.shape, dtype=bool)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        # One cheap pass: a NaN or an infinity anywhere shows in the sum; only then look closer.
        if block.dtype.itemsize <= 4 and np.isfinite(np.sum(block, dtype=np.float64)):
            return np.zeros(block.shape, dtype=bool)
        return ~np.isfinite(block if block.dtype.itemsize <= 4 else block.astype(np.float32))


def _check_finite(graph: GraphFields, name: str, array: np.ndarray, row_of: Callable[[int], int] = int) -> None:
    row, count = first_row(array, no_float32)
    if row is not None:
        held = np.asarray(array[row]).reshape(-1)
        wide = held[np.isfinite(held) & no_float32(held.astype(np.float64))]
        what = (
            f"holds {wide[0]:.4g}, beyond float32's 3.4e38; scale it"
            if len(wide)
            else "holds a value that is NaN or infinite"
        )
        graph.fail(name, f"row {row_of(row)} {what}" + ("" if len(wide) else "; replace it, for example by 0"), count)


def _check_feats(graph: GraphFields) -> None:
    feats = graph.feats
    if feats is None:
        return
    if feats.ndim != 2 or feats.shape[0] != graph.num_nodes:
        one_less = feats.ndim == 2 and feats.shape[0] == graph.num_nodes - 1
        hint = ": do vertex ids start at 1? give edges - 1" if one_less else ""
        expected = f"expected shape [{graph.num_nodes}, D], one row per vertex"
        graph.fail("feats", f"{expected}, found {list(feats.shape)}{hint}")
    if feats.shape[1] < 1:
        graph.fail("feats", "rows are 0 wide; leave the features out instead")
    if feats.dtype.kind not in "fiub":
        graph.fail("feats", f"expected numbers, found {feats.dtype}; store float32")
    if scipy.sparse.issparse(feats):
        stored = feats if feats.format == "csr" else feats.tocsr()
        rows = stored.indptr
        _check_finite(graph, "feats", stored.data, lambda entry: int(np.searchsorted(rows, entry, side="right")) - 1)
    else:
        _check_finite(graph, "feats", feats)


def _check_labels(graph: GraphFields) -> None:
    labels = graph.labels
    if labels is None:
        return
    if labels.ndim not in (1, 2) or len(labels) != graph.num_nodes:
        expected = f"[{graph.num_nodes}] or [{graph.num_nodes}, C]"
        graph.fail("labels", f"expected shape {expected}, one row per vertex, found {list(labels.shape)}")
    if labels.dtype.kind not in "iu":
        graph.fail("labels", f"expected integers, found {labels.dtype}")
    if labels.ndim == 2:
        _check_multilabels(graph, labels)
        return
    classes = graph.num_label_classes
    bad = labels < -1 if classes is None else (labels < -1) | (labels >= classes)
    if bad.any():
        row = int(np.argmax(bad))
        allowed = f"0 to {classes - 1}" if classes is not None else "0 and up"
        text = f"row {row} holds label {labels[row]}; allowed are {allowed}, and -1 for no label"
        graph.fail("labels", text, int(np.count_nonzero(bad)))
    if graph.num_classes > max(MOST_CLASSES, graph.num_nodes):
        row = int(np.argmax(labels))
        text = (
            f"row {row} holds label {labels[row]}: that makes {graph.num_classes} classes of {graph.num_nodes} vertices"
        )
        graph.fail("labels", text + "; number the classes from 0, as np.unique(labels, return_inverse=True)[1]")


def _check_multilabels(graph: GraphFields, labels: np.ndarray) -> None:
    if labels.shape[1] < 1:
        graph.fail("labels", "rows are 0 wide; leave the labels out instead")
    for start, block in blocks(labels):
        bad = ((block < -1) | (block > 1)).any(axis=1)
        none = block == -1
        bad |= none.any(axis=1) & ~none.all(axis=1)
        if bad.any():
            row = start + int(np.argmax(bad))
            graph.fail("labels", f"row {row}: with several labels per vertex a row is all 0 and 1, or all -1 for none")


def _check_edge_weight(graph: GraphFields) -> None:
    weight = graph.edge_weight
    if weight is None:
        return
    if weight.shape != (graph.num_edges,):
        graph.fail("edge_weight", f"expected shape [{graph.num_edges}], one per edge, found {list(weight.shape)}")
    if weight.dtype.kind not in "fiu":
        graph.fail("edge_weight", f"expected numbers, found {weight.dtype}; store float32")
    _check_finite(graph, "edge_weight", weight)


def _check_edge_feats(graph: GraphFields) -> None:
    feats = graph.edge_feats
    if feats is None:
        return
    if feats.ndim != 2 or len(feats) != graph.num_edges:
        graph.fail("edge_feats", f"expected shape [{graph.num_edges}, D], one row per edge, found {list(feats.shape)}")
    if feats.shape[1] < 1:
        graph.fail("edge_feats", "rows are 0 wide; leave the edge features out instead")
    if feats.dtype.kind not in "fiub":
        graph.fail("edge_feats", f"expected numbers, found {feats.dtype}; store float32")
    _check_finite(graph, "edge_feats", feats)


def _check_types(graph: GraphFields, name: str, count: int, num_names: int) -> None:
    types = getattr(graph, name)
    if types is None:
        return
    if types.shape != (count,) or types.dtype.kind not in "iu":
        graph.fail(name, f"expected whole numbers of shape [{count}], found {types.dtype} {list(types.shape)}")
    limit = num_names or MAX_TYPES
    bad = (types < 0) | (types >= limit)
    if bad.any():
        row = int(np.argmax(bad))
        what = "id" if name == "graph_ids" else "type"
        text = f"row {row} holds {what} {types[row]}; {what}s run from 0 to {limit - 1}"
        graph.fail(name, text, int(np.count_nonzero(bad)))


def _check_node_names(graph: GraphFields) -> None:
    names = graph.node_names
    if names is None:
        return
    if names.shape != (graph.num_nodes,) or names.dtype.kind not in "iuU":
        found = f"{names.dtype} {list(names.shape)}"
        graph.fail("node_names", f"expected texts or whole numbers [{graph.num_nodes}], found {found}")


def _check_node_values(graph: GraphFields) -> None:
    values = graph.node_values
    if values is None:
        return
    if values.ndim not in (1, 2) or len(values) != graph.num_nodes or 0 in values.shape[1:]:
        expected = f"[{graph.num_nodes}] or [{graph.num_nodes}, T]"
        graph.fail("node_values", f"expected shape {expected}, one row per vertex, found {list(values.shape)}")
    if values.dtype.kind not in "fiu":
        graph.fail("node_values", f"expected numbers, found {values.dtype}; store float32")
    row, count = first_row(values, _partly_missing)
    if row is not None:
        text = f"row {row} must be finite, or NaN as a whole for a vertex without values"
        graph.fail("node_values", text, count)


def _partly_missing(block: np.ndarray) -> np.ndarray:
    if block.dtype.kind != "f":
        return np.zeros(len(block), dtype=bool)
    rows = block.reshape(len(block), -1)
    return no_float32(rows).any(axis=1) & ~np.isnan(rows).all(axis=1)


def _check_splits(graph: GraphFields) -> None:
    member = np.full(graph.num_nodes, -1, dtype=np.int8)
    for number, name in enumerate(SPLITS):
        ids = getattr(graph, name)
        if ids is None:
            continue
        hint = mask_hint(ids, graph.num_nodes)
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            graph.fail(name, f"expected a list of integer vertex ids, found {ids.dtype} {list(ids.shape)}{hint}")
        if hint:
            graph.fail(name, f"expected a list of vertex ids, found {len(ids)} numbers that are 0 or 1{hint}")
        bad = (ids < 0) | (ids >= graph.num_nodes)
        if bad.any():
            row = int(np.argmax(bad))
            text = f"row {row} holds vertex {ids[row]}; ids run from 0 to {graph.num_nodes - 1}"
            graph.fail(name, text, int(np.count_nonzero(bad)))
        _check_split_members(graph, name, number, member)


def _check_split_members(graph: GraphFields, name: str, number: int, member: np.ndarray) -> None:
    ids = getattr(graph, name)
    taken = member[ids] >= 0
    if taken.any():
        row = int(np.argmax(taken))
        other = SPLITS[member[ids[row]]]
        graph.fail(name, f"row {row}, vertex {ids[row]}, is also in {other}; splits must not overlap")
    member[ids] = number
    if np.count_nonzero(member == number) != len(ids):
        order = np.argsort(ids, kind="stable")
        again = order[1:][ids[order][1:] == ids[order][:-1]].min()
        graph.fail(name, f"row {again} repeats vertex {ids[again]}; name each vertex once")


CHECKS: dict[str, Callable[[GraphFields], None]] = {
    "edges": _check_edges,
    "feats": _check_feats,
    "labels": _check_labels,
    "edge_weight": _check_edge_weight,
    "edge_feats": _check_edge_feats,
    "edge_types": lambda graph: _check_types(graph, "edge_types", graph.num_edges, len(graph.edge_type_names)),
    "node_types": lambda graph: _check_types(graph, "node_types", graph.num_nodes, len(graph.node_type_names)),
    "graph_ids": lambda graph: _check_types(graph, "graph_ids", graph.num_nodes, graph.num_nodes),
    "node_values": _check_node_values,
    "node_names": _check_node_names,
    "train, valid, test": _check_splits,
}


def count_graph(graph: GraphFields) -> dict[str, int]:
    """The numbers of `GraphData.counts`."""
    sources, targets = graph.edges[:, 0], graph.edges[:, 1]
    touched = np.zeros(graph.num_nodes, dtype=bool)
    touched[sources] = True
    touched[targets] = True
    duplicates, reciprocal = count_pairs(sources, targets, graph.num_nodes, graph.directed)
    labelled = graph.labelled
    split = {name: getattr(graph, name) for name in SPLITS}
    in_split = {name: 0 if ids is None else len(ids) for name, ids in split.items()}
    unlabelled = sum(int(np.count_nonzero(~labelled[ids])) for ids in split.values() if ids is not None)
    return {
        "num_nodes": int(graph.num_nodes),
        "num_edges": graph.num_edges,
        "duplicates": duplicates,
        "reciprocal": reciprocal,
        "self_loops": int(np.count_nonzero(sources == targets)),
        "isolated": int(graph.num_nodes - np.count_nonzero(touched)),
        "labelled": int(np.count_nonzero(labelled)),
        "unlabelled": int(graph.num_nodes - np.count_nonzero(labelled)),
        **in_split,
        "no_split": int(graph.num_nodes - sum(in_split.values())),
        "split_unlabelled": unlabelled,
    }
