"""The graphs and operations of `distgnn bench-kernels`: for each operation, functions that are timed in turn.

A measure takes (case, width, repeats) and returns seconds by column, or None where it does not apply. Column names:
dgl or torch is the peer, f32 ours on the same order; `…_our_order` both on the order that `kernels.vertex_order` gives.
"""

import time
import warnings
from dataclasses import dataclass

import numpy as np

from distgnn import kernels

GRAPHS = {
    "rmat": ("rmat:scale=18,edge_factor=32,feats=0,classes=0", "stored"),
    "dense": ("communities:nodes=60000,communities=60,avg_degree=300,feats=1,mixing=0.5", "both"),
    "communities": ("communities:nodes=500000,communities=2000,avg_degree=40,feats=1,mixing=0.3", "both"),
    "arxiv": ("ogbn-arxiv", "both"),
}
WIDTHS = (16, 47, 100, 128, 256, 602)
LARGEST_SCATTER = 1 << 31  # bytes of arc rows that torch_geometric's gather-scatter may store


@dataclass
class Case:
    """One graph in two orders, with DGL's graphs of both."""

    name: str
    num_nodes: int
    stored: tuple
    ours: tuple
    order: np.ndarray
    order_seconds: float
    transposed: tuple


def interleaved(functions, repeats):
    """Median seconds of each named function, run in turn; the first turn (compilation, page faults) is left out."""
    seconds = {name: [] for name in functions}
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            result = function()
            seconds[name].append(time.perf_counter() - start)
            del result
    return {name: float(np.median(values[1:])) for name, values in seconds.items()}


def make_case(name, order="cluster", data_root=None):
    """Load a graph and put it into both orders."""
    from distgnn.datasets import load_graph

    source, arcs = GRAPHS[name]
    graph = load_graph(source, data_root)
    src, dst = graph.edges[:, 0].astype(np.int32), graph.edges[:, 1].astype(np.int32)
    if arcs == "both":
        src, dst = np.concatenate([src, dst]), np.concatenate([dst, src])
    stored = kernels.csr_from_edges(src, dst, graph.num_nodes)
    start = time.perf_counter()
    chosen = kernels.vertex_order(stored[0], stored[1], order)
    seconds = time.perf_counter() - start
    ours = kernels.permute_csr(stored[0], stored[1], chosen)
    transposed = kernels.transpose_csr(stored[0], stored[1], graph.num_nodes)
    return Case(name, graph.num_nodes, stored, ours, chosen, seconds, transposed)


def dgl_graph(csr, num_nodes):
    """DGL's graph with the arcs of a CSR by target, all formats made."""
    from distgnn.dgl_import import import_dgl

    dgl = import_dgl()
    dst = np.repeat(np.arange(num_nodes, dtype=np.int32), np.diff(csr[0]))
    graph = dgl.graph((np.ascontiguousarray(csr[1]), dst), num_nodes=num_nodes).formats(["coo", "csr", "csc"])
    graph.create_formats_()
    return dgl, graph


def _rows(num_rows, width):
    return np.random.default_rng(0).standard_normal((num_rows, width), np.float32)


def _bfloat16(feats):
    return kernels.pack_rows(feats, np.arange(len(feats)), np.empty(feats.shape, np.uint16))


def measure_sum(case, width, repeats):
    """copy_u_sum in both orders and transposed; float32 and bfloat16 rows."""
    import torch

    feats = _rows(case.num_nodes, width)
    bits, tensor = _bfloat16(feats), torch.from_numpy(feats)
    dgl, stored = dgl_graph(case.stored, case.num_nodes)
    _, ours = dgl_graph(case.ours, case.num_nodes)
    _, back = dgl_graph(case.transposed, case.num_nodes)
    matrix = _torch_csr(case)
    few_rows = np.linspace(0, len(case.stored[1]), 1025).astype(np.int64)
    functions = {
        "dgl": lambda: dgl.ops.copy_u_sum(stored, tensor),
        "gather": lambda: kernels.spmm(few_rows, case.stored[1], feats),
        "dgl_our_order": lambda: dgl.ops.copy_u_sum(ours, tensor),
        "dgl_transposed": lambda: dgl.ops.copy_u_sum(back, tensor),
        "torch_sparse": lambda: matrix @ tensor,
        "f32": lambda: kernels.spmm(*case.stored[:2], feats),
        "f32_our_order": lambda: kernels.spmm(*case.ours[:2], feats),
        "f32_transposed": lambda: kernels.spmm(*case.transposed[:2], feats),
        "bf16": lambda: kernels.spmm(*case.stored[:2], bits),
        "bf16_our_order": lambda: kernels.spmm(*case.ours[:2], bits),
        **_torch_geometric(case, tensor),
    }
    if case.name == "dense":
        block_rows = max(256, (8 << 20) // (4 * min(width, 256)))
        blocked = kernels.block_csr(*case.stored[:2], case.num_nodes, block_rows)
        functions["f32_blocked"] = lambda: kernels.spmm_blocked(blocked, feats)
    return interleaved(functions, repeats)


def _torch_csr(case):
    """torch warns that its CSR tensors are in beta."""
    import torch

    indptr, indices = (torch.from_numpy(a.astype(np.int64)) for a in case.stored[:2])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.sparse_csr_tensor(indptr, indices, torch.ones(len(indices)), (case.num_nodes, case.num_nodes))


def _torch_geometric(case, tensor):
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


def measure_weighted(case, width, repeats):
    """u_mul_e_sum with one weight per arc."""
    import torch

    feats, weight = _rows(case.num_nodes, width), _rows(len(case.stored[1]), 1)[:, 0]
    dgl, stored = dgl_graph(case.stored, case.num_nodes)
    tensor, tensor_weight = torch.from_numpy(feats), torch.from_numpy(weight)
    functions = {
        "dgl": lambda: dgl.ops.u_mul_e_sum(stored, tensor, tensor_weight),
        "f32": lambda: kernels.spmm(*case.stored[:2], feats, edge_weight=weight),
    }
    return interleaved(functions, max(3, repeats // 2))


def measure_max(case, width, repeats):
    """copy_u_max, with winners on both sides (DGL computes them too)."""
    import torch

    feats = _rows(case.num_nodes, width)
    dgl, stored = dgl_graph(case.stored, case.num_nodes)
    tensor = torch.from_numpy(feats)
    functions = {
        "dgl": lambda: dgl.ops.copy_u_max(stored, tensor),
        "f32": lambda: kernels.spmm(*case.stored[:2], feats, "max"),
        "f32_our_order": lambda: kernels.spmm(*case.ours[:2], feats, "max"),
    }
    return interleaved(functions, repeats)


def measure_softmax(case, width, repeats):
    """edge_softmax of 8 heads; once per graph."""
    if width != WIDTHS[0]:
        return None
    import torch

    scores = _rows(len(case.stored[1]), 8)
    dgl, stored = dgl_graph(case.stored, case.num_nodes)
    tensor = torch.from_numpy(scores)[..., None]
    functions = {
        "dgl": lambda: dgl.ops.edge_softmax(stored, tensor),
        "f32": lambda: kernels.edge_softmax(case.stored[0], scores),
    }
    return interleaved(functions, repeats)


def measure_attention(case, width, repeats):
    """GATConv's aggregation part, 4 heads, forward and backward; DGL's stores its messages' weights per arc."""
    if width % 4:
        return None
    import torch

    heads = 4
    feats = _rows(case.num_nodes, width).reshape(-1, heads, width // heads)
    source, target = _rows(case.num_nodes, heads), _rows(case.num_nodes, heads) / 2
    dgl, stored = dgl_graph(case.stored, case.num_nodes)
    leaves = [torch.from_numpy(a).requires_grad_() for a in (feats, source[..., None], target[..., None])]
    gradient = torch.ones(feats.shape)

    def dgl_attention():
        scores = torch.nn.functional.leaky_relu(dgl.ops.u_add_v(stored, leaves[1], leaves[2]), 0.2)
        out = dgl.ops.u_mul_e_sum(stored, leaves[0], dgl.ops.edge_softmax(stored, scores))
        return torch.autograd.grad(out, leaves, gradient)

    def ours():
        out, top, sums = kernels.attention(*case.stored[:2], feats, source, target)
        dots = np.einsum("rhf,rhf->rh", gradient.numpy(), out)
        return kernels.attention_backward(
            case.stored[:2], case.transposed[:2], feats, source, target, gradient.numpy(), top, sums, dots
        )

    return interleaved({"dgl": dgl_attention, "f32": ours}, max(3, repeats // 2))


def measure_activation(case, width, repeats):
    """Bias, ReLU and dropout, forward and backward, against torch's composition; the graph only gives the rows."""
    import torch

    feats, bias, ids = _rows(case.num_nodes, width), _rows(1, width)[0], np.arange(case.num_nodes)
    gradient = _rows(case.num_nodes, width)
    leaves = [torch.from_numpy(feats).requires_grad_(), torch.from_numpy(bias).requires_grad_()]
    torch_gradient = torch.from_numpy(gradient)
    options = {"p": 0.5, "row_ids": ids, "seed": 1, "step": 2, "site": 3}

    def composed():
        out = torch.nn.functional.dropout(torch.relu(leaves[0] + leaves[1]), 0.5)
        return torch.autograd.grad(out, leaves, torch_gradient)

    def fused():
        out, _ = kernels.activate(feats, bias, **options)
        return kernels.activate_backward(gradient, out, **options)

    in_place = feats.copy()

    def fused_in_place():
        out, _ = kernels.activate(in_place, bias, out=in_place, **options)
        return kernels.activate_backward(gradient, out, grad_feats=gradient, **options)

    return interleaved({"torch": composed, "f32": fused, "f32_in_place": fused_in_place}, repeats)


MEASURE = {
    "sum": measure_sum,
    "weighted": measure_weighted,
    "max": measure_max,
    "softmax": measure_softmax,
    "attention": measure_attention,
    "activation": measure_activation,
}
