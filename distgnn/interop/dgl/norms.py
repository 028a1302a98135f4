"""The norms of `distgnn.nn` that DGL and torch lack, over all rows of one process: for exported models."""

import torch
from torch import nn


class GraphNorm(nn.Module):
    """y = weight (x - mean_scale mean) / std + bias over all rows; parameter names as `torch_geometric.nn.GraphNorm`.

    Source: Cai et al., ICML'21.
    """

    def __init__(self, in_channels: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight: nn.Parameter = nn.Parameter(torch.ones(in_channels))
        self.bias: nn.Parameter = nn.Parameter(torch.zeros(in_channels))
        self.mean_scale: nn.Parameter = nn.Parameter(torch.ones(in_channels))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        out = rows - self.mean_scale * rows.mean(0)
        return self.weight * out / (out.square().mean(0) + self.eps).sqrt() + self.bias


class PairNorm(nn.Module):
    """Rows centred and scaled to a mean squared length of 1. Source: Zhao and Akoglu, ICLR'20."""

    eps: float = 1e-5

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = rows - rows.mean(0)
        return rows / (self.eps + rows.square().sum(-1).mean()).sqrt()
