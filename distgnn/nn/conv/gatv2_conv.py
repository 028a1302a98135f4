"""Graph attention with dynamic scores (GATv2), DGL's arguments and parameter names; exact across ranks."""

from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.conv.attention import AttentionConv
from distgnn.ops.entry import is_watched, opaque
from distgnn.ops.graph_view import GraphView
from distgnn.ops.rowwise.chain import Rows, leave


class GATv2Conv(AttentionConv):
    """a(u, v) = softmax over in-arcs of <attn, leaky_relu(fc_src x[u] + fc_dst x[v])>;  z = fc_src x.

    Args, Shape: see `AttentionConv`; share_weights: let fc_dst be fc_src.

    Notes:
        Memory: H * F numbers per arc, because the score is not a sum of two.

    Source: Brody et al., ICLR'22; parameter names as `dgl.nn.GATv2Conv` 1.1.3.

    Example:
        >>> layer = dg.nn.GATv2Conv(graph.num_feats, 4, num_heads=2)
        >>> layer(graph, graph.feats).shape
        torch.Size([60, 2, 4])
    """

    linear_names = ("fc_src", "fc_dst")
    attention_names = ("attn",)

    def __init__(self, *arguments: Any, share_weights: bool = False, **options: Any):
        self.share_weights = share_weights
        super().__init__(*arguments, **options)

    def make_parameters(self, width: int, bias: bool) -> None:
        self.fc_src: nn.Linear = nn.Linear(self.in_feats, width, bias=bias)
        self.fc_dst: nn.Linear = self.fc_src if self.share_weights else nn.Linear(self.in_feats, width, bias=bias)
        self.attn: nn.Parameter = nn.Parameter(torch.empty(1, self.num_heads, self.out_feats))

    @opaque
    def forward(self, graph: GraphView, feat: Any, get_attention: bool = False) -> Any:
        """With `get_attention` also the attention of local arcs, [A, H, 1]."""
        self.check(graph)
        layers = [self.fc_src] if self.share_weights else [self.fc_src, self.fc_dst]
        drops = self.training and self.feat_drop.p > 0
        if isinstance(feat, Rows) and self.res_fc is None and not drops and not any(map(is_watched, layers)):
            inputs: Any = feat.shared()
        else:
            inputs = self.feat_drop(leave(feat, alone=True), graph)
        ends = [
            layer(inputs) if is_watched(layer) else ops.linear(graph, inputs, layer.weight.T, layer.bias)
            for layer in layers
        ]
        sources, targets = map(self.heads, leave(ends[0], ends[-1]))
        feat, inputs = None, None if self.res_fc is None else inputs
        scores = ops.pair_scores(graph, sources, targets, self.attn, self.leaky_relu.negative_slope)
        attention = self.attention(graph, scores)
        out = self.finish(ops.spmm_heads(graph, sources, attention), inputs)
        return (out, attention[:, :, None]) if get_attention else out
