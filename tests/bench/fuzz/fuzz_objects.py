"""Random objects of DGL, PyG, NetworkX, scipy, pandas, numpy and torch, valid and not, and what each must become.

A case is drawn from a number. It is made from the truth (edges, columns), so that the graph that the library itself
shows is known; then it may be spoilt. The outcome is right if the graph has exactly these edges and columns and every
column that it has not is named, or if it is refused in one line.
"""

import random
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse

from distgnn.datasets import GraphData, as_graph_data
from distgnn.datasets.findings.findings import Findings
from distgnn.errors import DistGNNError

FEATS = ("x", "feat", "features", "feature", "attr", "node_feat")
LABELS = ("y", "label", "labels", "target")
MASKS = {
    "train": ("train_mask", "is_train"),
    "valid": ("val_mask", "valid_mask", "validation_mask"),
    "test": ("test_mask", "is_test"),
}
WEIGHTS = ("weight", "w", "edge_weight", "edge_weights", "weights")
STRANGE = ("pos", "year", "n_id", "area", "hint")
ID_TYPES = (np.int64, np.int32, np.uint8, np.uint32, np.uint64, np.int16, np.float64)


@dataclass
class Truth:
    """What the graph is: columns by field; `left` are names of columns that no field takes."""

    edges: np.ndarray
    num_nodes: int
    columns: dict[str, np.ndarray] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    spoilt: str = ""  # what is wrong; then it must be refused
    seen_in: set[str] = field(default_factory=set)  # the fields without which it is not wrong
    fields: dict[str, Any] = field(default_factory=dict)
    shuffled: bool = False  # the library has no order of edges


def draw_truth(rng: np.random.Generator) -> Truth:
    """A small graph: some vertices without edges, also the last ones; parallel edges and loops."""
    num_nodes = int(rng.integers(3, 14))
    touched = max(1, num_nodes - int(rng.integers(0, 4)))
    edges = rng.integers(0, touched, (int(rng.integers(1, 30)), 2))
    return Truth(edges.astype(np.int64), num_nodes)


def _columns(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> None:
    """Columns of vertices: features, labels and masks, each with some probability."""
    count = truth.num_nodes
    if chooser.random() < 0.7:
        truth.columns["feats"] = rng.standard_normal((count, int(rng.integers(1, 4)))).astype(np.float32)
    if chooser.random() < 0.7:
        labels = rng.integers(0, 3, count)
        labels[: min(3, count)] = np.arange(min(3, count))
        truth.columns["labels"] = labels
    if chooser.random() < 0.6:
        place = rng.integers(0, 4, count)
        for number, split in enumerate(("train", "valid", "test")):
            truth.columns[split] = np.flatnonzero(place == number)
    if chooser.random() < 0.5:
        truth.columns["edge_weight"] = rng.integers(2, 9, len(truth.edges)).astype(np.float32) / 16


def _form(field_name: str, values: np.ndarray, count: int, chooser: random.Random) -> np.ndarray:
    """A column in one of the forms that users have."""
    if field_name in MASKS:
        mask = np.zeros(count, dtype=chooser.choice((bool, np.uint8, np.int64, np.float32, np.int8)))
        mask[values] = 1
        return mask[:, None] if chooser.random() < 0.3 else mask
    if field_name == "labels":
        labels = values.astype(chooser.choice((np.int64, np.int32, np.uint8, np.float32)))
        return labels[:, None] if chooser.random() < 0.2 else labels
    if field_name == "feats":
        return values.astype(chooser.choice((np.float32, np.float64)))
    return values[:, None] if chooser.random() < 0.2 else values


def _put(value: float, *names: str) -> Callable[[Truth, dict[str, np.ndarray]], set[str]]:
    """A spoil: the last number of the first of these columns that there is becomes `value`."""

    def put(truth: Truth, columns: dict[str, np.ndarray]) -> set[str]:
        name = next((name for name in names if name in columns), None)
        if name is None:
            return set()
        columns[name] = columns[name].astype(np.float64)
        columns[name].reshape(-1)[-1] = value
        return {name}

    return put


def _no_mask(truth: Truth, columns: dict[str, np.ndarray]) -> set[str]:
    if "train" not in columns:
        return set()
    columns["train"] = columns["train"].astype(np.int64)
    columns["train"].reshape(-1)[0] = 7
    return {"train"}


def _two_masks(truth: Truth, columns: dict[str, np.ndarray]) -> set[str]:
    if "train" not in columns:
        return set()
    columns["train"] = np.concatenate([columns["train"].reshape(-1, 1)] * 2, axis=1)
    return {"train"}


def _overlap(truth: Truth, columns: dict[str, np.ndarray]) -> set[str]:
    if "train" not in columns or not len(truth.columns["train"]):
        return set()
    columns["test"] = columns["train"]
    return {"train", "test"}


# What a user may have done to a column; each returns the fields in which it is seen, none if it was not done.
SPOILS: dict[str, Callable[[Truth, dict[str, np.ndarray]], set[str]]] = {
    "overflow": _put(1e39, "feats", "edge_weight"),
    "not_a_number": _put(np.nan, "feats", "edge_weight"),
    "infinite_label": _put(np.inf, "labels"),
    "negative_label": _put(-5, "labels"),
    "no_mask": _no_mask,
    "two_masks": _two_masks,
    "overlap": _overlap,
}


def make(number: int, kinds: tuple[str, ...] = ()) -> tuple[str, Any, Truth]:
    """(kind, object, truth) of a case."""
    chooser, rng = random.Random(number), np.random.default_rng(number)
    kind = (kinds or tuple(KINDS))[number % len(kinds or KINDS)]
    truth = draw_truth(rng)
    _columns(truth, rng, chooser)
    return kind, KINDS[kind](truth, rng, chooser), truth


def _formed(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> dict[str, np.ndarray]:
    """Field -> column as the object will have it, perhaps spoilt."""
    columns = {name: _form(name, values, truth.num_nodes, chooser) for name, values in truth.columns.items()}
    if chooser.random() < 0.3:
        name = chooser.choice(sorted(SPOILS))
        truth.seen_in = SPOILS[name](truth, columns)
        truth.spoilt = name if truth.seen_in else ""
    return columns


def _frame(columns: dict[str, np.ndarray], truth: Truth, chooser: random.Random) -> dict[str, Any]:
    """Columns of vertices by a name that users give them, as tensors, and some that no field takes."""
    import torch

    names = {"feats": FEATS, "labels": LABELS, **MASKS}
    named = {chooser.choice(names[key]): torch.from_numpy(columns[key]) for key in columns if key in names}
    for name in STRANGE:
        if chooser.random() < 0.15:
            named[name] = torch.ones(truth.num_nodes)
            truth.left.add(name)
    return named


def _pyg(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    import torch
    from torch_geometric.data import Data

    columns = _formed(truth, rng, chooser)
    data = Data(edge_index=torch.from_numpy(truth.edges.T.copy()))
    named = _frame(columns, truth, chooser)
    if not truth.columns.keys() - {"edge_weight"} or chooser.random() < 0.5:
        data.num_nodes = truth.num_nodes
    for name, column in named.items():
        data[name] = column
    if "edge_weight" in columns:
        data[chooser.choice(WEIGHTS)] = torch.from_numpy(columns["edge_weight"])
    if chooser.random() < 0.2:
        data.note = "made by hand"
        truth.left.add("note")
    return data


def _pyg_adj_t(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    """A transposed sparse tensor of torch instead of the edge index; equal edges are one."""
    import torch
    from torch_geometric.data import Data

    _once(truth)
    columns = _formed(truth, rng, chooser)
    weight = columns.pop("edge_weight", None)
    values = np.ones(len(truth.edges), np.float32) if weight is None else weight.reshape(-1)
    adjacency = torch.sparse_coo_tensor(
        torch.from_numpy(truth.edges.T[::-1].copy()), torch.from_numpy(values), (truth.num_nodes,) * 2
    )
    layout = chooser.choice(("to_sparse_coo", "to_sparse_csr", "to_sparse_csc"))
    data = Data(adj_t=getattr(adjacency.coalesce(), layout)(), num_nodes=truth.num_nodes)
    for name, column in _frame(columns, truth, chooser).items():
        data[name] = column
    return data


def _once(truth: Truth) -> None:
    """A matrix has each edge once, in no order of its own."""
    truth.edges, first = np.unique(truth.edges, axis=0, return_index=True)
    if "edge_weight" in truth.columns:
        truth.columns["edge_weight"] = truth.columns["edge_weight"][first]
    truth.shuffled = True


def _dgl(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    import torch

    from distgnn.system.other_libraries import import_dgl

    columns = _formed(truth, rng, chooser)
    ends = tuple(torch.from_numpy(truth.edges[:, end].copy()) for end in (0, 1))
    graph = import_dgl().graph(ends, num_nodes=truth.num_nodes)
    graph.ndata.update(_frame(columns, truth, chooser))
    if "edge_weight" in columns:
        graph.edata[chooser.choice(WEIGHTS)] = torch.from_numpy(columns["edge_weight"])
    if chooser.random() < 0.2:
        graph.edata["time"] = torch.ones(len(truth.edges))
        truth.left.add("time")
    return graph


def _networkx(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    import networkx

    truth.shuffled = True
    columns = _formed(truth, rng, chooser)
    graph = networkx.MultiDiGraph()
    names = chooser.sample([f"v{number}" for number in range(truth.num_nodes)], truth.num_nodes)
    attributes = {"feats": "f", "labels": "kind", **{split: f"{split}_mask" for split in MASKS}}
    graph.add_nodes_from(names)
    for key, name in attributes.items():
        if key in columns and chooser.random() < 0.8:
            truth.fields[key] = name
        elif key in columns:
            truth.left.add(name)
        if key in columns:
            for node, value in zip(names, columns[key], strict=True):
                graph.nodes[node][name] = value.tolist() if value.ndim else value.item()
    weights = columns.get("edge_weight")
    for row, (u, v) in enumerate(truth.edges.tolist()):
        weight = {} if weights is None else {"weight": weights[row].reshape(-1)[0].item()}
        graph.add_edge(names[u], names[v], **weight)
    if weights is not None:
        truth.fields["weighted"] = True
    for key in [key for key in truth.columns if key != "edge_weight" and key not in truth.fields]:
        del truth.columns[key]
    if truth.spoilt == "overlap" and "test" in truth.columns:  # that of training, by itself a valid one
        truth.columns["test"] = np.flatnonzero(columns["test"].reshape(-1))
    if not truth.seen_in <= truth.columns.keys():
        truth.spoilt = ""
    return graph


def _scipy(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    _once(truth)
    weight = truth.columns.get("edge_weight")
    truth.columns = {} if weight is None else {"edge_weight": weight}
    values = np.ones(len(truth.edges), chooser.choice((np.float64, np.int8, np.float32))) if weight is None else weight
    if weight is not None and chooser.random() < 0.2:
        values = values.astype(np.float64)
        values[0] = chooser.choice((1e39, np.nan, np.inf))
        truth.spoilt = "values"
    truth.fields["weighted"] = weight is not None
    form = chooser.choice(("coo", "csr", "csc", "lil", "dok"))
    entries = (values, (truth.edges[:, 0], truth.edges[:, 1]))
    made = scipy.sparse.coo_matrix(entries, shape=(truth.num_nodes,) * 2)
    return made.asformat(form)


def _torch_sparse(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    import torch

    matrix = _scipy(truth, rng, chooser).tocoo()
    values = torch.from_numpy(matrix.data.astype(np.float64))
    indices = torch.from_numpy(np.stack([matrix.row, matrix.col]).astype(np.int64))
    made = torch.sparse_coo_tensor(indices, values, matrix.shape).coalesce()
    return getattr(made, chooser.choice(("to_sparse_coo", "to_sparse_csr", "to_sparse_csc")))()


def _arrays(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    """Edges in any shape and type, with columns as keyword arguments."""
    import torch

    columns = _formed(truth, rng, chooser)
    names = {"feats": FEATS, "labels": LABELS, **MASKS, "edge_weight": WEIGHTS}
    for key, column in columns.items():
        given = column if chooser.random() < 0.5 else torch.from_numpy(column)
        truth.fields[chooser.choice(names[key])] = given.tolist() if chooser.random() < 0.2 else given
    if not truth.columns.keys() - {"edge_weight"} or chooser.random() < 0.5:
        truth.fields["num_nodes"] = truth.num_nodes
    edges = truth.edges.astype(chooser.choice(ID_TYPES))
    if chooser.random() < 0.15:
        edges = edges.astype(object)
        edges[0, 0] = chooser.choice((None, float("nan"), "a", 1.5, -3, 10**18))
        truth.spoilt = "ids"
    form = chooser.choice(("rows", "pair", "index", "list"))
    if form == "pair":
        return edges[:, 0], edges[:, 1]
    if form == "index" and len(edges) != 2:
        return edges.T
    return edges.tolist() if form == "list" else edges


def _pandas(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    import pandas

    columns = _formed(truth, rng, chooser)
    ends = chooser.choice((("source", "target"), ("src", "dst"), ("u", "v"), ("from", "to")))
    table = pandas.DataFrame({name: truth.edges[:, end] for end, name in enumerate(ends)})
    if "edge_weight" in columns:
        table[chooser.choice(WEIGHTS)] = columns["edge_weight"].reshape(-1)
    if chooser.random() < 0.3:
        table["year"] = 2000
        truth.left.add("year")
    if chooser.random() < 0.15:
        table[ends[0]] = [None, *table[ends[0]].tolist()[1:]]
        truth.spoilt = "a missing end"
    if "feats" in columns:
        truth.fields["features"] = pandas.DataFrame(columns["feats"])
    if "labels" in columns:
        truth.fields["labels"] = pandas.Series(columns["labels"].reshape(-1))
    for split in MASKS:
        if split in columns:
            values = columns[split]
            truth.fields[f"{split}_mask"] = values if values.ndim == 2 else pandas.Series(values)
    truth.fields["num_nodes"] = truth.num_nodes
    return table


def _batch(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    """Many small graphs as one: PyG's Batch, whose labels may be of graphs, or dgl.batch."""
    import torch
    from torch_geometric.data import Batch, Data

    from distgnn.system.other_libraries import import_dgl

    sizes = rng.integers(1, 5, int(rng.integers(2, 5)))
    firsts = np.cumsum(sizes) - sizes
    pieces = [rng.integers(0, size, (int(rng.integers(0, 6)), 2)) for size in sizes]
    pieces[0] = np.zeros((1, 2), np.int64)
    truth.num_nodes = int(sizes.sum())
    truth.edges = np.concatenate([piece + first for piece, first in zip(pieces, firsts, strict=True)])
    feats = rng.standard_normal((truth.num_nodes, 2)).astype(np.float32)
    truth.columns = {"feats": feats, "graph_ids": np.repeat(np.arange(len(sizes)), sizes)}
    rows = [torch.from_numpy(feats[first : first + size]) for first, size in zip(firsts, sizes, strict=True)]
    ends = [torch.from_numpy(piece.T.copy()) for piece in pieces]
    if chooser.random() < 0.5:
        dgl = import_dgl()
        graphs = [dgl.graph(tuple(pair), num_nodes=int(size)) for pair, size in zip(ends, sizes, strict=True)]
        for graph, row in zip(graphs, rows, strict=True):
            graph.ndata["feat"] = row
        return dgl.batch(graphs)
    of_graphs = chooser.random() < 0.5 and truth.num_nodes != len(sizes)
    more = {"y": torch.tensor([1])} if of_graphs else {}
    truth.left |= more.keys()
    data = [Data(x=row, edge_index=pair, num_nodes=len(row), **more) for row, pair in zip(rows, ends, strict=True)]
    if chooser.random() < 0.3:
        data[-1].edge_index = data[-1].edge_index + 9
        truth.spoilt = "an edge that leaves the graph"
        if not data[-1].num_edges:
            truth.spoilt = ""
    return Batch.from_data_list(data)


def _both_ways(truth: Truth, rng: np.random.Generator, chooser: random.Random) -> Any:
    """An undirected graph as DGL and PyG have it: both arcs of each edge, with what both carry."""
    import torch
    from torch_geometric.data import Data

    from distgnn.system.other_libraries import import_dgl

    pairs = np.unique(np.sort(truth.edges[truth.edges[:, 0] != truth.edges[:, 1]], axis=1), axis=0)
    truth.edges, truth.shuffled = pairs, True
    truth.columns = {"edge_weight": (rng.random(len(pairs)) + 0.5).astype(np.float32)}
    arcs = np.concatenate([pairs, pairs[:, ::-1]])
    weight = np.concatenate([truth.columns["edge_weight"]] * 2).astype(np.float64)
    weight[len(pairs) :] *= 1 + 1e-9  # as sums in another order give
    if len(pairs) and chooser.random() < 0.3:
        weight[0] += 0.01
        truth.spoilt = "weights that differ"
    order = rng.permutation(len(arcs))
    ends, values = torch.from_numpy(arcs[order]), torch.from_numpy(weight[order])
    truth.fields["directed"] = False
    if chooser.random() < 0.5:
        graph = import_dgl().graph((ends[:, 0], ends[:, 1]), num_nodes=truth.num_nodes)
        graph.edata[chooser.choice(WEIGHTS)] = values
        return graph
    return Data(edge_index=ends.T, num_nodes=truth.num_nodes, **{chooser.choice(WEIGHTS): values})


KINDS: dict[str, Callable[[Truth, np.random.Generator, random.Random], Any]] = {
    "pyg": _pyg, "pyg adj_t": _pyg_adj_t, "dgl": _dgl, "networkx": _networkx, "scipy": _scipy,
    "torch sparse": _torch_sparse, "arrays": _arrays, "pandas": _pandas,
    "batch": _batch, "both ways": _both_ways,
}  # fmt: skip


def try_one(number: int, kinds: tuple[str, ...] = ()) -> tuple[str, str]:
    """(kind, outcome) of a case: "taken", "refused", or a finding that says what is wrong."""
    kind, given, truth = make(number, kinds)
    findings = Findings()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            graph = as_graph_data(given, findings, **truth.fields)
    except DistGNNError as error:
        if "\n" in str(error) or not str(error):
            return kind, f"finding: {number}: no single line: {error!r}"
        return kind, "refused" if truth.spoilt else f"finding: {number}: a valid {kind} is refused: {error}"
    except Exception as error:
        return kind, f"finding: {number} ({truth.spoilt or 'valid'}): {type(error).__name__}: {error}"
    if truth.spoilt:
        return kind, f"finding: {number}: {truth.spoilt} is taken: {graph}"
    wrong = difference(graph, truth, findings)
    return kind, f"finding: {number}: {wrong}" if wrong else "taken"


def difference(graph: GraphData, truth: Truth, findings: Findings) -> str:
    """What the graph has otherwise than the truth, or has left out without a word; empty for nothing."""
    if graph.num_nodes != truth.num_nodes:
        return f"{graph.num_nodes} vertices, not {truth.num_nodes}"
    order = np.arange(graph.num_edges)
    expected = truth.edges
    weight = truth.columns.get("edge_weight")
    if truth.shuffled:
        order = np.lexsort((_or_zeros(graph.edge_weight, order), graph.edges[:, 1], graph.edges[:, 0]))
        theirs = np.lexsort((_or_zeros(weight, np.arange(len(expected))), expected[:, 1], expected[:, 0]))
        expected, weight = expected[theirs], None if weight is None else weight[theirs]
    if not np.array_equal(np.asarray(graph.edges)[order], expected):
        return f"edges {graph.edges.tolist()}, not {truth.edges.tolist()}"
    for name in ("feats", "labels", "train", "valid", "test", "graph_ids", "edge_weight"):
        found, wanted = getattr(graph, name), truth.columns.get(name)
        if name == "edge_weight":
            found, wanted = (None if found is None else found[order]), weight
        if (found is None) != (wanted is None):
            return f"{name}: {found}, not {wanted}"
        if found is not None and not (found.shape == wanted.shape and np.allclose(found, wanted, rtol=2e-7, atol=0)):
            return f"{name}: {found}, not {wanted}"
    said = " ".join(one.text for one in findings if one.severity == "left out")
    silent = [name for name in truth.left if name not in said]
    return f"{silent} left out without a word" if silent else ""


def _or_zeros(values: np.ndarray | None, order: np.ndarray) -> np.ndarray:
    return np.zeros(len(order)) if values is None else values
