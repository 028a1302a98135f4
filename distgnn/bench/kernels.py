"""`distgnn bench-kernels`: our row kernels beside DGL 1.1.3, torch.sparse and torch_geometric, in turn in one run.

Each line of the table is one operation on one graph at one width. What is compared runs in turn, repeat by repeat;
medians are reported. DGL is timed on the stored vertex order and on ours. `share of copy` is the rate at which rows
are gathered (E · D · bytes / seconds) over the measured copy bandwidth (read + write); it exceeds 1 where caches help.
`share of gather` is the time of a bare gather of all arcs' rows into nothing (sum of each row, no output) over ours.
"""

import os
import platform
import time
from dataclasses import dataclass

import numpy as np

from distgnn import kernels
from distgnn.errors import InputError

GRAPHS = {
    "rmat": ("rmat:scale=18,edge_factor=32,feats=0,classes=0", "stored"),
    "dense": ("communities:nodes=60000,communities=60,avg_degree=300,feats=1,mixing=0.5", "both"),
    "communities": ("communities:nodes=500000,communities=2000,avg_degree=40,feats=1,mixing=0.3", "both"),
    "arxiv": ("ogbn-arxiv", "both"),
}
WIDTHS = (16, 47, 100, 128, 256, 602)
OPERATIONS = ("sum", "weighted", "max", "softmax", "attention", "activation")
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


def run(graphs=tuple(GRAPHS), widths=WIDTHS, operations=OPERATIONS, repeats=7, order="cluster", data_root=None):
    """Time operations on graphs.

    Args: names from GRAPHS, WIDTHS and OPERATIONS; repeats ≥ 2, of which the first is not counted; order: of
        `kernels.vertex_order`, or `tuned` for what `kernels.tune_order` picks.
    Returns: list of dict: graph, operation, width, threads, seconds by column, ratios, rates.
    """
    for name, known in ((graphs, GRAPHS), (operations, OPERATIONS)):
        unknown = [n for n in name if n not in known]
        if unknown:
            raise InputError(f"unknown {unknown[0]!r}: choose from {', '.join(known)}")
    import torch

    torch.set_num_threads(kernels.get_num_threads())
    kernels.keep_freed_memory()
    copy = copy_bandwidth()
    rows = []
    for name in graphs:
        case = make_case(name, order, data_root)
        for width in widths:
            for operation in operations:
                row = MEASURE[operation](case, width, repeats)
                if row:
                    rows.append(_finish(row, case, operation, width, copy))
    return rows


def machine():
    """What the numbers belong to."""
    return {"cpu": _cpu_name(), "cores": os.cpu_count(), "threads": kernels.get_num_threads(), "numpy": np.__version__}


def _cpu_name():
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


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


def copy_bandwidth(num_bytes=1 << 28):
    """Bytes read and written per second by torch's copy of a large tensor, on all threads."""
    import torch

    source, target = torch.ones(num_bytes // 4), torch.empty(num_bytes // 4)
    seconds = interleaved({"copy": lambda: target.copy_(source)}, 8)["copy"]
    return 2 * num_bytes / seconds


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
    matrix = torch.sparse_csr_tensor(
        *(torch.from_numpy(a.astype(np.int64)) for a in case.stored[:2]), torch.ones(len(case.stored[1])),
        (case.num_nodes, case.num_nodes), check_invariants=False,
    )  # fmt: skip
    functions = {
        "dgl": lambda: dgl.ops.copy_u_sum(stored, tensor),
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


def _finish(seconds, case, operation, width, copy):
    """Add ratios to DGL (or torch) and rates."""
    base = "torch" if operation == "activation" else "dgl"
    moved = len(case.stored[1]) * width * 4 if operation != "activation" else case.num_nodes * width * 4 * 5
    return {
        "graph": case.name,
        "operation": operation,
        "width": width,
        "threads": kernels.get_num_threads(),
        "seconds": seconds,
        "ratio": seconds[base] / seconds["f32"],
        "gigabytes_per_second": moved / seconds["f32"] / 1e9,
        "share_of_copy": moved / seconds["f32"] / copy,
        "order_seconds": case.order_seconds,
    }


def table(rows):
    """The rows as a rich table."""
    from rich.table import Table

    result = Table("graph", "operation", "D", "DGL / torch s", "ours s", "ratio", "GB/s", "of copy", "other columns")
    for row in rows:
        seconds = row["seconds"]
        base = seconds.get("dgl", seconds.get("torch"))
        others = {n: s for n, s in seconds.items() if n not in ("dgl", "torch", "f32")}
        result.add_row(
            row["graph"],
            row["operation"],
            str(row["width"]),
            f"{base:.4f}",
            f"{seconds['f32']:.4f}",
            f"{row['ratio']:.2f}",
            f"{row['gigabytes_per_second']:.1f}",
            f"{row['share_of_copy']:.0%}",
            ", ".join(f"{n} {s:.4f}" for n, s in others.items()),
        )
    return result
