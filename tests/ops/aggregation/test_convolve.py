"""A convolution or attention with what follows it, against dense torch on any number of ranks: rows and gradients."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cut_graphs import dense_adjacency, dist_graph, gather_rows, random_graph

from distgnn import ops
from distgnn.comm import sum_over_ranks
from distgnn.kernels.attention.attention import PARTS
from distgnn.ops.aggregation.convolve import Plan, choose_plan
from distgnn.ops.attention.attend import KEPT_COLUMNS, KEPT_NARROW
from distgnn.ops.rowwise.chain import enter, leave

CLOSE = {"float64": {"rtol": 1e-9, "atol": 1e-10}, "float32": {"rtol": 1e-3, "atol": 1e-4}}  # sums in another order
HEADS = 4


def leaves(width_in: int, width_out: int, num_nodes: int, seed: int) -> dict[str, torch.Tensor]:
    random = torch.Generator().manual_seed(seed)
    shapes = {
        "feats": (num_nodes, width_in),
        "neigh": (width_in, width_out),
        "own": (width_in, width_out),
        "attn": (2, width_out),
        "bias": (width_out,),
        "gamma": (width_out,),
        "beta": (width_out,),
        "loss": (num_nodes, width_out),
    }
    return {name: torch.randn(*shape, generator=random, dtype=torch.float64) for name, shape in shapes.items()}


def finished(z, values, norm: bool, mask) -> torch.Tensor:
    z = z + values["bias"]
    if norm:
        z = torch.nn.functional.layer_norm(z, z.shape[1:], values["gamma"], values["beta"])
    return torch.relu(z) * mask


def dense_attention(arcs, values) -> torch.Tensor:
    rows = (values["feats"] @ values["neigh"]).view(len(arcs), HEADS, -1)
    left, right = ((rows * attn.view(HEADS, -1)).sum(2) for attn in values["attn"])
    logits = torch.nn.functional.leaky_relu(left[None] + right[:, None], 0.2)
    powers = (logits - logits.detach().max()).exp() * arcs[:, :, None]
    shares = powers / powers.sum(1, keepdim=True).clamp(min=1e-300)
    return torch.einsum("vuh,uhf->vhf", shares, rows).flatten(1)


def compare(comm, run, reference, widths, norm: bool, constant: bool, seed: int = 0, dtype: str = "float64"):
    """`run(graph, values, epilogue, norm)` on ranks against `reference(arcs, values)` on one, with gradients."""
    data = random_graph(seed)
    graph = dist_graph(data, comm, dtype=dtype)
    whole = leaves(*widths, data.num_nodes, seed)
    names = [name for name in whole if name != "loss" and not (constant and name == "feats")]
    mine = {name: value.clone().to(graph.dtype) for name, value in whole.items()}
    for name in ("feats", "loss"):
        mine[name] = mine[name][graph.owned_ids].clone()
    for values in (whole, mine):
        for name in names:
            values[name].requires_grad_()
    epilogue = ops.relu_dropout(graph, 0.4, site=5)
    out = run(graph, mine, epilogue, (mine["gamma"], mine["beta"]) if norm else None)
    (out * mine["loss"]).sum().backward()
    mask = torch.from_numpy(gather_rows(graph, ops.dropout(graph, torch.ones_like(mine["loss"]), 0.4, 5)))
    expected = finished(reference(torch.from_numpy(dense_adjacency(data)), whole), whole, norm, mask)
    (expected * whole["loss"]).sum().backward()
    np.testing.assert_allclose(gather_rows(graph, out.detach()), expected.detach().numpy(), **CLOSE[dtype])
    for name in names:
        if whole[name].grad is None:
            assert mine[name].grad is None, name
            continue
        grad = mine[name].grad.numpy()
        grad = gather_rows(graph, grad) if name == "feats" else sum_over_ranks(comm, grad)
        np.testing.assert_allclose(grad, whole[name].grad.numpy(), err_msg=name, **CLOSE[dtype])


@pytest.mark.mpi(3)
@pytest.mark.parametrize("widths", [(4, 8), (8, 8), (8, 4)], ids=["widens", "equal", "narrows"])
@pytest.mark.parametrize("norm", [False, True], ids=["bare", "norm"])
@pytest.mark.parametrize("constant", [False, True], ids=["hidden", "constant"])
def test_convolution_against_dense_torch(comm, widths, norm, constant):
    """Products of float32 rows are a kernel of ours, of float64 rows torch's."""
    dtype = "float64" if norm else "float32"

    def run(graph, values, epilogue, parameters):
        spec = ops.ConvSpec((None, graph.degree_scale("in", -1)), None, epilogue)
        weights = values["neigh"], values["own"], values["bias"]
        return leave(ops.convolve(graph, enter(graph, values["feats"]), *weights, spec, parameters), alone=True)

    def reference(arcs, values):
        mean = arcs / arcs.sum(1, keepdim=True).clamp(min=1)
        return values["feats"] @ values["own"] + mean @ values["feats"] @ values["neigh"]

    compare(comm, run, reference, widths, norm, constant, dtype=dtype)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("norm", [False, True], ids=["bare", "norm"])
@pytest.mark.parametrize(
    ("columns", "constant"), [(11, False), (11, True), (KEPT_COLUMNS, False)], ids=["hidden", "constant", "kept"]
)
def test_attention_against_dense_torch(comm, norm, columns, constant):
    def run(graph, values, epilogue, parameters):
        weights, heads = (values["neigh"], values["attn"], values["bias"]), ops.Heads(HEADS, 0.2, epilogue)
        return leave(ops.attend(graph, enter(graph, values["feats"]), *weights, heads, parameters), alone=True)

    compare(comm, run, dense_attention, (columns, 8), norm, constant)


@pytest.mark.mpi(2)
@pytest.mark.parametrize(  # the input's gradient fits where z and r were up to 16
    ("columns", "dtype"), [(11, torch.float64), (3, torch.float64), (16, torch.float32), (17, torch.float64)]
)
def test_mean_over_heads(comm, columns, dtype):
    """The same function of the heads' own results, forward and backward."""
    graph, found = dist_graph(random_graph(), comm), []
    torch.manual_seed(0)
    start = [torch.randn(shape) for shape in ((graph.num_owned, columns), (columns, 8), (2, 8), (8,))]
    for mean in (True, False):
        leaves = [value.to(dtype, copy=True).requires_grad_() for value in start]
        out = ops.attend(graph, *leaves, ops.Heads(HEADS, mean=mean))
        out = out if mean else out.view(len(out), HEADS, -1).mean(1)
        found.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    torch.testing.assert_close(*found, **({} if dtype == torch.float64 else CLOSE["float32"]))


@pytest.mark.mpi(1)
@pytest.mark.parametrize(
    ("mean", "columns", "width", "made", "room", "dtype"),
    [
        (False, 8, 8, [8], True, torch.float64),
        (True, 8, 8, [], True, torch.float64),
        (True, 90, 64, [], False, torch.float64),
        (False, KEPT_COLUMNS, 8, [KEPT_COLUMNS], True, torch.float64),
        (False, KEPT_NARROW, 8, [KEPT_NARROW], True, torch.bfloat16),
    ],
    ids=["again", "mean", "mean of wide", "kept", "kept narrow"],
)
def test_attention_backward_has_one_array_of_rows_of_its_own(
    comm, mean, columns, width, made, room, dtype, monkeypatch
):
    """The gradient of projected rows is written over them, that of equally wide input over it. Projected rows are made
    again, but of a mean over heads kept: there nothing is made, as the input's gradient has the place of both. Those of
    wide input are kept too: there the input's gradient is what is made."""
    graph, found = dist_graph(random_graph(), comm), []
    torch.manual_seed(0)
    shapes = (graph.num_owned, columns), (columns, width), (2, width), (width,)
    leaves = [torch.randn(shape, dtype=torch.promote_types(dtype, torch.float32)) for shape in shapes]
    leaves[0] = leaves[0].to(dtype)
    out = ops.attend(graph, *(leaf.requires_grad_() for leaf in leaves), ops.Heads(HEADS, mean=mean))
    grad = torch.randn_like(out)
    kept, empty = grad.clone(), graph.buffers.empty
    monkeypatch.setattr(graph.buffers, "empty", lambda *arguments: found.append(arguments) or empty(*arguments))
    out.backward(grad)
    sums = PARTS * graph.num_owned, HEADS, torch.promote_types(dtype, torch.float32)  # of a few columns
    expected = [*((graph.num_owned, one, dtype) for one in made), *([sums] if room else [])]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert torch.equal(grad, kept)


@pytest.mark.mpi(1)
@pytest.mark.parametrize("activation", [True, False])  # nothing between the caller's gradient and the products
def test_a_gradient_that_others_see_is_not_written_over(comm, activation):
    graph = dist_graph(random_graph(), comm)
    feats = torch.randn(graph.num_owned, 8, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(8, 8, dtype=torch.float64, requires_grad=True)
    spec = ops.ConvSpec((None, None), None, *([ops.relu_dropout(graph)] if activation else []))
    out = ops.convolve(graph, feats, weight, None, None, spec)
    grad = torch.randn_like(out)
    kept = grad.clone()
    out.backward(grad)
    assert torch.equal(grad, kept)
    with pytest.raises(RuntimeError, match="second time"):
        out.backward(grad)


@pytest.mark.mpi(3)
def test_late_rows_have_the_weight_gradient_of_what_was_used(comm):
    """Equal widths under cd-r: (A x)' g of the A x that the forward pass used, not x' A' g of other epochs' rows."""
    graph = dist_graph(random_graph(2), comm, algorithm="cd-2", warmup_epochs=1)
    for epoch in range(5):
        graph.step = epoch
        torch.manual_seed(10 * epoch + comm.rank)
        feats = torch.randn(graph.num_owned, 8, dtype=torch.float64, requires_grad=True)
        weight = torch.eye(8, dtype=torch.float64, requires_grad=True)  # so that the result is A x
        out = ops.convolve(graph, feats, weight, None, None, ops.ConvSpec((None, None)))
        used, grad = out.detach().clone(), torch.randn(graph.num_owned, 8, dtype=torch.float64)
        out.backward(grad)
        torch.testing.assert_close(weight.grad, used.T @ grad)
    graph.drain()


@pytest.mark.parametrize(
    ("widths", "settings", "plan"),
    [
        ((5, 9), {"needs_grad": False}, Plan.CONSTANT),
        ((9, 5), {"needs_grad": False}, Plan.PRODUCT_FIRST),
        ((9, 5), {"needs_grad": False, "is_input": True}, Plan.CONSTANT),
        ((9, 5), {"needs_grad": False, "transform_first": False}, Plan.CONSTANT),
        ((9, 5), {}, Plan.PRODUCT_FIRST),
        ((9, 5), {"transform_first": False}, Plan.KEEP_AGGREGATE),
        ((5, 9), {}, Plan.KEEP_AGGREGATE),
        ((5, 5), {"exact": False}, Plan.KEEP_AGGREGATE),
        ((5, 5), {"transform_first": False}, Plan.KEEP_AGGREGATE),
        ((5, 5), {}, Plan.AGGREGATE_ONLY),
    ],
)
def test_plans_are_those_of_the_table(widths, settings, plan):
    settings = {"needs_grad": True, "is_input": False, "transform_first": True, "exact": True} | settings
    graph = SimpleNamespace(
        transform_first=settings["transform_first"],
        narrows=lambda wide, narrow: settings["transform_first"] and wide > narrow,
        is_input=lambda rows: settings["is_input"],
        aggregates_exactly=settings["exact"],
    )
    feats = torch.zeros(3, widths[0], requires_grad=settings["needs_grad"])
    assert choose_plan(graph, feats, *widths) is plan
