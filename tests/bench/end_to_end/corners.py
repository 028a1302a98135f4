"""Partition folders at the edge of what can happen, for exactness.py.

untrained    cora; every training vertex is owned by part 0, the other ranks own none
no halo      cora's components dealt out whole: no vertex has a copy, no rank sends a row
pairs        20 components of 2 vertices and 3 isolated vertices: fewer vertices in each component than parts
few trained  ogbn-arxiv is too large for this; cora with 3 training vertices, cut by `libra` as any graph
empty rank   cora; the last part has no vertex and no arc
"""

from pathlib import Path

import numpy as np
from program import DATA_ROOT
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from distgnn.datasets import GraphData, load_graph
from distgnn.partition import VertexCut, cut_edges, write_partition

CORNERS = {"untrained": (4,), "no halo": (4,), "pairs": (4, 8), "few trained": (4,), "empty rank": (4,)}


def write_corner(name: str, out: Path, num_parts: int) -> Path:
    """Write the partition folder of a corner (kept where it is there) and return it."""
    if not out.exists():
        graph = _pairs() if name == "pairs" else load_graph("cora", DATA_ROOT)
        if name == "few trained":
            graph.train = graph.train[:3]
        edges = graph.edge_list()
        cut = cut_edges(edges, num_parts)
        if num_parts > 1:
            cut = {"untrained": _untrained, "no halo": _no_halo, "empty rank": _empty_rank}.get(name, _as_it_is)(
                graph, edges, cut
            )
        write_partition(graph, edges, cut, out)
    return out


def _as_it_is(graph, edges, cut: VertexCut) -> VertexCut:
    return cut


def _untrained(graph, edges, cut: VertexCut) -> VertexCut:
    owner = cut.owner.copy()
    owner[graph.train] = 0
    return VertexCut(cut.num_parts, cut.edge_part, owner)


def _no_halo(graph, edges, cut: VertexCut) -> VertexCut:
    links = coo_matrix((np.ones(len(edges.src)), (edges.src, edges.dst)), shape=(edges.num_nodes,) * 2)
    owner = (connected_components(links, directed=False)[1] % cut.num_parts).astype(cut.owner.dtype)
    return VertexCut(cut.num_parts, owner[edges.src].astype(cut.edge_part.dtype), owner)


def _empty_rank(graph, edges, cut: VertexCut) -> VertexCut:
    smaller = cut_edges(edges, cut.num_parts - 1)
    return VertexCut(cut.num_parts, smaller.edge_part, smaller.owner)


def _pairs() -> GraphData:
    random = np.random.default_rng(0)
    ends = np.arange(40).reshape(20, 2)
    feats = random.standard_normal((43, 5)).astype(np.float32)
    splits = {"train": np.arange(0, 43, 2), "valid": np.arange(1, 43, 4), "test": np.arange(3, 43, 4)}
    labels = random.integers(0, 3, 43)
    return GraphData.from_arrays(ends, 43, directed=False, feats=feats, labels=labels, name="pairs", **splits)
