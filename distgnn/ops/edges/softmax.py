"""Softmax over the in-arcs of each vertex, exact over all ranks.

    a[arc] = exp(z[arc] - max[v]) / sum[v],   max and sum over all arcs (u -> v) of the whole graph

Every rank has the partial (maximum, sum) of its own arcs; the owner merges them, sum = Σ sum_r exp(max_r - max), and
gives both back to the copies. Backward: dz[arc] = a[arc] (da[arc] - Σ over the arcs of v of a da).
`with_own` has one more logit per vertex, as of a self-loop, which its owner adds. `in_blocks` makes logits three times:
for maxima, for sums, and where weights are used; they are never whole.

Legend: O owned rows, T target halos, A local arcs, K values per arc (heads).
"""

from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array, merge_at_owners, onto_owners, with_halos
from distgnn.ops.edges.arc_blocks import ArcBlocks, partial_rows, rows_by_end, whole_rows
from distgnn.ops.edges.on_arcs import check_arc_rows, flat, gathered, partial_sums, summed
from distgnn.ops.function import Function, GraphView, of_floats

FEW = 2  # numbers of an arc: as many as its ends, so that they may be whole


@of_floats
def edge_softmax(graph: GraphView, logits: torch.Tensor, norm_by: str = "dst") -> torch.Tensor:
    """Softmax of arc logits over the in-arcs of each vertex ("dst") or its out-arcs ("src").

    Collective: yes, and again in the backward pass.

    Args:
        logits: [A, ...], float32 or float64; every column on its own.

    Returns: shape and dtype of `logits`.

    Example:
        >>> weights = dg.ops.edge_softmax(graph, torch.zeros(graph.num_edges(), 1))
        >>> sums = dg.ops.from_arcs(graph, weights)
        >>> torch.allclose(sums[graph.in_degrees() > 0], torch.tensor(1.0))
        True
    """
    check_arc_rows(graph, logits)
    if norm_by not in ("dst", "src"):
        raise ValueError(f"unknown norm_by {norm_by!r}: choose dst or src")
    role = "target" if norm_by == "dst" else "source"
    if is_wide(logits):
        return softmax_in_blocks(graph, graph.local_arcs.grouped[role], logits, graph.local_arcs.ends[role], role)
    logits = whole_rows(logits)
    return _EdgeSoftmax.apply(flat(logits), None, graph, role)[0].view(logits.shape)


@of_floats
def edge_softmax_with_own(
    graph: GraphView, logits: torch.Tensor, own: torch.Tensor, role: str = "target"
) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax over the arcs at one end of each vertex and one logit of its own.

    Collective: yes, and again in the backward pass.

    Args: logits [A, ...], -inf for an arc that takes no part; own [O, ...]; role: which end.

    Returns: weights of arcs and of `own`.
    """
    check_arc_rows(graph, logits)
    of_arcs, of_own = _EdgeSoftmax.apply(flat(logits), flat(own), graph, role)
    return of_arcs.view(logits.shape), of_own.view(own.shape)


def is_wide(logits: torch.Tensor) -> bool:
    """Are these rows made in blocks, and too wide to be whole?"""
    return isinstance(logits, ArcBlocks) and logits.shape[1:].numel() > FEW


def softmax_in_blocks(graph: GraphView, group: Any, logits: Any, ends: np.ndarray, role: str) -> ArcBlocks:
    """Weights of arcs, as unmade as their logits [M, …]. Collective: yes.

    Args: group: the arcs by the copy at one end; ends: that copy of each arc, [M].
    """
    partial, _ = partial_rows(group, logits, "max")
    top = with_halos(graph, merge_at_owners(graph, partial, role, np.maximum), role)
    del partial
    top[np.isneginf(top)] = 0  # no arc takes part
    powers = (logits - rows_by_end(top, ends, logits.shape[1:])).exp()
    partial, _ = partial_rows(group, powers, "sum")
    total = with_halos(graph, onto_owners(graph, partial, role), role)
    total[total == 0] = 1
    return powers / rows_by_end(total, ends, logits.shape[1:])


class _EdgeSoftmax(Function):
    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, own: torch.Tensor | None, graph: GraphView, role: str) -> tuple:
        ctx.graph, ctx.role = graph, role
        arcs, scores, width = graph.local_arcs, as_array(logits), logits.shape[1]
        group, ends = arcs.grouped[role], arcs.ends[role]
        maxima = kernels.spmm(group.indptr, group.arcs, scores, "max", keep_inf=True)[0]
        finite = np.where(np.isneginf(maxima), 0, maxima).astype(scores.dtype, copy=False)  # no arc takes part
        powers = np.exp(scores - kernels.pack_rows(finite, ends))
        sums = partial_sums(graph, powers, role)
        merged = merge_at_owners(graph, np.concatenate([maxima, sums], axis=1), role, _merged)
        own_weights = None
        if own is not None:
            mine = as_array(own)
            merged = _merged(merged, np.concatenate([mine, np.ones_like(mine)], axis=1))
            own_weights = torch.from_numpy(np.exp(mine - merged[:, :width]) / merged[:, width:])
        top, total = np.split(with_halos(graph, merged, role), 2, axis=1)
        factors = np.ascontiguousarray(_scale(maxima, top) / np.where(total > 0, total, 1))
        outs = torch.from_numpy(powers * kernels.pack_rows(factors, ends)), own_weights
        ctx.save_for_backward(*outs)
        return outs

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor, grad_own: torch.Tensor | None) -> tuple:
        out, own = ctx.saved_tensors
        products = as_array(out * grad)
        at_owners = summed(ctx.graph, products, ctx.role)
        own_result = None
        if own is not None:
            own_products = as_array(own * grad_own)
            at_owners = at_owners + own_products
            own_result = torch.from_numpy(own_products - as_array(own) * at_owners)
        sums = gathered(ctx.graph, at_owners, ctx.role)
        return torch.from_numpy(products - as_array(out) * sums), own_result, None, None


def _merged(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Two [*, 2K] blocks of (maximum, sum of exp(z - maximum)) as one."""
    width = left.shape[1] // 2
    maxima = np.maximum(left[:, :width], right[:, :width])
    sums = left[:, width:] * _scale(left[:, :width], maxima) + right[:, width:] * _scale(right[:, :width], maxima)
    return np.concatenate([maxima, sums], axis=1)


def _scale(partial: np.ndarray, merged: np.ndarray) -> np.ndarray:
    """exp(partial - merged); 0 for a copy without arcs, whose maximum is -inf."""
    difference = np.where(np.isneginf(partial), -np.inf, partial - np.where(np.isneginf(merged), 0, merged))
    return np.exp(difference)
