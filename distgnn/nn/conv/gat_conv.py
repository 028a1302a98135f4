"""Graph attention (GAT) with DGL's arguments and parameter names; exact across ranks."""

from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.conv.attention import AttentionConv
from distgnn.nn.fusion import NOT_FUSED, Fusion
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView


class GATConv(AttentionConv):
    """z = W x;  a(u, v) = softmax over in-arcs of leaky_relu(<attn_l, z[u]> + <attn_r, z[v]>).

    Args, Shape: see `AttentionConv`.

    Notes:
        Memory: a few numbers per arc and head; scores and softmax are merged at the owner of each vertex.

    Source: Veličković et al., ICLR'18; parameter names as `dgl.nn.GATConv` 1.1.3.

    Example:
        >>> layer = dg.nn.GATConv(graph.num_feats, 4, num_heads=2)
        >>> layer(graph, graph.feats).shape
        torch.Size([60, 2, 4])
    """

    def make_parameters(self, width: int, bias: bool) -> None:
        self.fc: nn.Linear = nn.Linear(self.in_feats, width, bias=False)
        self.attn_l: nn.Parameter = nn.Parameter(torch.empty(1, self.num_heads, self.out_feats))
        self.attn_r: nn.Parameter = nn.Parameter(torch.empty(1, self.num_heads, self.out_feats))
        own_bias = bias and not isinstance(self.res_fc, nn.Linear)  # else the projection of the residual has it
        self.bias = nn.Parameter(torch.empty(width)) if own_bias else None

    def attend(
        self,
        graph: GraphView,
        feat: torch.Tensor,
        bias: torch.Tensor | None,
        fusion: Fusion = NOT_FUSED,
        mean: bool = False,
    ) -> torch.Tensor:
        """The convolution and what follows it in one function, [O, H * F], or its mean over heads: see `ops.attend`.

        Without edge weights, residual, activation, dropout.
        """
        self.check(graph)
        attn = torch.stack([self.attn_l.flatten(), self.attn_r.flatten()])
        slope = self.leaky_relu.negative_slope
        heads = ops.Heads(self.num_heads, slope, fusion.epilogue, mean, is_unread=fusion.is_unread)
        return ops.attend(graph, feat, self.fc.weight.T, attn, bias, heads, fusion.norm)

    @opaque
    def forward(
        self,
        graph: GraphView,
        feat: torch.Tensor,
        edge_weight: torch.Tensor | None = None,
        get_attention: bool = False,
        fusion: Fusion | None = None,
    ) -> Any:
        """With `get_attention` also the attention of local arcs, [A, H, 1]. With `fusion`: see `attend`."""
        if fusion is not None:
            return self.attend(graph, feat, self.bias, fusion)
        inputs = self.feat_drop(feat, graph)
        if edge_weight is None and not get_attention and not self.drops_attention:
            out = self.heads(self.attend(graph, inputs, None if self.res_fc is not None else self.bias))
            if self.res_fc is not None:
                return self.finish(out, inputs)
            return out if self.activation is None else self.activation(out)
        self.check(graph)
        rows = self.heads(self.fc(inputs))
        left = ops.to_arcs(graph, (rows * self.attn_l).sum(-1), "source")
        right = ops.to_arcs(graph, (rows * self.attn_r).sum(-1), "target")
        attention = self.attention(graph, self.leaky_relu(left + right))
        if edge_weight is not None:
            attention = attention * edge_weight.reshape(-1, 1)
        out = self.finish(ops.spmm_heads(graph, rows, attention), inputs)
        return (out, attention[:, :, None]) if get_attention else out
