"""Message passing over P ranks, by operators and by name, equals DGL on the whole graph, gradients included."""

import pytest
import torch
from arc_rows import OPERATORS, SHAPES, Case, dgl
from cut_graphs import DIRECTED


@pytest.mark.mpi(3)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_of_messages_of_two_operands(comm, shape):
    Case(comm, *SHAPES[shape], directed=DIRECTED).reduce("sum", "mean", operators=OPERATORS)


@pytest.mark.mpi(2)
@pytest.mark.parametrize("shape", SHAPES)
def test_weighted_sums_and_dots_make_no_rows_of_arcs(comm, shape, monkeypatch):
    monkeypatch.setattr("distgnn.ops.edges.messages.on_arcs", lambda *_: pytest.fail("a row was made for each arc"))
    case = Case(comm, *SHAPES[shape], directed=DIRECTED)
    case.compare("ue", dgl.ops.u_mul_e_sum)
    case.compare("u", lambda graph, u: dgl.ops.copy_u_sum(dgl.reverse(graph), u))
    case.compare("ue", lambda graph, u, e: dgl.ops.u_mul_e_sum(dgl.reverse(graph), u, e))
    if SHAPES[shape][0]:
        case.compare("vu", dgl.ops.v_dot_u, on_arcs=True)
    if len(SHAPES[shape][0]) > 1:
        case.compare("uv", lambda graph, u, v: dgl.ops.u_dot_v(graph, u, v[:, :1]), on_arcs=True)


@pytest.mark.mpi(2)
def test_dots_of_two_widths_are_refused_as_dgl_does(comm):
    case = Case(comm)
    u = case.part("u", whole=False)
    with pytest.raises(ValueError, match="last dimensions are 4 and 1: make them equal"):
        dgl.ops.u_dot_v(case.graph, u, u[:, :1])


@pytest.mark.mpi(3)
@pytest.mark.parametrize("split_arcs", [False, True])
def test_sums_of_rows_of_one_end_and_of_arcs(comm, split_arcs):
    Case(comm, split_arcs=split_arcs).reduce("sum", "mean")


@pytest.mark.mpi(2)
def test_message_passing_by_name(comm):
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
def test_what_dgl_would_do_on_part_of_the_graph_is_refused(comm):
    graph = Case(comm).graph
    with pytest.raises(ValueError, match="leave eids out"):
        dgl.ops.edge_softmax(graph, torch.zeros(3, 1), eids=torch.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="'in_degrees' of a graph that is spread over ranks"):
        dgl.reverse(graph).in_degrees()
    with pytest.raises(ValueError, match="one row per arc"):
        dgl.ops.edge_softmax(graph, torch.zeros(graph.num_edges() + 1, 1))


@pytest.mark.mpi(1)
def test_dgl_itself_is_not_changed(comm):
    whole = Case(comm).whole
    assert Case(comm).graph._graph.num_edges()  # asked once: from here on DGL's operators look whose graph they got
    logits = torch.randn(whole.num_edges(), 2, dtype=torch.float64)
    sums = dgl.ops.copy_e_sum(whole, dgl.ops.edge_softmax(whole, logits))
    expected = (whole.in_degrees() > 0).to(sums.dtype)[:, None].expand_as(sums)
    torch.testing.assert_close(sums, expected)
