"""spmm: aggregate source rows over all arcs of the whole graph, with its exact gradient.

y[v] = target_scale[v] * sum over arcs (u -> v) of edge_weight[arc] * source_scale[u] * x[u]

dx = the same aggregation over the transposed arcs, scales swapped
d edge_weight[arc] = target_scale[v] * source_scale[u] * <dy[v], x[u]>
"""

import torch

from distgnn.ops.aggregate import RowScale

FLOATS = (torch.float32, torch.float64)


def spmm(
    graph,
    feats: torch.Tensor,
    edge_weight: torch.Tensor | None = None,
    source_scale: RowScale | None = None,
    target_scale: RowScale | None = None,
) -> torch.Tensor:
    """Sum of source rows over the in-arcs of each vertex, over the whole graph.

    Collective: yes, and again in the backward pass.

    Args:
        graph: the DistGraph.
        feats: the model's rows (owned ones, or with update on copies all local ones), [O, ...], float32 or float64.
        edge_weight: one weight per local arc, [A], same dtype; may require gradients.
        source_scale, target_scale: factors per vertex (`graph.degree_scale`), applied inside the kernel.

    Returns:
        The same rows, shape and dtype of `feats`.

    Raises:
        ValueError: for a dtype or a row count that does not fit.

    Notes:
        Rows that need no gradient are looked up first: what was aggregated before is not aggregated again.
        Under a delayed algorithm, exchanges of a training step are delayed; what is kept, and what is computed
        without gradients (evaluation), is exact.
    """
    _check(graph, feats, edge_weight)
    rows = feats.reshape(len(feats), -1).contiguous() if feats.dim() != 2 or not feats.is_contiguous() else feats
    trainable = rows.requires_grad or (edge_weight is not None and edge_weight.requires_grad)
    scales, site = (source_scale, target_scale), graph.next_site()
    if trainable and torch.is_grad_enabled():
        return _Spmm.apply(rows, edge_weight, graph, *scales, site).view(feats.shape)

    def compute(keep: bool) -> torch.Tensor:
        return _forward(graph, rows, edge_weight, *scales, None if keep else site)[0]

    return graph.constants.get(rows, edge_weight, scales, compute).view(feats.shape)


def _check(graph, feats: torch.Tensor, edge_weight: torch.Tensor | None) -> None:
    if feats.dtype not in FLOATS:
        raise ValueError(f"rows are {feats.dtype}: aggregation takes float32 or float64")
    if len(feats) != graph.num_rows:
        raise ValueError(f"{len(feats)} rows for a part with {graph.num_rows} rows: give one row per vertex")
    if edge_weight is None:
        return
    if edge_weight.numel() != graph.num_edges():
        raise ValueError(f"edge_weight has shape {tuple(edge_weight.shape)}: expected {graph.num_edges()} local arcs")
    if edge_weight.dtype != feats.dtype:
        raise ValueError(f"edge_weight is {edge_weight.dtype}, rows are {feats.dtype}: give both the same dtype")


def _forward(graph, rows, edge_weight, source_scale, target_scale, site):
    weight = None if edge_weight is None else edge_weight.detach().reshape(-1).numpy()
    out, sources = graph.forward_arcs(rows.detach().numpy(), weight, source_scale, target_scale, site)
    return torch.from_numpy(out), sources


class _Spmm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, edge_weight, graph, source_scale, target_scale, site):
        out, sources = _forward(graph, rows, edge_weight, source_scale, target_scale, site)
        ctx.graph, ctx.scales, ctx.site = graph, (source_scale, target_scale), site
        weighted = edge_weight is not None and edge_weight.requires_grad
        ctx.sources = sources.copy() if weighted else None
        ctx.save_for_backward(rows if weighted else None, edge_weight)
        return out

    @staticmethod
    def backward(ctx, grad_out):
        rows, edge_weight = ctx.saved_tensors
        source_scale, target_scale = (None if scale is None else scale.transposed() for scale in ctx.scales)
        grads = grad_out.contiguous().numpy()
        weight = None if edge_weight is None else edge_weight.detach().reshape(-1).numpy()
        aggregate = ctx.graph.backward_arcs(weighted=weight is not None)
        grad_rows, target_grads = aggregate(grads, weight, target_scale, source_scale, ctx.site)
        grad_weight = None
        if ctx.needs_input_grad[1]:
            rows = rows.detach().numpy()
            dots = ctx.graph.forward_arcs.arc_dots(rows, ctx.sources, grads, target_grads, *ctx.scales)
            grad_weight = torch.from_numpy(dots).view(edge_weight.shape)
        return torch.from_numpy(grad_rows), grad_weight, None, None, None, None
