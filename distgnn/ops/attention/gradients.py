"""An attention layer's gradient: through what follows its heads, and from rows and scores to their factors.

    r = x W,  s[v, e, h] = <r[v, h], attn[e, h]>, e left or right;  g: gradient of r but for what s adds, ds: of s

    dr = g + sum over e of ds[:, e] attn[e], of rank 2 H in all, and so not made:
    dW         = x' g + (x' ds) attn
    d attn[e]  = (x' ds[:, e])[:, h] W[:, h]
    dx         = g W' + ds (attn W')

x' ds and ds (attn W') are products with 2 H columns: no pass over rows of H * F columns is left for scores.

What follows the heads is the mean over them, or bias, norm, ReLU, dropout.

Legend: O owned rows, H heads, F features per head, I columns in, z and y as in attend.py, `saved`: what its backward
pass has.
"""

from dataclasses import dataclass
from typing import Any

import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.function import GraphView
from distgnn.ops.rowwise.activation import activated_backward
from distgnn.ops.rowwise.layer import Call
from distgnn.ops.rowwise.products import narrow_gradient, sum_of_products, weight_gradient, whole


@dataclass
class ThroughScores:
    """The last step of a backward pass; feats x [O, I], weight W [I, H * F], attn [2, H * F] as they were forward.

    The gradients that its functions take: grad_rows g [O, H * F] in the dtype of feats, grad_scores ds [O, 2 H].
    """

    graph: GraphView
    feats: Any
    weight: torch.Tensor
    attn: torch.Tensor

    def of_parameters(self, grad_rows: torch.Tensor, grad_scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weight, heads = self.weight, grad_scores.shape[1] // 2
        sums = narrow_gradient(self.feats, grad_scores).reshape(-1, 2, heads)
        grad_weight = weight_gradient(self.graph, self.feats, grad_rows).contiguous()
        by_head = grad_weight.view(len(weight), heads, -1)
        for end in (0, 1):
            by_head.addcmul_(sums[:, end, :, None], self.attn[end].view(heads, -1))
        rounded = weight.to(self.feats.dtype).to(weight.dtype).reshape(len(weight), heads, -1)
        return grad_weight, torch.einsum("ieh,ihf->ehf", sums, rounded).reshape(2, -1)

    def of_feats(
        self, grad_rows: torch.Tensor, grad_scores: torch.Tensor, together: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Gradient of feats [O, I], written over grad_rows if that is as wide.

        Args: together: memory [O, I], or [2 O, H * F] whose second half is grad_rows: it is written over that, if it
            fits.
        """
        weight, heads = self.weight, grad_scores.shape[1] // 2
        scores = kernels.head_scores(as_array(weight.contiguous()), as_array(self.attn), heads)
        narrow = torch.from_numpy(scores).permute(0, 2, 1).reshape(2 * heads, len(weight))  # attn W'
        weights, grad_scores = (weight.T, narrow), grad_scores.to(grad_rows.dtype)
        (num, width), columns = grad_rows.shape, self.feats.shape[1]

        def made(over: torch.Tensor | None, rows: slice = slice(None)) -> torch.Tensor:
            pairs = zip((grad_rows[rows], grad_scores[rows]), weights, strict=True)
            return sum_of_products(self.graph, list(pairs), over)

        if together is not None and num and len(together) == num:
            return made(together)
        if together is None or columns == width or columns > 2 * width:
            return made(grad_rows if columns == width else None)
        out, first = together.view(-1)[: num * columns].view(num, columns), 0
        # As many rows that what is written ends where they begin, or one, whose product is made beside it: no row that
        # is still to be read is written over.
        while first < num:
            rows = slice(first, min(num, max(first + 1, (num + first) * width // columns)))
            made(out[rows], rows)
            first = rows.stop
        return out

    def record(self, grad_rows: torch.Tensor, grad_scores: torch.Tensor, constant: bool) -> None:
        """Tell who collects factors the whole dr; `constant`: feats need no gradient."""
        recorder = self.graph.factor_recorder
        if recorder is not None:
            factors = grad_scores.view(len(grad_scores), 2, grad_scores.shape[1] // 2).transpose(0, 1).contiguous()
            copy = grad_rows.clone()
            kernels.head_outer(as_array(copy), as_array(self.attn), as_array(factors))
            recorder.add([(self.weight, whole(self.feats), copy)], constant=constant)


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


def through_activation(call: Call, saved: Any, before: Any, grad: torch.Tensor, is_ours: bool) -> tuple:
    """As `through_mean`, through bias, norm, ReLU and dropout. Args: is_ours: `grad` may be written over."""
    graph, heads, count = call.graph, call.how, call.how.num_heads
    grad = grad.contiguous()
    if saved.norm is None and heads.epilogue.relu:  # <dz, z> in the pass that makes dz
        grads = grad if is_ours else graph.buffers.empty_like(grad)
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
        given = before, saved.bias, saved.norm, heads.epilogue, is_ours
        grads, grad_bias, gamma, beta = activated_backward(graph, grad, *given)
    if before.rows is not None:
        dots = kernels.head_dots(as_array(grads), as_array(before.rows), count)
    elif saved.bias is not None:
        dots -= kernels.head_scores(as_array(grads), as_array(saved.bias[None]), count)[0]
    return grads.to(saved.feats.dtype), dots, None if saved.bias is None else grad_bias, gamma, beta
