"""Every operator with every reducer over P ranks equals DGL on the whole graph, gradients and ties included."""

from itertools import product

import numpy as np
import pytest
import torch
from cut_graphs import DIRECTED, UNDIRECTED, dist_graph, gather_rows, random_cut, random_graph

from distgnn.comm import sum_over_ranks
from distgnn.system.other_libraries import import_dgl

TOLERANCE = {"rtol": 1e-10, "atol": 1e-11}  # float64 sums in another order
SHAPES = {  # name: trailing shapes of vertex rows and arc rows
    "one column": ((), ()),
    "same": ((4,), (4,)),
    "scalar on arcs": ((4,), (1,)),
    "heads": ((4, 2), (4, 1)),
    "broadcast both ways": ((3, 1), (1, 2)),
}


@pytest.fixture(scope="module")
def dgl():
    return import_dgl()


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
        sizes = {
            "u": (self.data.num_nodes, *vertex_shape),
            "v": (self.data.num_nodes, *vertex_shape),
            "e": (num_ids, *arc_shape),
        }
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


@pytest.mark.mpi(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_aggregation_of_two_operands(comm, dgl, shape):
    case = Case(comm, *SHAPES[shape], directed=DIRECTED)
    for op, reduce in product(("add", "sub", "mul", "div"), ("sum", "mean", "max", "min")):
        case.compare("ue", lambda graph, u, e, op=op, reduce=reduce: dgl.ops.gspmm(graph, op, reduce, u, e))


@pytest.mark.mpi(3)
@pytest.mark.parametrize("split_arcs", [False, True])
def test_aggregation_of_one_operand(comm, dgl, split_arcs):
    case = Case(comm, split_arcs=split_arcs)
    for reduce in ("sum", "mean", "max", "min"):
        case.compare("u", getattr(dgl.ops, f"copy_u_{reduce}"))
        case.compare("e", getattr(dgl.ops, f"copy_e_{reduce}"))


@pytest.mark.mpi(3)
@pytest.mark.parametrize("shape", ["one column", "same", "broadcast both ways"])
def test_messages_of_two_operands(comm, dgl, shape):
    case = Case(comm, *SHAPES[shape])
    ends = [(left, right) for left, right in product("uve", "uve") if left != right]
    for (left, right), op in product(ends, ("add", "sub", "mul", "div", "dot")):
        if op == "dot" and shape == "broadcast both ways":
            continue
        case.compare(left + right, getattr(dgl.ops, f"{left}_{op}_{right}"), on_arcs=True)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("directed", [DIRECTED, UNDIRECTED])
def test_softmax_at_either_end(comm, dgl, directed):
    case = Case(comm, (4,), (3, 1), directed)
    for norm_by in ("dst", "src"):
        case.compare(
            "e", lambda graph, e, norm_by=norm_by: dgl.ops.edge_softmax(graph, e, norm_by=norm_by), on_arcs=True
        )
    case.rows["e"] *= 2000  # no exponential overflows
    case.compare("e", dgl.ops.edge_softmax, on_arcs=True)


@pytest.mark.mpi(2)
def test_message_passing_by_name(comm, dgl):
    fn = dgl.function
    case = Case(comm)

    def run(graph, u, e):
        with graph.local_scope():
            graph.ndata["x"], graph.edata["w"] = u, e
            graph.apply_edges(fn.v_sub_e("x", "w", "d"))
            graph.update_all(fn.u_mul_v("x", "x", "m"), fn.max("m", "y"))
            graph.update_all(fn.copy_e("d", "m"), fn.mean("m", "z"), lambda nodes: {"z": nodes.data["z"] * 2})
            graph.apply_edges(lambda edges: {"t": edges.src["z"] - edges.dst["y"] * edges.data["w"]})
            graph.update_all(lambda edges: {"m": edges.data["t"].tanh()}, fn.sum("m", "out"))
            return graph.ndata["out"]

    case.compare("ue", run)
    assert "out" not in case.graph.ndata


@pytest.mark.mpi(2)
def test_integers_travel_to_arcs(comm, dgl):
    case = Case(comm)
    graph = case.graph
    graph.ndata["id"] = torch.from_numpy(graph.owned_ids)
    graph.apply_edges(lambda edges: {"s": edges.src["id"], "t": edges.dst["id"]})
    sources, targets, _ = case.edges.arcs()
    by_id = dict(zip(case.arc_ids.tolist(), zip(sources.tolist(), targets.tolist(), strict=True), strict=True))
    ends = zip(graph.edata["s"].tolist(), graph.edata["t"].tolist(), strict=True)
    assert graph.edata["s"].dtype == torch.int64
    assert list(ends) == [by_id[arc] for arc in graph.local.arc_ids.tolist()]


@pytest.mark.mpi(2)
def test_what_dgl_would_do_on_part_of_the_graph_is_refused(comm, dgl):
    graph = Case(comm).graph
    with pytest.raises(ValueError, match="leave eids out"):
        dgl.ops.edge_softmax(graph, torch.zeros(3, 1), eids=torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="'in_degrees' of a graph that is spread over ranks"):
        dgl.reverse(graph).in_degrees()
    with pytest.raises(ValueError, match="one row per arc"):
        dgl.ops.edge_softmax(graph, torch.zeros(graph.num_edges() + 1, 1))


@pytest.mark.mpi(1)
def test_dgl_itself_is_not_changed(comm, dgl):
    whole = Case(comm).whole
    assert Case(comm).graph._graph.num_edges()  # asked once: from here on DGL's operators look whose graph they got
    logits = torch.randn(whole.num_edges(), 2, dtype=torch.float64)
    sums = dgl.ops.copy_e_sum(whole, dgl.ops.edge_softmax(whole, logits))
    expected = (whole.in_degrees() > 0).to(sums.dtype)[:, None].expand_as(sums)
    torch.testing.assert_close(sums, expected)
