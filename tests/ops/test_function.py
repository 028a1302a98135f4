"""Every operator under torch's modes: what it gives outside them, or one line of refusal."""

import copy

import pytest
import torch
from cut_graphs import dist_graph, random_graph
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from distgnn import nn as dnn
from distgnn import ops
from distgnn.errors import RunError
from distgnn.ops.aggregation.extreme import tied_arc_extreme, tied_extreme
from distgnn.ops.edges.softmax import edge_softmax_with_own

WIDTH, HEADS = 8, 4


def parameter(*shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(*shape, generator=generator, dtype=torch.float64).requires_grad_()


SQUARE, ATTENTION = parameter(WIDTH, WIDTH), parameter(2, WIDTH)
BIAS, PAIR, NARROW = parameter(WIDTH), parameter(1, HEADS, WIDTH // HEADS), parameter(WIDTH, 4)


def heads(rows):
    return rows.view(len(rows), HEADS, WIDTH // HEADS)


def arcs(graph, rows):
    return ops.to_arcs(graph, rows, "source") * 0.5


def scale(graph):
    return None, graph.degree_scale("in", -1)


OPERATORS = {
    "spmm": lambda g, x: ops.spmm(g, x, target_scale=scale(g)[1]),
    "spmm_weighted": lambda g, x: ops.spmm(g, x, arcs(g, x)[:, 0].contiguous()),
    "spmm_of_three_dims": lambda g, x: ops.spmm(g, heads(x)),
    "convolve": lambda g, x: ops.convolve(g, x, SQUARE, SQUARE, BIAS, ops.ConvSpec(scale(g))),
    "convolve_narrow": lambda g, x: ops.convolve(g, x, NARROW, None, None, ops.ConvSpec(scale(g))),
    "convolve_relu": lambda g, x: ops.convolve(g, x, SQUARE, None, BIAS, ops.ConvSpec(scale(g), None, epilogue(g))),
    "attend": lambda g, x: ops.attend(g, x, SQUARE, ATTENTION, None, ops.Heads(HEADS)),
    "attend_bias": lambda g, x: ops.attend(g, x, SQUARE, ATTENTION, BIAS, ops.Heads(HEADS)),
    "attend_mean": lambda g, x: ops.attend(g, x, SQUARE, ATTENTION, None, ops.Heads(HEADS, mean=True)),
    "attend_relu": lambda g, x: ops.attend(g, x, SQUARE, ATTENTION, BIAS, ops.Heads(HEADS, 0.2, epilogue(g))),
    "halo_broadcast": lambda g, x: ops.halo_broadcast(g, x),
    "halo_reduce": lambda g, x: ops.halo_reduce(g, ops.halo_broadcast(g, x, "target")),
    "extreme": lambda g, x: ops.extreme(g, x),
    "arc_extreme": lambda g, x: ops.arc_extreme(g, arcs(g, x), "min"),
    "tied_extreme": lambda g, x: tied_extreme(g, x),
    "tied_arc_extreme": lambda g, x: tied_arc_extreme(g, arcs(g, x), "max", x),
    "to_arcs": lambda g, x: ops.to_arcs(g, x, "target"),
    "from_arcs": lambda g, x: ops.from_arcs(g, arcs(g, x)),
    "gspmm": lambda g, x: ops.gspmm(g, "mul", "mean", x, arcs(g, x)),
    "gsddmm": lambda g, x: ops.gsddmm(g, "dot", x, x),
    "pair_scores": lambda g, x: ops.pair_scores(g, heads(x), heads(x), PAIR, 0.2),
    "pair_dots": lambda g, x: ops.pair_dots(g, heads(x), heads(x)),
    "spmm_heads": lambda g, x: ops.spmm_heads(g, heads(x), arcs(g, x)[:, :HEADS]),
    "edge_softmax": lambda g, x: ops.edge_softmax(g, arcs(g, x)),
    "edge_softmax_with_own": lambda g, x: edge_softmax_with_own(g, arcs(g, x), x)[1],
    "relu": lambda g, x: ops.relu(g, x * 1),
    "dropout": lambda g, x: ops.dropout(g, x, 0.5, 0),
    "all_sum": lambda g, x: ops.all_sum(g, x.sum(0)),
    "all_max": lambda g, x: ops.all_max(g, x)[None],
    "gather_rows_at": lambda g, x: ops.gather_rows_at(g, x, torch.tensor([[3, 0], [7, 3]])),
    "relation_arcs": lambda g, x: relation_arcs(g).convolve(x, [SQUARE, 2 * SQUARE, SQUARE.T], SQUARE, BIAS),
    "recompute": lambda g, x: ops.recompute(g, lambda rows: torch.tanh(ops.spmm(g, rows)), x, []),
    "global_mean": lambda g, x: g.global_mean(x)[None],
}


def epilogue(graph) -> ops.Epilogue:
    return ops.relu_dropout(graph, 0.3)


def relation_arcs(graph) -> ops.RelationArcs:
    return ops.RelationArcs(graph, torch.arange(graph.num_edges()) % 3, 3)


@pytest.fixture
def graph(comm):
    return dist_graph(random_graph(3), comm)


def rows_of(graph) -> torch.Tensor:
    ids = torch.from_numpy(graph.owned_ids).double()[:, None]
    return torch.sin(ids * torch.arange(1.0, WIDTH + 1) * 1.7 + 0.3)


def weighted(out: torch.Tensor) -> torch.Tensor:
    """A loss of the result whose gradient differs from number to number."""
    return (out * torch.cos(torch.arange(out.numel(), dtype=out.dtype)).view(out.shape)).sum()


def results(graph, run, change=lambda out: out, backward=lambda loss: loss.backward()) -> list[torch.Tensor]:
    """`change(run(graph, rows))`, and the gradients of rows and parameters."""
    rows = rows_of(graph).requires_grad_()
    leaves = [rows, SQUARE, ATTENTION, BIAS, PAIR, NARROW]
    for leaf in leaves:
        leaf.grad = None
    out = change(run(graph, rows))
    backward(weighted(out))
    return [out.detach().clone(), *(torch.zeros(()) if leaf.grad is None else leaf.grad.clone() for leaf in leaves)]


def assert_same(found, expected):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-13)


# Of these torch's own form saves its result too, and refuses.
NEED_RESULT = ("edge_softmax", "edge_softmax_with_own", "relu")
MODES = {
    "in_place": lambda run: lambda g, x: functional.leaky_relu_(run(g, x).mul_(3).add_(1), 0.1),
    "through_a_view": lambda run: lambda g, x: written_at(run(g, x)),
    "checkpoint": lambda run: lambda g, x: checkpoint(run, g, x, use_reentrant=False),
    "checkpoint_reentrant": lambda run: lambda g, x: checkpoint(run, g, x, use_reentrant=True),
    "autocast": lambda run: within(torch.autocast("cpu", torch.bfloat16), run),
    "anomaly": lambda run: within(torch.autograd.set_detect_anomaly(True), run),
}
PLAIN = {
    "in_place": lambda out: functional.leaky_relu(out * 3 + 1, 0.1),
    "through_a_view": lambda out: written_at(out.clone()),
}


def within(mode, run):
    def call(graph, rows):
        with mode:
            return run(graph, rows)

    return call


def written_at(out):
    out[:1] += 2
    return out


@pytest.mark.mpi(2)
@pytest.mark.filterwarnings("ignore:Anomaly Detection")
@pytest.mark.parametrize("mode", MODES)
def test_an_operator_gives_the_same_in_a_mode(comm, graph, mode):
    for name, run in OPERATORS.items():
        if name in NEED_RESULT and mode in PLAIN:
            with pytest.raises(RuntimeError, match="inplace operation"):
                results(graph, MODES[mode](run))
            continue
        graph.step = 1
        expected = results(graph, run, PLAIN.get(mode, lambda out: out))
        graph.step = 1
        assert_same(results(graph, MODES[mode](run)), expected)


@pytest.mark.mpi(2)
def test_a_backward_pass_runs_twice_with_retain_graph(comm, graph):
    def twice(loss):
        loss.backward(retain_graph=True)
        loss.backward()

    for name, run in OPERATORS.items():
        if name == "recompute":
            with pytest.raises(RunError, match="runs its backward pass once"):
                results(graph, run, backward=twice)
            continue
        graph.step = 1
        out, *grads = results(graph, run)
        graph.step = 1
        assert_same(results(graph, run, backward=twice), [out, *(2 * grad for grad in grads)])


@pytest.mark.mpi(2)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients_results_are_the_same_and_may_be_written_to(comm, graph, mode):
    for run in OPERATORS.values():
        graph.step = 1
        expected = run(graph, rows_of(graph)).detach().clone()
        rows = rows_of(graph)
        for _ in range(3):  # what does not change is kept from the second time on
            graph.step = 1
            with mode():
                found = run(graph, rows)
                torch.testing.assert_close(found, expected, rtol=0, atol=0)
                found.mul_(2)
        graph.step = 1
        with mode():
            made_inside = run(graph, rows * 1)
        torch.testing.assert_close(made_inside, expected, rtol=0, atol=0)
        made = run(graph, rows).detach() * BIAS.sum()  # in training again
        assert made.requires_grad


@pytest.mark.mpi(1)
@pytest.mark.parametrize("name", OPERATORS)
def test_gradcheck_agrees(comm, graph, name):
    if name in ("recompute", "dropout", "convolve_relu", "attend_relu"):
        pytest.skip("runs once, or draws another mask at each call")
    out = OPERATORS[name](graph, rows_of(graph))
    if not out.numel():
        return
    rows = rows_of(graph).requires_grad_()
    assert torch.autograd.gradcheck(lambda rows: OPERATORS[name](graph, rows), rows, fast_mode=True)


@pytest.mark.mpi(2)
def test_a_second_derivative_is_refused_in_one_line(comm, graph):
    for name, run in OPERATORS.items():
        if name == "relu":
            continue  # torch's own, or linear where it lets through: its derivative is known
        rows = rows_of(graph).requires_grad_()
        (grad,) = torch.autograd.grad(weighted(run(graph, rows)), rows, create_graph=True)
        with pytest.raises(RunError, match="no gradient of its own"):
            grad.square().sum().backward()


@pytest.mark.mpi(1)
@pytest.mark.parametrize("transform", [torch.func.grad, torch.func.jacrev, torch.func.vmap])
def test_transforms_of_torch_func_are_refused_in_one_line(comm, graph, transform):
    for name, run in OPERATORS.items():
        if name == "gather_rows_at":
            continue  # torch's own index_select on one rank
        rows = rows_of(graph)
        rows = torch.stack([rows, rows]) if transform is torch.func.vmap else rows
        with pytest.raises(RunError, match=r"torch\.func"):
            transform(lambda rows, run=run: run(graph, rows).sum())(rows)


@pytest.mark.mpi(2)
def test_written_to_inputs_are_refused_as_torch_refuses_them(comm, graph):
    def write_first(run):
        def call(graph, rows):
            kept = rows * 1
            out = run(graph, kept)
            kept.add_(1)
            return out

        return call

    for name in ("convolve", "convolve_narrow", "attend", "spmm_weighted", "pair_dots", "recompute"):
        with pytest.raises(RuntimeError, match=r"inplace|out of place"):
            results(graph, write_first(OPERATORS[name]))


@pytest.mark.mpi(2)
def test_what_cannot_be_repeated_is_refused(comm):
    graph = dist_graph(random_graph(3), comm, algorithm="cd-2")
    for reentrant in (False, True):
        graph.step += 1
        rows = rows_of(graph).requires_grad_()
        with pytest.raises(RunError, match=r"checkpoint repeats exchanges"):
            run = lambda rows: ops.spmm(graph, rows).exp()  # noqa: E731 - what is saved for exp is made again
            weighted(checkpoint(run, rows, use_reentrant=reentrant)).backward()
    graph.drain()


@pytest.mark.mpi(2)
def test_a_copy_of_a_model_runs_on_the_same_graph(comm, graph):
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.BatchNorm1d(WIDTH), torch.nn.Dropout(0.5))
    model = dnn.distribute(model.double(), graph)
    copied = copy.deepcopy(model)
    assert copied[2].graph is graph
    graph.step = 1
    expected = model(rows_of(graph))
    graph.step = 1
    assert torch.equal(copied(rows_of(graph)), expected)
    assert torch.equal(copy.deepcopy(graph.train_mask), graph.train_mask)


@pytest.mark.mpi(1)
def test_parameters_may_be_swapped_for_a_call(comm, graph):
    layer = dnn.SAGEConv(WIDTH, 3).double()
    other = {name: torch.ones_like(one).requires_grad_() for name, one in layer.named_parameters()}
    torch.func.functional_call(layer, other, (graph, rows_of(graph))).sum().backward()
    assert all(one.grad is not None for one in other.values())
    assert all(one.grad is None for one in layer.parameters())
