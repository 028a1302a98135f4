"""Rows of a small graph's vertices and arcs, on ranks and in DGL on the whole graph, and a way to compare."""

from itertools import product

import numpy as np
import torch
from cut_graphs import UNDIRECTED, dist_graph, gather_rows, random_cut, random_graph

from distgnn.comm import sum_over_ranks
from distgnn.system.other_libraries import import_dgl

SHAPES = {  # name: trailing shapes of vertex rows and arc rows
    "one column": ((), ()),
    "same": ((4,), (4,)),
    "scalar on arcs": ((4,), (1,)),
    "heads": ((4, 2), (4, 1)),
    "heads behind": ((2, 4), (4,)),
    "heads around": ((2, 2, 2), (2, 1, 2)),
    "broadcast both ways": ((4, 1), (1, 2)),
}
OPERATORS = ("add", "sub", "mul", "div")
TOLERANCE = {"rtol": 1e-10, "atol": 1e-11}  # float64 sums in another order


dgl = import_dgl()


class Case:
    """Rows u, v [N, ...] and e [A, ...] of a graph, few different values so that maxima tie, and a way to compare."""

    def __init__(self, comm, vertex_shape=(4,), arc_shape=(4,), directed=UNDIRECTED, split_arcs=False):
        self.data = random_graph(21, directed=directed)
        self.edges = self.data.edge_list()
        cut = random_cut(self.edges, comm.size, split_arcs=split_arcs)
        self.graph = dist_graph(self.data, comm, cut, debug=True)
        self.whole = self.data.to_dgl(self.edges)
        self.arc_ids = self.edges.arcs()[2]
        num_ids = self.edges.num_edges * (2 if self.edges.two_way else 1)
        random = np.random.default_rng(3)
        of_vertices = self.data.num_nodes, *vertex_shape
        sizes = {"u": of_vertices, "v": of_vertices, "e": (num_ids, *arc_shape)}
        self.rows = {end: torch.from_numpy(random.integers(1, 4, size) * 0.5) for end, size in sizes.items()}

    def part(self, end: str, whole: bool) -> torch.Tensor:
        ids = np.arange(self.data.num_nodes) if whole else self.graph.owned_ids
        arcs = self.arc_ids if whole else self.graph.local.arc_ids
        return self.rows[end][arcs if end == "e" else ids].clone().requires_grad_()

    def compare(self, ends: str, run, on_arcs: bool = False) -> None:
        """`run(graph, *rows)` in DGL and on ranks: results and gradients of a fixed weighting of the result."""
        expected, results = self._run(self.whole, [self.part(end, True) for end in ends], run, on_arcs, True)
        got, ours = self._run(self.graph, [self.part(end, False) for end in ends], run, on_arcs, False)
        np.testing.assert_allclose(self._gathered(got, on_arcs), self._spread(expected, on_arcs), **TOLERANCE)
        for end, left, right in zip(ends, ours, results, strict=True):
            left, right = self._gathered(left, end == "e"), self._spread(right, end == "e")
            np.testing.assert_allclose(left, right, err_msg=f"gradient of {end}", **TOLERANCE)

    def reduce(self, *reducers: str, operators: tuple[str, ...] = ()) -> None:
        """Messages of two operands, or copies of one, reduced at targets."""
        for op, reducer in product(operators, reducers):
            self.compare("ue", lambda graph, u, e, op=op, how=reducer: dgl.ops.gspmm(graph, op, how, u, e))
        for end, reducer in product("" if operators else "ue", reducers):
            self.compare(end, getattr(dgl.ops, f"copy_{end}_{reducer}"))

    def _run(self, graph, rows, run, on_arcs: bool, whole: bool):
        out = run(graph, *rows)
        out = torch.where(out.isinf(), 0.0, out)  # rows without arcs: update_all of DGL does so after dgl.ops
        size = len(self.rows["e"]) if on_arcs else self.data.num_nodes
        weight = torch.from_numpy(np.random.default_rng(5).standard_normal((size, *out.shape[1:])))
        ids = self.arc_ids if whole else self.graph.local.arc_ids
        vertices = np.arange(self.data.num_nodes) if whole else self.graph.owned_ids
        (out * weight[ids if on_arcs else vertices]).sum().backward()
        return out.detach(), [column.grad for column in rows]

    def _gathered(self, rows, on_arcs: bool) -> np.ndarray:
        if not on_arcs:
            return gather_rows(self.graph, rows)
        return sum_over_ranks(self.graph.comm, self._by_id(self.graph.local.arc_ids, rows))

    def _spread(self, rows, on_arcs: bool) -> np.ndarray:
        return self._by_id(self.arc_ids, rows) if on_arcs else rows.numpy()

    def _by_id(self, ids, rows) -> np.ndarray:
        out = np.zeros((len(self.rows["e"]), *rows.shape[1:]))
        out[ids] = rows
        return out
