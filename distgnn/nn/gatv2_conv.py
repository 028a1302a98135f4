"""Graph attention with dynamic scores (GATv2), DGL's arguments and parameter names; exact across ranks."""

from collections.abc import Callable

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.attention import AttentionConv


class GATv2Conv(AttentionConv):
    """a(u, v) = softmax over in-arcs of <attn, leaky_relu(fc_src x[u] + fc_dst x[v])>;  z = fc_src x.

    Args, Shape: see `AttentionConv`; share_weights: let fc_dst be fc_src.

    Notes:
        Memory: H * F numbers per arc, because the score is not a sum of two.

    Source: Brody et al., ICLR'22; parameter names as `dgl.nn.GATv2Conv` 1.1.3.
    """

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        num_heads: int,
        feat_drop: float = 0.0,
        attn_drop: float = 0.0,
        negative_slope: float = 0.2,
        residual: bool = False,
        activation: Callable | None = None,
        allow_zero_in_degree: bool = False,
        bias: bool = True,
        share_weights: bool = False,
    ):
        super().__init__(
            in_feats,
            out_feats,
            num_heads,
            feat_drop=feat_drop,
            attn_drop=attn_drop,
            negative_slope=negative_slope,
            residual=residual,
            activation=activation,
            allow_zero_in_degree=allow_zero_in_degree,
            bias=bias,
        )
        width = out_feats * num_heads
        self.fc_src = nn.Linear(in_feats, width, bias=bias)
        self.fc_dst = self.fc_src if share_weights else nn.Linear(in_feats, width, bias=bias)
        self.attn = nn.Parameter(torch.empty(1, num_heads, out_feats))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier-normal weights with the gain of ReLU, zero biases."""
        self.reset_linear(self.fc_src, self.fc_dst)
        nn.init.xavier_normal_(self.attn, gain=nn.init.calculate_gain("relu"))

    def forward(self, graph, feat: torch.Tensor, get_attention: bool = False) -> torch.Tensor:
        """With `get_attention` also the attention of local arcs, [A, H, 1]."""
        self.check(graph)
        inputs = self.feat_drop(feat, graph)
        sources = self.heads(self.fc_src(inputs))
        targets = sources if self.fc_dst is self.fc_src else self.heads(self.fc_dst(inputs))
        pairs = ops.to_arcs(graph, sources, "source") + ops.to_arcs(graph, targets, "target")
        attention = self.attention(graph, (self.leaky_relu(pairs) * self.attn).sum(-1))
        out = self.with_residual(ops.spmm_heads(graph, sources, attention), inputs)
        out = out if self.activation is None else self.activation(out)
        return (out, attention[:, :, None]) if get_attention else out
