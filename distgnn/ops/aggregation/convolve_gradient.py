"""The backward pass of a convolution, by plan: what `convolve.py` says of dWs, dWn and dx.

Legend: O owned rows, g = dL/dz, t = A' g (the transposed aggregation).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import torch

from distgnn.ops.aggregation.spmm import aggregate
from distgnn.ops.rowwise.layer import Call
from distgnn.ops.rowwise.products import (
    PieceRows,
    Work,
    add_product,
    product,
    product_pieces,
    sum_of_products,
    weight_gradient,
    weight_gradients,
    whole,
)


def aggregate_in(
    call: Call, rows: torch.Tensor, overlap_work: Work = (), backward: bool = False, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """A times rows, or A' with `backward`, as the convolution of a call has it. Collective: yes."""
    spec = call.how
    how = backward, dtype, overlap_work, spec.loops
    return aggregate(call.graph, rows, spec.edge_weight, spec.scales, call.site, *how)[0]


def goes_over(call: Call, rows: torch.Tensor, weight: torch.Tensor) -> bool:
    """May rows times a weight be written over the rows while messages of them travel? They are packed, and arcs between
    owned vertices have read them; loops have not."""
    return call.how.loops is None and weight.shape[0] == weight.shape[1] == rows.shape[1]


@dataclass
class Gradients:
    """A backward pass on its way: what it needs and gives up, and the gradients of weights that it has found."""

    call: Call
    feats: Any
    aggregated: torch.Tensor | None  # A x, where the plan saves it
    neigh: torch.Tensor
    own: torch.Tensor | None
    grads: torch.Tensor  # g
    is_ours: bool  # g, to write over
    needs_grad: bool
    of_own: torch.Tensor | None = None
    of_neigh: torch.Tensor | None = None

    @property
    def own_work(self) -> Work:
        """The work for dWs. Not an attribute: in a cycle of references, rows would live on to the next collection."""
        return [] if self.own is None else [self.make_own]

    def make_own(self) -> None:
        self.of_own = weight_gradient(self.call.graph, self.feats, self.grads)

    def make_neigh(self) -> None:
        self.of_neigh = weight_gradient(self.call.graph, cast(torch.Tensor, self.aggregated), self.grads)

    def from_aggregate(self) -> torch.Tensor | None:
        """dx = g Ws' + A' (g Wn'), and dWn = (A x)' g."""
        graph, grads = self.call.graph, self.grads
        recording = self._recording(self.aggregated, grads)
        work: Work = [*self.own_work, self.make_neigh, *recording]
        grad_feats = None
        if not (self.needs_grad and graph.waits_for_rows):
            work = _do(work)
            self.aggregated = None
        if self.needs_grad:
            grad_feats = aggregate_in(self.call, product(graph, grads, self.neigh.T), work, backward=True)
            if self.own is not None:
                add_product(graph, grads, self.own.T, grad_feats)
        self.aggregated = None
        return grad_feats

    def from_rows(self) -> torch.Tensor | None:
        """dx = g Ws' + t Wn', and dWn = x' t, t = A' g."""
        call, graph, feats, grads, own = self.call, self.call.graph, self.feats, self.grads, self.own
        together = own is not None and isinstance(feats, PieceRows) and not graph.waits_for_rows
        grad_feats = None
        over = grads if self.is_ours and grads.shape == feats.shape else None
        if self.needs_grad and own is not None and graph.waits_for_rows:
            early = over is not None and graph.factor_recorder is None and goes_over(call, grads, own)
            grad_feats = grads if early else graph.buffers.empty(len(grads), own.shape[0], grads.dtype)
            work = [*self.own_work, *product_pieces(graph, grads, own.T, grad_feats)]
        else:
            work = [] if together else _do(self.own_work)
        turned = aggregate_in(call, grads, work, backward=True)
        if together:  # x is made again once for both
            self.of_own, self.of_neigh = weight_gradients(graph, feats, [grads, turned])
        else:
            self.of_neigh = weight_gradient(graph, feats, turned)
        _do(self._recording(feats, turned))
        if grad_feats is not None:
            add_product(graph, turned, self.neigh.T, grad_feats)
        elif self.needs_grad:
            pairs = [(turned, self.neigh.T), *([] if own is None else [(grads, own.T)])]
            grad_feats = sum_of_products(graph, pairs, over)
        return grad_feats

    def _recording(self, inputs: Any, of_neigh: torch.Tensor) -> Work:
        """Tell the recorder, where there is one: Wn multiplies `inputs` with gradient `of_neigh`, Ws multiplies x."""
        recorder, own = self.call.graph.factor_recorder, self.own
        if recorder is None:
            return []
        shared = inputs is self.feats  # the recorder knows rows that it has met
        inputs = whole(inputs)
        feats = None if own is None else inputs if shared else whole(self.feats)
        factors = [(self.neigh, inputs, of_neigh), *([] if own is None else [(own, feats, self.grads)])]
        return [lambda: recorder.add(factors, constant=not self.needs_grad)]


def _do(work: Work) -> list[Callable[[], object]]:
    """Do it now; nothing is left."""
    for piece in work:
        piece()
    return []
