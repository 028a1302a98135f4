"""Check a graph at the border, and count what is unusual in it.

Legend: N vertices, E edges. Arrays may be mapped from disk: all passes go block by block.
"""

from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse

from distgnn.config.cut import ARC_ORDERS
from distgnn.datasets.fields import SPLITS, GraphFields
from distgnn.datasets.link_splits import check_edge_splits
from distgnn.datasets.text_table import is_table, line_of_row

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


def _check_counts(graph: GraphFields) -> None:
    if not isinstance(graph.directed, int | np.bool_):
        graph.fail("directed", f"directed must be True or False, found {graph.directed!r}")
    if graph.arc_order not in ARC_ORDERS:
        graph.fail("arc_order", f"arc_order must be one of {', '.join(ARC_ORDERS)}, found {graph.arc_order!r}")
    count = graph.num_nodes
    if not isinstance(count, int | np.integer) or isinstance(count, bool):
        graph.fail("num_nodes", f"num_nodes must be a whole number, found {count!r}")
    if count < 1:
        graph.fail("num_nodes", f"the graph has {count} vertices; at least one is needed")
    if count > MAX_NODES:
        graph.fail("num_nodes", f"the graph has {count} vertices; at most {MAX_NODES} can be handled{RENUMBER}")
    arrays = [one for one in (graph.edges, graph.feats, graph.labels) if one is not None and len(one.shape)]
    known_rows = max(int(array.shape[0]) for array in arrays)
    check_size(count, known_rows, lambda text: graph.fail("num_nodes", text + RENUMBER))


def check_size(num_nodes: int, known_rows: int, fail: Callable[[str], object]) -> None:
    """Call `fail` where the vertices are out of all proportion to the rows (edges, features, labels) that are known."""
    if num_nodes > FREE_NODES and num_nodes > NODES_PER_ROW * known_rows:
        fail(f"the graph has {num_nodes} vertices but only {known_rows} edges and no rows for most of them")


def _check_edges(graph: GraphFields) -> None:
    edges, num_nodes = graph.edges, graph.num_nodes
    if edges.ndim != 2 or edges.shape[1] != 2:
        hint = "; transpose it" if edges.ndim == 2 and edges.shape[0] == 2 else ""
        if edges.ndim == 2 and edges.shape[1] == 3:
            hint = "; a third column is no part of an edge: edge_weight, or edge_types, is an array of its own"
        graph.fail("edges", f"expected shape [E, 2], found {list(edges.shape)}{hint}")
    if edges.dtype.kind not in "iu":
        graph.fail("edges", f"expected integer vertex ids, found {edges.dtype}; store them as int32 or int64")

    def outside(block: np.ndarray) -> np.ndarray:
        if block.min() < 0 or block.max() >= num_nodes:
            return (block < 0) | (block >= num_nodes)
        return np.zeros(len(block), dtype=bool)

    row, count = first_row(edges, outside)
    if row is None:
        return
    ends = np.asarray(edges[row])
    value = ends[outside(ends)][0]
    what = "a negative vertex id" if value < 0 else "a vertex id outside the graph"
    # As its user finds it: the line of a text file, counted from 1, or the row of an array, counted from 0.
    path = graph.files.get("edges")
    place = f"line {line_of_row(path, row)}" if path is not None and is_table(path) else f"row {row}"
    ranges = [(int(block.min()), int(block.max())) for _, block in blocks(edges)]
    from_one = min(low for low, _ in ranges) == 1 and max(high for _, high in ranges) == num_nodes
    hint = "; they seem to start at 1: give edges - 1" if from_one else RENUMBER
    ids = f"num_nodes is {num_nodes}; ids run from 0 to {num_nodes - 1}"
    graph.fail("edges", f"{place} holds {what}, {value} ({ids}{hint})", count)


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


# Field of numbers -> its dimensions, its shape in words, and kinds of numbers.
NUMBERS: dict[str, tuple[tuple[int, ...], str, str]] = {
    "feats": ((2,), "[{0}, D], one row per vertex", "fiub"),
    "edge_weight": ((1,), "[{0}], one per edge", "fiu"),
    "edge_feats": ((2,), "[{0}, D], one row per edge", "fiub"),
    "node_values": ((1, 2), "[{0}] or [{0}, T], one row per vertex", "fiu"),
}


def _check_numbers(graph: GraphFields, name: str) -> None:
    array = getattr(graph, name)
    if array is None:
        return
    dimensions, expected, kinds = NUMBERS[name]
    count = graph.num_edges if name.startswith("edge") else graph.num_nodes
    no_width = 0 in array.shape[1:]
    if array.ndim not in dimensions or array.shape[0] != count or (no_width and name == "node_values"):
        one_less = name == "feats" and array.ndim == 2 and array.shape[0] == count - 1
        hint = ": do vertex ids start at 1? give edges - 1" if one_less else ""
        graph.fail(name, f"expected shape {expected.format(count)}, found {list(array.shape)}{hint}")
    if no_width:
        graph.fail(name, f"rows are 0 wide; leave the {'edge ' * (name != 'feats')}features out instead")
    if array.dtype.kind not in kinds:
        graph.fail(name, f"expected numbers, found {array.dtype}; store float32")
    if name == "node_values":
        row, bad = first_row(array, _partly_missing)
        if row is not None:
            graph.fail(name, f"row {row} must be finite, or NaN as a whole for a vertex without values", bad)
    elif scipy.sparse.issparse(array):
        stored = array if array.format == "csr" else array.tocsr()
        _check_finite(graph, name, stored.data, lambda entry: int(np.searchsorted(stored.indptr, entry, "right")) - 1)
    else:
        _check_finite(graph, name, array)


def _partly_missing(block: np.ndarray) -> np.ndarray:
    rows = block.reshape(len(block), -1)
    return no_float32(rows).any(axis=1) & ~np.isnan(rows).all(axis=1)


def _check_finite(graph: GraphFields, name: str, array: np.ndarray, row_of: Callable[[int], int] = int) -> None:
    row, count = first_row(array, no_float32)
    if row is not None:
        held = np.asarray(array[row]).reshape(-1)
        wide = held[np.isfinite(held) & no_float32(held.astype(np.float64))]
        what = "holds a value that is NaN or infinite; replace it, for example by 0"
        if len(wide):
            what = f"holds {wide[0]:.4g}, beyond float32's 3.4e38; scale it"
        graph.fail(name, f"row {row_of(row)} {what}", count)


def _check_labels(graph: GraphFields) -> None:
    labels = graph.labels
    if labels is None:
        return
    if labels.ndim not in (1, 2) or len(labels) != graph.num_nodes:
        expected = f"[{graph.num_nodes}] or [{graph.num_nodes}, C]"
        of_edges = labels.ndim > 0 and len(labels) in (graph.num_edges, 2 * graph.num_edges)
        hint = "; labels of edges are train_edges and train_edge_labels" if of_edges else ""
        graph.fail("labels", f"expected shape {expected}, one row per vertex, found {list(labels.shape)}{hint}")
    if labels.dtype.kind not in "iu":
        graph.fail("labels", f"expected integers, found {labels.dtype}")
    if labels.ndim == 2:
        if labels.shape[1] < 1:
            graph.fail("labels", "rows are 0 wide; leave the labels out instead")
        row, _ = first_row(labels, _no_row_of_labels)
        if row is not None:
            graph.fail("labels", f"row {row}: with several labels per vertex a row is all 0 and 1, or all -1 for none")
        return
    classes = graph.num_label_classes
    row, count = first_row(labels, lambda block: (block < -1) | (False if classes is None else block >= classes))
    if row is not None:
        allowed = f"0 to {classes - 1}" if classes is not None else "0 and up"
        text = f"row {row} holds label {labels[row]}; allowed are {allowed}, and -1 for no label"
        graph.fail("labels", text, count)
    if graph.num_classes > max(MOST_CLASSES, graph.num_nodes):
        row, count = int(np.argmax(labels)), graph.num_classes
        text = f"row {row} holds label {labels[row]}: that makes {count} classes of {graph.num_nodes} vertices"
        graph.fail("labels", text + "; number the classes from 0, as np.unique(labels, return_inverse=True)[1]")


def _no_row_of_labels(block: np.ndarray) -> np.ndarray:
    none = block == -1
    return ((block < -1) | (block > 1)).any(axis=1) | (none.any(axis=1) & ~none.all(axis=1))


def _check_types(graph: GraphFields, name: str, count: int, num_names: int) -> None:
    types = getattr(graph, name)
    if types is None:
        return
    if types.shape != (count,) or types.dtype.kind not in "iu":
        graph.fail(name, f"expected whole numbers of shape [{count}], found {types.dtype} {list(types.shape)}")
    limit = num_names or MAX_TYPES
    row, bad = first_row(types, lambda block: (block < 0) | (block >= limit))
    if row is not None:
        what = "id" if name == "graph_ids" else "type"
        graph.fail(name, f"row {row} holds {what} {types[row]}; {what}s run from 0 to {limit - 1}", bad)


def _check_node_names(graph: GraphFields) -> None:
    names = graph.node_names
    if names is not None and (names.shape != (graph.num_nodes,) or names.dtype.kind not in "iuU"):
        found = f"{names.dtype} {list(names.shape)}"
        graph.fail("node_names", f"expected texts or whole numbers [{graph.num_nodes}], found {found}")


def _check_splits(graph: GraphFields) -> None:
    member = np.full(graph.num_nodes, -1, dtype=np.int8)
    for number, name in enumerate(SPLITS):
        ids = getattr(graph, name)
        if ids is None:
            continue
        if ids.ndim != 1 or ids.dtype.kind not in "iu":
            graph.fail(name, f"expected a list of integer vertex ids, found {ids.dtype} {list(ids.shape)}")
        row, bad = first_row(ids, lambda block: (block < 0) | (block >= graph.num_nodes))
        if row is not None:
            graph.fail(name, f"row {row} holds vertex {ids[row]}; ids run from 0 to {graph.num_nodes - 1}", bad)
        taken = member[ids] == SPLITS.index("train")  # valid and test may be the same vertices
        if taken.any():
            row = int(np.argmax(taken))
            graph.fail(name, f"row {row}, vertex {ids[row]}, is also in train; splits must not overlap with it")
        member[ids] = number
        if np.count_nonzero(member == number) != len(ids):
            order = np.argsort(ids, kind="stable")
            again = order[1:][ids[order][1:] == ids[order][:-1]].min()
            graph.fail(name, f"row {again} repeats vertex {ids[again]}; name each vertex once")


CHECKS: dict[str, Callable[[GraphFields], None]] = {
    "edges": _check_edges,
    "feats": lambda graph: _check_numbers(graph, "feats"),
    "labels": _check_labels,
    "edge_weight": lambda graph: _check_numbers(graph, "edge_weight"),
    "edge_feats": lambda graph: _check_numbers(graph, "edge_feats"),
    "edge_types": lambda graph: _check_types(graph, "edge_types", graph.num_edges, len(graph.edge_type_names)),
    "node_types": lambda graph: _check_types(graph, "node_types", graph.num_nodes, len(graph.node_type_names)),
    "graph_ids": lambda graph: _check_types(graph, "graph_ids", graph.num_nodes, graph.num_nodes),
    "node_values": lambda graph: _check_numbers(graph, "node_values"),
    "node_names": _check_node_names,
    "train, valid, test": _check_splits,
}
