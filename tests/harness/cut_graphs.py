"""Small graphs, cut in memory: every rank makes the same cut and takes its part. For tests of floors 4 and up."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
from mpi4py import MPI

from distgnn.comm.ending.leaving import watched
from distgnn.config import Schedule
from distgnn.datasets import GraphData
from distgnn.datasets.findings.findings import Findings
from distgnn.graph.dist_graph import DistGraph
from distgnn.graph.loader import graph_kind
from distgnn.partition import VertexCut, local_part

DIRECTED, UNDIRECTED = True, False


def random_graph(
    seed: int = 0,
    num_nodes: int = 60,
    num_edges: int = 300,
    *,
    directed: bool = UNDIRECTED,
    weighted: bool = False,
    multilabel: bool = False,
    num_feats: int = 8,
    typed: bool = False,
) -> GraphData:
    """A multigraph with a hub, self-loops, duplicates and isolated vertices; features, labels and splits.

    `typed`: with 5 edge features, 3 relations and 2 vertex types.
    """
    random = np.random.default_rng(seed)
    connected = num_nodes - 5
    edges = random.integers(0, connected, (num_edges, 2))
    edges[: num_edges // 5, 0] = 3  # a hub
    edges[:3] = edges[3:6]  # duplicates
    edges[6] = (7, 7)
    classes = 4
    labels = random.integers(0, classes, num_nodes)
    if multilabel:
        labels = random.integers(0, 2, (num_nodes, classes)).astype(np.int8)
    else:
        labels[random.integers(0, num_nodes, 4)] = -1
    train, valid, test = np.split(random.permutation(num_nodes), [num_nodes // 2, 3 * num_nodes // 4])
    return GraphData.from_arrays(
        edges,
        num_nodes=num_nodes,
        directed=directed,
        feats=random.standard_normal((num_nodes, num_feats)).astype(np.float32),
        labels=labels,
        edge_weight=random.random(num_edges).astype(np.float32) if weighted else None,
        edge_feats=random.standard_normal((num_edges, 5)).astype(np.float32) if typed else None,
        edge_types=random.integers(0, 3, num_edges) if typed else None,
        node_types=random.integers(0, 2, num_nodes) if typed else None,
        train=train,
        valid=valid,
        test=test,
        name="random",
        findings=Findings(),  # sparse graphs are meant
    )


def random_cut(edges, num_parts: int, seed: int = 1, split_arcs: bool = False) -> VertexCut:
    """Arcs and owners anywhere: an owner need not hold an arc of its vertex."""
    random = np.random.default_rng(seed)
    parts = random.integers(0, num_parts, (2, len(edges.src)))
    owner = random.integers(0, num_parts, edges.num_nodes)
    return VertexCut(num_parts, parts[0], owner, parts[1] if split_arcs and edges.two_way else None)


def without_part_1(edges, num_parts: int) -> VertexCut:
    """A random cut of which part 1 has neither vertices nor arcs."""
    cut = random_cut(edges, num_parts)
    cut.owner[cut.owner == 1] = 0
    cut.edge_part[cut.edge_part == 1] = 0
    return cut


def dist_graph(graph: GraphData, comm: MPI.Comm, cut: VertexCut | None = None, **options) -> DistGraph:
    """This rank's DistGraph of a graph that is cut at random, or as told; clusters: with some order of its vertices."""
    comm = watched(comm)  # as that of `dg.load`: ranks compare their calls, and what they use
    edges = graph.edge_list(options.pop("direction", "stored"), options.pop("self_loops", "keep"))
    schedule = Schedule(**{one.name: options[one.name] for one in fields(Schedule) if one.name in options})
    cut = cut or random_cut(edges, comm.size)
    places = np.random.default_rng(5).permutation(graph.num_nodes) if options.pop("clusters", False) else None
    local = local_part(graph, edges, cut, comm.rank, places)
    kind = graph_kind(schedule)
    return kind(local, comm, **{"dtype": "float64"} | options)


def whole_graph(graph: GraphData, **options) -> DistGraph:
    """The same graph on one rank."""
    return dist_graph(graph, MPI.COMM_SELF, **options)


def on_rank_0(comm: MPI.Comm, make: Callable[[], Any]) -> Any:
    """What `make` gives in one process, made once and sent to the other ranks. Collective: yes."""
    return comm.bcast(make() if comm.rank == 0 else None)


def dense_adjacency(graph: GraphData, edge_weight=None) -> np.ndarray:
    """A[v, u] = sum of the weights (default: 1) of arcs u -> v, [N, N]."""
    sources, targets, arc_ids = graph.edge_list().arcs()
    matrix = np.zeros((graph.num_nodes, graph.num_nodes))
    np.add.at(matrix, (targets, sources), 1.0 if edge_weight is None else edge_weight[arc_ids])
    return matrix


def gather_rows(graph: DistGraph, rows) -> np.ndarray:
    """Owned rows of all ranks in the order of global ids, on every rank."""
    pieces = graph.comm.allgather((graph.owned_ids, np.asarray(rows)[: graph.num_owned]))
    everything = np.empty((graph.num_global_nodes, *pieces[0][1].shape[1:]), pieces[0][1].dtype)
    for ids, theirs in pieces:
        everything[ids] = theirs
    return everything


def broadcast_and_reduce(exchange, rows: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """One broadcast of `rows` and one reduce of `targets`."""
    exchange.start_broadcast(rows)
    sources = exchange.finish_broadcast().copy()
    buffer = exchange.target_rows(targets)
    buffer[:] = targets
    exchange.start_reduce(buffer)
    out = np.zeros_like(rows)
    exchange.finish_reduce(out)
    return sources, out
