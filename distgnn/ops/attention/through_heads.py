"""The gradient of an attention layer through what follows its heads: the mean over them, or bias, norm, ReLU, dropout.

Legend: O owned rows, H heads, F features per head, z and y as in attend.py, `saved`: what its backward pass has.
"""

from typing import Any

import numpy as np
import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.graph_view import GraphView
from distgnn.ops.rowwise.activation import Norm, activated_backward, rows_of, through_norm
from distgnn.ops.rowwise.layer import Call
from distgnn.ops.rowwise.piecewise import no_sums
from distgnn.ops.rowwise.products import pieces


def arcs_of(graph: GraphView) -> tuple:
    """(indptr, indices) by target copy and by source copy."""
    if graph.num_ranks == 1:
        both: Any = graph.forward_arcs, graph.backward_arcs(weighted=False)  # `Aggregator`s: see check_update
        blocks = [one.arcs.owned_owned for one in both]
        return tuple((block.indptr, block.indices) for block in blocks)
    groups = graph.local_arcs.grouped
    return tuple((groups[role].indptr, groups[role].others) for role in ("target", "source"))


def through_mean(call: Call, saved: Any, before: Any, grad: torch.Tensor) -> tuple:
    """(H dz [O, F], the same for all heads, in the dtype of feats, H <dz, z> [O, H], gradients of bias, gamma, beta).

    What is missing, 1 / H, is in the sums from now on.
    """
    count, grad = call.how.num_heads, grad.contiguous()
    grads = grad
    if grad.dtype != saved.feats.dtype:
        grads = call.graph.buffers.empty_like(grad, saved.feats.dtype).copy_(grad)
    saved.sums = saved.sums * saved.sums.dtype.type(count)
    dots = kernels.head_dots(as_array(before.out), as_array(grads), count)
    return grads, dots, None if saved.bias is None else grad.sum(0).div_(count).repeat(count), None, None


def through_activation(call: Call, saved: Any, before: Any, grad: torch.Tensor) -> tuple:
    """As `through_mean`, through bias, norm, ReLU and dropout."""
    graph, heads, count = call.graph, call.how, call.how.num_heads
    grad = grad.contiguous()
    if saved.norm is not None and before.is_made_in_pieces:
        return _through_pieces(graph, saved, saved.norm, heads, grad if call.alone else grad.clone())
    if saved.norm is None and heads.epilogue.relu:  # <dz, z> in the pass that makes dz
        grads = grad if call.alone else graph.buffers.empty_like(grad)
        offset = None if saved.bias is None else as_array(saved.bias)
        given: Any = as_array(grad), as_array(before.out), offset, count
        _, sums, found = kernels.relu_backward_dots(*given, p=heads.epilogue.p, grad_feats=as_array(grads))
        return grads, found, None if offset is None else torch.from_numpy(sums), None, None
    last = heads.epilogue.is_empty and saved.norm is None
    # Without a norm <dz, z + bias> = <dy, y>, to be taken before the gradient is written over.
    dots = None if saved.norm is not None else kernels.head_dots(as_array(grad), as_array(before.out), count)
    if last:
        grads, grad_bias, gamma, beta = grad, None if saved.bias is None else grad.sum(0), None, None
    else:
        given = before, saved.bias, saved.norm, heads.epilogue, call.alone
        grads, grad_bias, gamma, beta = activated_backward(graph, grad, *given)
    if before.rows is not None:
        dots = kernels.head_dots(as_array(grads), as_array(before.rows), count)
    elif saved.bias is not None:
        dots -= kernels.head_scores(as_array(grads), as_array(saved.bias[None]), count)[0]
    return grads.to(saved.feats.dtype), dots, None if saved.bias is None else grad_bias, gamma, beta


def _through_pieces(graph: GraphView, saved: Any, norm: Norm, heads: Any, grads: torch.Tensor) -> tuple:
    """As `through_activation` on one rank, which makes z, maximum and sums of some rows at a time."""
    indptr, indices = arcs_of(graph)[0]
    (left, right), (_, count, width) = saved.scores, saved.rows.shape
    dots, sums = np.empty_like(right), no_sums(count * width)
    for rows in pieces(len(grads)):
        z = graph.buffers.empty_like(grads[rows])
        ends = indptr[rows.start : rows.stop + 1]
        arcs = ends - ends[0], indices[ends[0] : ends[-1]]
        out = as_array(z).reshape(len(z), count, width)
        _, saved.maximum[rows], saved.sums[rows] = kernels.attention(
            *arcs, saved.rows, left, right[rows], slope=heads.slope, out=out
        )
        sums = through_norm(graph, grads[rows], z, saved.bias, norm, rows_of(heads.epilogue, rows), sums)
        dots[rows] = kernels.head_dots(as_array(grads[rows]), as_array(z), count)
        del z, out  # their buffer is free for the next piece
    return grads.to(saved.feats.dtype), dots, None if saved.bias is None else sums[0], *sums[1:]
