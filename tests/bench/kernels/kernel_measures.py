"""The operations of bench_kernels.py: for each, functions that are timed in turn.

A measure takes (case, width, repeats) and returns the seconds of each call by column, or None where it does not apply.
Columns:

    dgl, torch, torch_sparse, torch_geometric    the peers
    f32, bf16                                    ours: float32 rows, bfloat16 rows summed in float32
    …_transposed                                 over the reversed arcs (the backward pass)
    …_one_thread                                 on one thread
    gather                                       the same rows read in the same order into 1,024 sums

Rows lie in torch tensors (aligned, in large pages where the system has them), for every contender the same ones.
"""

import functools
import warnings
from typing import Any

import numpy as np
from kernel_cases import interleaved

from distgnn import kernels
from distgnn.system.other_libraries import import_dgl

GATHER_ROWS = 1024
LARGEST_SCATTER = 1 << 31  # bytes of arc rows that torch_geometric's gather-scatter may store


def one_thread(function: Any) -> Any:
    """The same call on one of our threads."""

    @functools.wraps(function)
    def call() -> Any:
        before = kernels.get_num_threads()
        kernels.set_num_threads(1)
        try:
            return function()
        finally:
            kernels.set_num_threads(before)

    return call


def measure_sum(case: Any, width: Any, repeats: Any) -> Any:
    """copy_u_sum, also transposed; float32 and bfloat16 rows."""
    tensor = _tensor(case.num_nodes, width)
    feats, copy_u_sum = tensor.numpy(), import_dgl().ops.copy_u_sum
    bits = _bfloat16(feats)
    matrix = _torch_csr(case)
    few_rows = np.linspace(0, len(case.stored[1]), GATHER_ROWS + 1).astype(np.int64)
    stored: Any = case.stored[:2]
    back: Any = case.transposed[:2]
    functions = {
        "dgl": lambda: copy_u_sum(case.dgl_graph("stored"), tensor),
        "f32": lambda: kernels.spmm(*stored, feats),
        "gather": lambda: kernels.spmm(few_rows, stored[1], feats),
        "bf16": lambda: kernels.spmm(*stored, bits),
        "dgl_transposed": lambda: copy_u_sum(case.dgl_graph("transposed"), tensor),
        "f32_transposed": lambda: kernels.spmm(*back, feats),
        "f32_one_thread": one_thread(lambda: kernels.spmm(*stored, feats)),
        "torch_sparse": lambda: matrix @ tensor,
        **_torch_geometric(case, tensor),
    }
    size = kernels.block_rows(case.num_nodes, case.num_nodes, len(stored[1]), 4 * width)
    if size:  # where a row has many arcs in each block of sources
        blocked = kernels.block_csr(stored[0], stored[1], case.num_nodes, size)
        functions["f32_blocked"] = lambda: kernels.spmm_blocked(blocked, feats)
    return interleaved(functions, repeats)


def measure_weighted(case: Any, width: Any, repeats: Any) -> Any:
    """u_mul_e_sum with one weight per arc."""
    tensor, weight = _tensor(case.num_nodes, width), _tensor(len(case.stored[1]), 1)[:, 0]
    dgl, call = import_dgl(), lambda: kernels.spmm(*case.stored[:2], tensor.numpy(), edge_weight=weight.numpy())
    functions = {
        "dgl": lambda: dgl.ops.u_mul_e_sum(case.dgl_graph("stored"), tensor, weight),
        "f32": call,
        "f32_one_thread": one_thread(call),
    }
    return interleaved(functions, repeats)


def measure_max(case: Any, width: Any, repeats: Any) -> Any:
    """copy_u_max, with winners on both sides (DGL computes them too)."""
    tensor, dgl = _tensor(case.num_nodes, width), import_dgl()
    feats, bits = tensor.numpy(), _bfloat16(tensor.numpy())
    functions = {
        "dgl": lambda: dgl.ops.copy_u_max(case.dgl_graph("stored"), tensor),
        "f32": lambda: kernels.spmm(*case.stored[:2], feats, "max"),
        "f32_without_winners": lambda: kernels.spmm(*case.stored[:2], feats, "max", winners=False),
        "bf16": lambda: kernels.spmm(*case.stored[:2], bits, "max"),
        "f32_one_thread": one_thread(lambda: kernels.spmm(*case.stored[:2], feats, "max")),
    }
    return interleaved(functions, repeats)


def measure_attention(case: Any, width: Any, repeats: Any) -> Any:
    """GATConv's aggregation part, 4 heads, forward and backward; DGL's stores its messages' weights per arc."""
    if width % 4:
        return None
    import torch

    dgl, heads = import_dgl(), 4
    shapes = (case.num_nodes, heads, width // heads), (case.num_nodes, heads, 1), (case.num_nodes, heads, 1)
    leaves = [torch.randn(shape).requires_grad_() for shape in shapes]
    gradient, graph = torch.ones(shapes[0]), case.dgl_graph("stored")
    feats, source, target = (leaf.detach().numpy() for leaf in leaves)
    source, target = source[..., 0], target[..., 0]

    def dgl_attention() -> Any:
        scores = torch.nn.functional.leaky_relu(dgl.ops.u_add_v(graph, leaves[1], leaves[2]), 0.2)
        out = dgl.ops.u_mul_e_sum(graph, leaves[0], dgl.ops.edge_softmax(graph, scores))
        return torch.autograd.grad(out, leaves, gradient)

    def ours() -> Any:
        out, top, sums = kernels.attention(*case.stored[:2], feats, source, target)
        dots = kernels.head_dots(gradient.numpy().reshape(len(out), width), out.reshape(len(out), width), heads)
        return kernels.attention_backward(
            *case.transposed[:2], feats, source, target, gradient.numpy(), top, sums, dots
        )

    functions = {
        "dgl": dgl_attention,
        "f32": ours,
        "f32_forward": lambda: kernels.attention(*case.stored[:2], feats, source, target),
        "f32_one_thread": one_thread(ours),
    }
    return interleaved(functions, repeats)


def measure_activation(case: Any, width: Any, repeats: Any) -> Any:
    """Bias, ReLU and dropout, forward and backward, against torch's composition; the graph only gives the rows."""
    import torch

    feats, bias, gradient = (_tensor(rows, width) for rows in (case.num_nodes, 1, case.num_nodes))
    leaves = [feats.clone().requires_grad_(), bias[0].clone().requires_grad_()]
    options: dict[str, Any] = {"p": 0.5, "row_ids": np.arange(case.num_nodes), "seed": 1, "step": 2, "site": 3}

    def composed() -> Any:
        out = torch.nn.functional.dropout(torch.relu(leaves[0] + leaves[1]), 0.5)
        return torch.autograd.grad(out, leaves, gradient)

    def fused() -> Any:
        out, _ = kernels.activate(feats.numpy(), bias[0].numpy(), **options)
        return kernels.activate_backward(gradient.numpy(), out, **options)

    in_place, grad_in_place = feats.clone().numpy(), gradient.clone().numpy()

    def fused_in_place() -> Any:
        out, _ = kernels.activate(in_place, bias[0].numpy(), out=in_place, **options)
        return kernels.activate_backward(grad_in_place, out, grad_feats=grad_in_place, **options)

    functions = {"torch": composed, "f32": fused, "f32_in_place": fused_in_place, "f32_one_thread": one_thread(fused)}
    return interleaved(functions, repeats)


MEASURE = {
    "sum": measure_sum,
    "weighted": measure_weighted,
    "max": measure_max,
    "attention": measure_attention,
    "activation": measure_activation,
}


def _tensor(num_rows: Any, width: Any) -> Any:
    import torch

    return torch.randn(num_rows, width, generator=torch.Generator().manual_seed(0))


def _bfloat16(feats: Any) -> Any:
    return kernels.pack_rows(feats, np.arange(len(feats)), kernels.empty_rows(feats.shape, np.uint16))


def _torch_csr(case: Any) -> Any:
    """torch warns that its CSR tensors are in beta."""
    import torch

    indptr, indices = (torch.from_numpy(a.astype(np.int64)) for a in case.stored[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(indptr, indices, torch.ones(len(indices)), (case.num_nodes, case.num_nodes))


def _torch_geometric(case: Any, tensor: Any) -> Any:
    """Its default path gathers and scatters E rows; torch_sparse above is the matrix it can use instead."""
    try:
        from torch_geometric.nn import SimpleConv
    except ImportError:
        return {}
    if len(case.stored[1]) * tensor.shape[1] * 4 > LARGEST_SCATTER:
        return {}
    import torch

    rows = np.repeat(np.arange(case.num_nodes), np.diff(case.stored[0]))
    edges = torch.from_numpy(np.stack([case.stored[1].astype(np.int64), rows]))
    layer = SimpleConv(aggr="sum")
    return {"torch_geometric": lambda: layer(tensor, edges)}
