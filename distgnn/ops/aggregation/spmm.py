"""spmm: aggregate source rows over all arcs of the whole graph, with its exact gradient.

y[v] = target_scale[v] * sum over arcs (u -> v) of edge_weight[arc] * source_scale[u] * x[u]  +  loops[v] * x[v]

dx = the same aggregation over the transposed arcs, scales swapped, and the same loops
d edge_weight[arc] = target_scale[v] * source_scale[u] * <dy[v], x[u]>
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from distgnn.ops.aggregation.aggregator import Aggregator, RowScale, Scales, Site
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.function import Function, GraphView, operator
from distgnn.ops.rowwise.products import Work
from distgnn.ops.rowwise.sparse_rows import dense

FLOATS = (torch.float32, torch.float64, torch.bfloat16)


@dataclass(frozen=True, eq=False)
class SelfLoops:
    """Factors [O] of each vertex's own row: an arc from it to itself that is not stored.

    Equal only to itself: kept aggregations are looked up by it. `as_arcs`: owned vertices (bool [O]) whose factor is
    the product of both scales, as that of an arc: arcs are made of them, so that no pass over the rows is spent.

    Example:
        >>> loops = dg.ops.SelfLoops(torch.ones(graph.num_owned))
        >>> ones = torch.ones(graph.num_owned, 1)
        >>> (dg.ops.spmm(graph, ones, loops=loops) - dg.ops.spmm(graph, ones)).max().item()
        1.0
    """

    factors: torch.Tensor
    as_arcs: np.ndarray | None = None

    @cached_property
    def _others(self) -> torch.Tensor:
        """Vertices with a factor that no arc is made of, int64."""
        return torch.from_numpy(np.flatnonzero((self.factors.numpy() != 0) & ~np.asarray(self.as_arcs)))

    def add(self, total: torch.Tensor, rows: torch.Tensor) -> None:
        """Add to `total` [O, D], in place, what comes over the loops."""
        total.addcmul_(self.factors[:, None].to(total.dtype), rows.to(total.dtype))

    def add_others(self, total: torch.Tensor, rows: torch.Tensor) -> None:
        if len(self._others):
            more = self.factors[self._others, None].to(total.dtype) * rows[self._others].to(total.dtype)
            total.index_add_(0, self._others, more)


@operator
def spmm(
    graph: GraphView,
    feats: torch.Tensor,
    edge_weight: torch.Tensor | None = None,
    source_scale: RowScale | None = None,
    target_scale: RowScale | None = None,
    loops: SelfLoops | None = None,
) -> torch.Tensor:
    """Sum of source rows over the in-arcs of each vertex, over the whole graph.

    Collective: yes, and again in the backward pass.

    Args:
        graph: the DistGraph.
        feats: the model's rows (owned ones, or with update on copies all local ones), [O, ...], float32, float64 or
            bfloat16 (summed in float32).
        edge_weight: one weight per local arc, [A], same dtype (float32 for bfloat16); may require gradients.
        source_scale, target_scale: factors per vertex (`graph.degree_scale`), applied inside the kernel.
        loops: factors of each vertex's own row, which is added.

    Returns:
        The same rows, shape and dtype of `feats`.

    Raises:
        ValueError: for a dtype or a row count that does not fit.

    Notes:
        Rows that need no gradient are looked up first: what was aggregated before is not aggregated again.
        Under a delayed algorithm, exchanges of a training step are delayed; what is kept, and what is computed
        without gradients (evaluation), is exact.

    Example:
        >>> ones = torch.ones(graph.num_nodes(), 1)
        >>> bool((dg.ops.spmm(graph, ones)[:, 0] == graph.in_degrees()).all())
        True
    """
    rows = feats = dense(feats)
    if feats.dtype not in FLOATS:
        raise ValueError(f"rows are {feats.dtype}: aggregation takes float32, float64 or bfloat16")
    if len(feats) != graph.num_rows:
        raise ValueError(f"{len(feats)} rows for a part with {graph.num_rows} rows: give one row per vertex")
    if edge_weight is not None and edge_weight.numel() != graph.num_edges():
        raise ValueError(f"edge_weight has shape {tuple(edge_weight.shape)}: expected {graph.num_edges()} local arcs")
    weight_dtype = torch.float32 if feats.dtype == torch.bfloat16 else feats.dtype
    if edge_weight is not None and edge_weight.dtype != weight_dtype:
        raise ValueError(f"edge_weight is {edge_weight.dtype}, rows are {feats.dtype}: give both the same dtype")
    if feats.dim() != 2 or not feats.is_contiguous():
        rows = feats.reshape(len(feats), feats.shape[1:].numel()).contiguous()
    trainable = rows.requires_grad or (edge_weight is not None and edge_weight.requires_grad)
    scales, site = (source_scale, target_scale), graph.next_site()
    if trainable and torch.is_grad_enabled():
        found = _Spmm.apply(rows, edge_weight, graph, scales, loops, site)
        return found.view(len(found), *feats.shape[1:])

    def compute(keep: bool) -> torch.Tensor:
        return aggregate(graph, rows, edge_weight, scales, None if keep else site, loops=loops)[0]

    found = graph.constants.get(rows, edge_weight, scales, compute, loops)
    return found.view(len(found), *feats.shape[1:])


def aggregate(
    graph: GraphView,
    rows: torch.Tensor,
    edge_weight: torch.Tensor | None,
    scales: Scales,
    site: Site | None,
    backward: bool = False,
    dtype: torch.dtype | None = None,
    overlap_work: Work = (),
    loops: SelfLoops | None = None,
) -> tuple[torch.Tensor, np.ndarray]:
    """The aggregation itself, without gradient: (rows like `rows` in a buffer of the graph, source halos' rows).

    Collective: yes.

    Args: scales: (of sources, of targets), of the forward pass; backward: over the transposed arcs, scales swapped;
        dtype: of the result, float32 or that of `rows`; overlap_work: work to do while messages travel, where
        `graph.waits_for_rows`; loops: what is added of each vertex's own row, as in `spmm`.

    Notes: bfloat16 rows travel as they are, partial sums in float32. Delayed exchanges and update on copies hold
        float32 rows: bfloat16 is widened for them and rounded again.
    """
    weight = None if edge_weight is None else edge_weight.detach().reshape(-1).numpy()
    arcs = graph.backward_arcs(weighted=weight is not None) if backward else graph.forward_arcs
    if backward:
        of_sources, of_targets = (None if scale is None else scale.transposed() for scale in scales)
        scales = of_targets, of_sources
    half, dtype = rows.dtype == torch.bfloat16, dtype or rows.dtype
    if half and (site is not None or not isinstance(arcs, Aggregator)):
        rows = rows.float()
    summed = torch.float32 if half and (graph.num_ranks > 1 or rows.dtype != torch.bfloat16) else dtype
    count = arcs.num_targets if type(arcs) is Aggregator else len(rows)
    out = graph.buffers.empty(count, rows.shape[1], summed)
    arguments = as_array(rows), weight, scales, site, as_array(out)
    add_loops = None if loops is None else loops.add
    # Not in batches, nor with update on copies: their rows are not the owned vertices that `as_arcs` counts.
    if loops is not None and loops.as_arcs is not None and weight is None and type(arcs) is Aggregator:
        arcs, add_loops = replace(arcs, arcs=arcs.arcs.with_loops(loops.as_arcs)), loops.add_others
    _, sources = arcs(*arguments, overlap_work) if isinstance(arcs, Aggregator) else arcs(*arguments)
    if add_loops is not None:
        add_loops(out, rows)
    if summed != dtype:
        out = graph.buffers.empty(count, rows.shape[1], dtype).copy_(out)
    return out, sources


class _Spmm(Function):
    @staticmethod
    def forward(
        ctx: Any,
        rows: torch.Tensor,
        edge_weight: torch.Tensor | None,
        graph: GraphView,
        scales: Scales,
        loops: SelfLoops | None,
        site: Site | None,
    ) -> torch.Tensor:
        ctx.graph, ctx.scales, ctx.loops, ctx.site = graph, scales, loops, site
        out, sources = aggregate(graph, rows, edge_weight, scales, site, loops=loops)
        weighted = edge_weight is not None and edge_weight.requires_grad
        ctx.sources = sources.copy() if weighted else None
        ctx.save_for_backward(rows if weighted else None, edge_weight)
        return out

    @staticmethod
    def backward(ctx: Any, grad_out: torch.Tensor) -> tuple:
        rows, edge_weight = ctx.saved_tensors
        arguments = ctx.graph, grad_out, edge_weight, ctx.scales, ctx.site
        grad_rows, target_grads = aggregate(*arguments, backward=True, loops=ctx.loops)
        grad_weight = None
        if ctx.needs_input_grad[1]:
            arrays = as_array(rows), ctx.sources, as_array(grad_out), target_grads
            dots = ctx.graph.forward_arcs.arc_dots(*arrays, ctx.scales)
            grad_weight = torch.from_numpy(dots).view(edge_weight.shape)
        return grad_rows, grad_weight, None, None, None, None
