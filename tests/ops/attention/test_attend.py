"""Attention and what follows it against dense torch on any number of ranks, and the memory of its backward pass."""

import pytest
import torch
from cut_graphs import dist_graph, random_graph
from dense_layers import CLOSE, compare

from distgnn import ops
from distgnn.kernels.attention.attention import PARTS
from distgnn.ops.attention.attend import KEPT_COLUMNS, KEPT_NARROW
from distgnn.ops.rowwise.chain import enter, leave

HEADS = 4


def dense_attention(arcs, values) -> torch.Tensor:
    rows = (values["feats"] @ values["neigh"]).view(len(arcs), HEADS, -1)
    left, right = ((rows * attn.view(HEADS, -1)).sum(2) for attn in values["attn"])
    logits = torch.nn.functional.leaky_relu(left[None] + right[:, None], 0.2)
    powers = (logits - logits.detach().max()).exp() * arcs[:, :, None]
    shares = powers / powers.sum(1, keepdim=True).clamp(min=1e-300)
    return torch.einsum("vuh,uhf->vhf", shares, rows).flatten(1)


@pytest.mark.mpi(3)
@pytest.mark.parametrize("norm", [False, True], ids=["bare", "norm"])
@pytest.mark.parametrize(
    ("columns", "constant"), [(16, False), (16, True), (KEPT_COLUMNS, False)], ids=["hidden", "constant", "kept"]
)
def test_attention_against_dense_torch(comm, norm, columns, constant):
    def run(graph, values, epilogue, parameters):
        weights, heads = (values["neigh"], values["attn"], values["bias"]), ops.Heads(HEADS, 0.2, epilogue)
        return leave(ops.attend(graph, enter(graph, values["feats"]), *weights, heads, parameters), alone=True)

    compare(comm, run, dense_attention, (columns, 8), norm, constant)


@pytest.mark.mpi(2)
@pytest.mark.parametrize(  # the input's gradient fits where z and r were up to 16
    ("columns", "dtype"), [(16, torch.float64), (4, torch.float64), (16, torch.float32), (17, torch.float64)]
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
        (True, KEPT_COLUMNS, 64, [], False, torch.float64),
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
