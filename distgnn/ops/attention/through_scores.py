"""From the gradients of projected rows and of scores to the gradients of what both are made of.

    r = x W,  s[v, e, h] = <r[v, h], attn[e, h]>, e left or right;  g: gradient of r but for what s adds, ds: of s

    dr = g + sum over e of ds[:, e] attn[e], of rank 2 H in all, and so not made:
    dW         = x' g + (x' ds) attn
    d attn[e]  = (x' ds[:, e])[:, h] W[:, h]
    dx         = g W' + ds (attn W')

x' ds and ds (attn W') are products with 2 H columns: no pass over rows of H * F columns is left for scores.

Legend: O owned rows, H heads, F features per head, I columns in.
"""

from dataclasses import dataclass
from typing import Any

import torch

from distgnn import kernels
from distgnn.ops.aggregation.halo import as_array
from distgnn.ops.graph_view import GraphView
from distgnn.ops.rowwise import piecewise
from distgnn.ops.rowwise.products import narrow_gradient, sum_of_products, weight_gradient


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
            whole = grad_rows.clone()
            kernels.head_outer(as_array(whole), as_array(self.attn), as_array(factors))
            recorder.add([(self.weight, piecewise.whole(self.feats), whole)], constant=constant)
