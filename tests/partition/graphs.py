"""Edge lists and cuts for partition tests: small awkward graphs, and any cut at all."""

import numpy as np
from hypothesis import strategies as st

from distgnn.datasets import GraphData
from distgnn.partition import VertexCut
from distgnn.partition.core.edges import EdgeArrays
from distgnn.partition.refinement.cut_state import start_state
from distgnn.partition.refinement.group_loads import no_row_loads, start_loads
from distgnn.partition.refinement.group_moves import Placement
from distgnn.partition.refinement.groups import Groups
from distgnn.partition.refinement.replica_table import add_edge, count_copies, empty_table


def edge_list(edges, num_nodes, directed=False, weights=None, direction="stored", self_loops="keep"):
    """An EdgeList from a list of pairs."""
    edges = np.array(edges, dtype=np.int64).reshape(-1, 2)
    graph = GraphData("small", num_nodes, edges, directed, edge_weight=weights)
    return graph.edge_list(direction, self_loops)


def num_copies(edges, parts, num_parts):
    return int(start_state(edges, parts, num_parts).num_copies.sum())


def groups_with(*members, sizes=None):
    sizes = [10.0] * len(members) if sizes is None else sizes
    indptr = np.cumsum([0, *map(len, members)])
    flat = np.concatenate(members).astype(np.int32)
    return Groups(indptr, flat, np.array(sizes, dtype=float), np.ones(len(flat), dtype=np.uint16))


def random_groups(rng, num_groups, num_vertices, most_edges=40):
    """Groups of 1 to 12 members: vertices in one group and in many."""
    members = [rng.choice(num_vertices, rng.integers(1, 13), replace=False) for _ in range(num_groups)]
    return groups_with(*members, sizes=rng.integers(1, most_edges, num_groups))


def placed(groups, part, num_vertices, shares):
    """A `Placement` of groups in parts: in how many groups of each part a vertex is, and the loads; no rows."""
    num_parts = len(shares)
    table = empty_table(np.bincount(groups.members, minlength=num_vertices).astype(np.int32), num_parts)
    for v, p in zip(groups.members, np.repeat(part, np.diff(groups.indptr)), strict=True):
        add_edge(table, v, p, 1)
    edges, copies = np.bincount(part, groups.sizes, num_parts).astype(float), np.zeros(num_parts, dtype=np.int64)
    count_copies(table, copies)
    loads = start_loads(edges, copies.astype(float), edges.sum() * shares, copies.sum() * shares)
    return Placement(part, table, loads, no_row_loads(num_parts))


def awkward(name):
    """(edges, num_nodes) of a named graph; every one has another way to go wrong."""
    n = 20
    generator = np.random.default_rng(3)
    return {
        "star": ([(0, i) for i in range(1, n)], n),
        "path": ([(i, i + 1) for i in range(n - 1)], n),
        "matching": ([(2 * i, 2 * i + 1) for i in range(n // 2)], n),
        "clique": ([(i, j) for i in range(8) for j in range(i)], 8),
        "one edge": ([(3, 5)], 9),
        "one self-loop": ([(2, 2)], 4),
        "all isolated": ([], 7),
        "no vertices": ([], 0),
        "hub joined to everything": ([(0, i) for i in range(n)] + [(i, i + 1) for i in range(1, n - 1)], n),
        "multigraph": ([(0, 1), (1, 0), (0, 1), (2, 2), (2, 2), (1, 2), (4, 4)], 6),
        "small components": ([(3 * i + a, 3 * i + b) for i in range(5) for a, b in [(0, 1), (1, 2), (2, 0)]], 16),
        "random": (generator.integers(0, 30, (90, 2)).tolist(), 35),
    }[name]


NAMES = (
    "star", "path", "matching", "clique", "one edge", "one self-loop", "all isolated", "no vertices",
    "hub joined to everything", "multigraph", "small components", "random",
)  # fmt: skip


def random_cut(edges, num_parts, generator, split_reverse=False, ordered=False):
    """A cut without any sense: owners need not hold an arc, reverse arcs may be elsewhere."""
    rows = len(edges.src)
    reverse = generator.integers(0, num_parts, rows) if split_reverse and edges.two_way else None
    order = generator.integers(0, 5, edges.num_nodes) if ordered else None
    owner = generator.integers(0, num_parts, edges.num_nodes)
    return VertexCut(num_parts, generator.integers(0, num_parts, rows), owner, reverse, order)


@st.composite
def cut_graphs(draw):
    """(EdgeList, VertexCut): multigraphs with self-loops and isolated vertices, directed or not, weighted or not."""
    num_nodes = draw(st.integers(1, 12))
    ids = st.integers(0, num_nodes - 1)
    pairs = draw(st.lists(st.tuples(ids, ids), max_size=25))
    directed = draw(st.booleans())
    weights = np.array([1.0, 2.0] * 13, dtype=np.float32)[: len(pairs)] if draw(st.booleans()) else None
    edges = edge_list(pairs, num_nodes, directed, weights)
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    num_parts = draw(st.integers(1, 5))
    return edges, random_cut(edges, num_parts, generator, draw(st.booleans()), draw(st.booleans()))


def arc_parts(edges, cut):
    """Part of each arc, in the order of `EdgeList.arcs`."""
    ids = edges.arcs()[2]
    reverse = cut.edge_part if cut.reverse_part is None else cut.reverse_part
    return np.concatenate([cut.edge_part, reverse])[ids]


def core_and_islands():
    """50 communities that know each other, two vertices in five, and as many that hardly know anybody."""
    rng, size, num = np.random.default_rng(5), 100, 100
    edges = []
    for community in range(num):
        strangers, others = (40, size * num // 2) if community < num // 2 else (2, size * num)
        inside = size * community + rng.integers(0, size, (400 + strangers, 2))
        inside[400:, 1] = rng.integers(0, others, strangers)
        edges.append(inside)
    src, dst = np.concatenate(edges).astype(np.int32).T
    loops = src == dst
    return EdgeArrays(src[~loops].copy(), dst[~loops].copy(), num * size, True, 2 * int(np.count_nonzero(~loops)))
