"""Random graphs with types: cut in memory for ranks, and as PyG's HeteroData or DGL's graph for one process."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from cut_graphs import dist_graph, random_cut
from torch.nn.parameter import is_lazy

from distgnn.datasets import GraphData
from distgnn.datasets.findings.findings import Findings
from distgnn.graph.face.row_graph import with_rows
from distgnn.graph.face.typed_graph import TypedGraph
from distgnn.interop.pyg import dispatch

Key = tuple[str, str, str]
CLASSES = 3
STEPS = 2  # the second loss is of weights that the first gradient has moved


@dataclass
class Typed:
    """A whole graph: vertices by type, arcs [2, E] by relation, columns of each in float32."""

    counts: dict[str, int]
    edges: dict[Key, np.ndarray]
    columns: dict[str, dict[str, np.ndarray]]
    arc_columns: dict[Key, dict[str, np.ndarray]]

    def with_arcs(self) -> "Typed":
        """Without the relations that have no arcs."""
        edges = {key: ends for key, ends in self.edges.items() if ends.shape[1]}
        return replace(self, edges=edges, arc_columns={key: self.arc_columns[key] for key in edges})

    def data(self) -> GraphData:
        firsts = dict(zip(self.counts, np.cumsum([0, *self.counts.values()]), strict=False))
        ends = [ends.T + np.array([firsts[key[0]], firsts[key[2]]]) for key, ends in self.edges.items()]
        return GraphData(
            name="typed",
            types=tuple(self.counts),
            type_counts=tuple(self.counts.values()),
            relations=tuple(self.edges),
            num_nodes=sum(self.counts.values()),
            edges=np.concatenate(ends),
            edge_types=np.repeat(np.arange(len(ends), dtype=np.int16), [len(one) for one in ends]),
            directed=True,
            typed=self.columns,
            relation_columns=self.arc_columns,
            type_classes={kind: CLASSES for kind, columns in self.columns.items() if "labels" in columns},
            findings=Findings(),
        ).check()

    def to_dgl(self) -> Any:
        graph = self.data().to_dgl()
        for frame in (
            *map(graph.nodes.__getitem__, graph.ntypes),
            *map(graph.edges.__getitem__, graph.canonical_etypes),
        ):
            frame.data.update({name: one.double() for name, one in frame.data.items() if one.is_floating_point()})
        return graph

    def to_pyg(self) -> Any:
        return self.data().to_pyg().apply(lambda one: one.double() if one.is_floating_point() else one)


def random_typed(seed: int = 0, *, same_width: bool = False) -> Typed:
    """Four types and seven relations.

    There are doubles, self-loops, a hub, isolated vertices, a type of one vertex, a type as large as another, a
    relation to its own type and one without arcs.
    """
    random = np.random.default_rng(seed)
    counts = {"paper": 23, "author": 17, "field": 1, "venue": 17}
    widths = {"paper": 16, "author": 8, "field": 8, "venue": 4}  # each width compiles kernels of its own
    sizes = {
        ("author", "writes", "paper"): 60,
        ("paper", "rev_writes", "author"): 60,
        ("paper", "cites", "paper"): 50,
        ("paper", "has", "field"): 9,
        ("venue", "empty", "paper"): 0,
        ("venue", "near", "author"): 31,
        ("paper", "at", "venue"): 23,
    }
    edges = {}
    for (source, name, target), size in sizes.items():
        tops = [max(1, counts[end] - 2) for end in (source, target)]  # the last two are isolated
        ends = np.stack([random.integers(0, top, size) for top in tops]).astype(np.int64)
        ends[:, : size // 6] = ends[:, size // 6 : 2 * (size // 6)]  # doubles
        ends[1, size // 2 : size // 2 + size // 5] = 0  # a hub
        edges[source, name, target] = ends
    cites = edges["paper", "cites", "paper"]
    cites[1, -3:] = cites[0, -3:]
    edges["paper", "rev_writes", "author"] = edges["author", "writes", "paper"][::-1].copy()
    columns = {}
    for name, count in counts.items():
        width = 8 if same_width else widths[name]
        columns[name] = {"feats": _rows(random, count, width)}
    columns["paper"] |= {"labels": random.integers(0, CLASSES, counts["paper"]), "train_mask": random.random(23) < 0.5}
    return Typed(counts, edges, columns, _arc_columns(random, edges))


def _rows(random: np.random.Generator, *shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def _arc_columns(random: np.random.Generator, edges: dict[Key, np.ndarray]) -> dict[Key, dict[str, np.ndarray]]:
    weights = {key: np.abs(_rows(random, ends.shape[1])) + np.float32(0.5) for key, ends in edges.items()}
    return {key: {"feat": _rows(random, len(weight), 4), "weight": weight} for key, weight in weights.items()}


def varied_typed(seed: int, *, same_width: bool = False) -> Typed:
    """Two to four types and up to seven relations at random.

    Types of one vertex, relations without arcs, two between the same types, self-relations, doubles, isolated vertices.
    """
    random = np.random.default_rng([seed, 7])
    names = ["paper", "author", "field", "venue"][: random.integers(2, 5)]
    counts = {name: int(random.choice([1, 2, 5, 13, 20])) for name in names}
    keys = [("paper", "cites", "paper")]
    for number in range(random.integers(1, 7)):
        keys.append((str(random.choice(names)), f"r{number}", str(random.choice(names))))
    edges = {}
    for key in keys:
        size = int(random.choice([0, 1, 7, 40]))
        ends = np.stack([random.integers(0, max(1, counts[end] - 1), size) for end in (key[0], key[2])])
        ends[:, : size // 4] = ends[:, size // 4 : 2 * (size // 4)]
        edges[key] = ends.astype(np.int64)
    widths = {name: 8 if same_width else 16 if name == "paper" else int(random.choice([4, 8])) for name in names}
    columns = {name: {"feats": _rows(random, counts[name], widths[name])} for name in names}
    return Typed(counts, edges, columns, _arc_columns(random, edges))


def typed_graph(whole: Typed, comm: Any, seed: int = 1, lacking: str = "author", **options: Any) -> TypedGraph:
    """The graph on ranks, cut at random; the last of several ranks owns no vertex of the type `lacking`."""
    data = whole.data()
    cut = random_cut(data.edge_list(), comm.size, seed)
    if comm.size > 1:
        node_types = np.repeat(list(whole.counts), list(whole.counts.values()))
        cut.owner[(cut.owner == comm.size - 1) & (node_types == lacking)] = 0
    return TypedGraph(with_rows(dist_graph(data, comm, cut, **options)))


def train_steps(case, whole, data, weights):
    """(outputs, gradients, losses) of some steps from the same weights."""
    with warnings.catch_warnings():  # DGL's of relations without arcs, too
        warnings.simplefilter("ignore")
        return _train_steps(*case, whole, data, weights)


def _train_steps(make, call, whole, data, weights):
    torch.manual_seed(3)
    model = make(whole).double()  # GATConv of DGL makes float32
    if any(map(is_lazy, model.parameters())):
        with torch.no_grad():
            call(model, data)
    model.apply(lambda module: module.reset_running_stats() if hasattr(module, "reset_running_stats") else None)
    torch.manual_seed(4)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(0.3 * torch.randn(weight.shape))
    optimizer, losses, first = torch.optim.Adam(model.parameters(), lr=0.05), [], None
    for _ in range(STEPS):
        optimizer.zero_grad()
        out = {name: rows for name, rows in call(model, data).items() if rows is not None}
        loss = sum((torch.tanh(rows) * weights[name][:, : rows.shape[1]]).sum() for name, rows in out.items())
        loss.backward()
        gradients = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
        first = first or ({name: rows.detach() for name, rows in out.items()}, gradients)
        optimizer.step()
        losses.append(loss.item())
    return *first, {"losses": torch.tensor(losses)}


def weights_of(whole):
    """What rows of each type, of all, and of arcs are multiplied by in a loss."""
    draw = torch.Generator().manual_seed(9)
    counts: dict[Any, int] = whole.counts | {"all": sum(whole.counts.values())}
    counts |= {key: ends.shape[1] for key, ends in whole.edges.items()}
    return {kind: torch.randn(count, 64, generator=draw) for kind, count in counts.items()}


def same_steps(name, case, whole, plain, comm, seed=1):
    """Raise AssertionError unless steps on ranks equal steps on `plain()`, the whole graph in one process.

    Args: case: (model of a whole graph, its rows by type from a model and a graph).
    """
    weights = weights_of(whole)
    expected, refusal = on_one_rank(comm, lambda: train_steps(case, whole, plain(), weights))
    assert not refusal, f"{name}: {refusal}"
    same_as(name, expected, case, whole, weights, typed_graph(whole, comm, seed))


def on_one_rank(comm, run):
    """(what `run` gives on rank 0, "") on every rank, or (None, what it raised). Collective: yes."""
    found = None, ""
    if comm.rank == 0:
        try:
            found = run(), ""
        except Exception as error:
            found = None, f"{type(error).__name__}: {error}"
    return comm.bcast(found)


def same_as(name, expected, case, whole, weights, graph):
    """Raise AssertionError unless steps on a graph of ranks give what was expected."""
    for theirs, ours in zip(expected, train_steps(case, whole, graph, weights), strict=True):
        assert theirs.keys() == ours.keys(), name
        for key, one in theirs.items():
            found = ours[key].whole() if hasattr(ours[key], "whole") else ours[key]
            says = f"{name} {key}"
            torch.testing.assert_close(
                found, one, rtol=1e-9, atol=1e-9, equal_nan=True, msg=lambda text, says=says: f"{says}: {text}"
            )


def random_steps(seeds, comm):
    """Of each seed a random graph and a case of PyG or DGL, the next in turn: (how many ran, how many plain refuses).

    Args: seeds: numbers, or (number, name of a case).

    Raises: AssertionError, as `same_steps`.
    """
    import dgl_typed
    import pyg_typed

    every = [(module, name) for module in (dgl_typed, pyg_typed) for name in module.CASES]
    by_name = {name: (module, name) for module, name in every}
    dispatch._spread.clear()  # graphs of other tests: rows as many as their parts would be refused in the plain library
    ran = 0
    for seed in seeds:
        seed, (module, name) = (
            (seed[0], by_name[seed[1]]) if isinstance(seed, tuple) else (seed, every[seed % len(every)])
        )
        whole = module.graph_for(name, varied_typed, seed)
        weights, case = weights_of(whole), module.CASES[name]
        make = whole.to_dgl if module is dgl_typed else whole.to_pyg
        # What the plain library cannot do on this graph, it refuses
        expected, refusal = on_one_rank(comm, lambda: train_steps(case, whole, make(), weights))  # noqa: B023 - now
        if refusal:
            continue
        same_as(f"seed {seed}, {name}", expected, case, whole, weights, typed_graph(whole, comm, seed, debug=True))
        ran += 1
    return ran, len(seeds) - ran
