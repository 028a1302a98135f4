"""Fusion: what a convolution is to run with itself."""

from typing import NamedTuple

import torch

from distgnn import ops
from distgnn.ops.aggregation.row_scale import Scales


class Fusion(NamedTuple):
    """What a stack lets a convolution do in the same function, by `conv(..., fusion=Fusion(...))`: hooks see it.

    `norm` is (gamma, beta) of a layer norm, or None. `own`: a matrix [I, O] whose product with the layer's own rows is
    added (a residual), of sage and gcn. In a chain of layers (`distgnn/ops/rowwise/chain.py`):
    `remat`: keep no row of what is made of constant rows. `is_unread`: with remat, of sage and gcn see
    `ops.ConvSpec`; of others this is made for a backward pass, and nobody reads the result.
    """

    epilogue: ops.Epilogue
    norm: tuple[torch.Tensor, torch.Tensor] | None = None
    remat: bool = False
    is_unread: bool = False
    own: torch.Tensor | None = None

    def of(self, scales: Scales, edge_weight: torch.Tensor | None) -> ops.ConvSpec:
        """An aggregation with these scales of sources and targets, and what follows it."""
        return ops.ConvSpec(scales, edge_weight, self.epilogue, remat=self.remat, is_unread=self.is_unread)


NOT_FUSED = Fusion(ops.Epilogue())
