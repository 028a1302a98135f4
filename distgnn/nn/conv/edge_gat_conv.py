"""Graph attention with edge features, DGL's arguments and parameter names; exact across ranks.

Legend: O owned rows, A local arcs, H heads, F features per head, De edge features.
"""

from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.conv.attention import AttentionConv
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView


class EdgeGATConv(AttentionConv):
    """z = W x, w = W_e e;  y[v] = sum over arcs (u -> v) of a(u, v) (z[u] + w[arc]), with a(u, v) the softmax over
    in-arcs of leaky_relu(<attn_l, z[u]> + <attn_r, z[v]> + <attn_edge, w[arc]>).

    Args: as `AttentionConv`, edge_feats (De) after in_feats; the residual is always projected.

    Shape: [O, in_feats] and edge features [A, De] to [O, H, F].

    Notes:
        Memory: H De numbers per arc, where DGL has H F three times: sum of a W_e e is W_e applied to the sum of a e,
        and the score needs <attn_edge, W_e e> only.

    Source: Monninger et al., IROS'23; parameter names as `dgl.nn.EdgeGATConv` 1.1.3.

    Example:
        >>> layer = dg.nn.EdgeGATConv(graph.num_feats, 3, 4, num_heads=2)
        >>> layer(graph, graph.feats, graph.edata["feat"]).shape
        torch.Size([60, 2, 4])
    """

    attn_l: nn.Parameter
    attn_r: nn.Parameter
    attn_edge: nn.Parameter

    linear_names = ("fc", "fc_edge")
    attention_names = ("attn_l", "attn_r", "attn_edge")

    def __init__(self, in_feats: int, edge_feats: int, out_feats: int, num_heads: int, *arguments: Any, **options: Any):
        self.edge_feats = edge_feats
        if len(arguments) <= 3:  # the residual is not among them: here it is on by default
            options["residual"] = options.get("residual", True)
        super().__init__(in_feats, out_feats, num_heads, *arguments, **options)

    def make_residual(self, width: int, bias: bool) -> nn.Module:
        return nn.Linear(self.in_feats, width, bias=False)

    def make_parameters(self, width: int, bias: bool) -> None:
        self.fc: nn.Linear = nn.Linear(self.in_feats, width, bias=False)
        self.fc_edge: nn.Linear = nn.Linear(self.edge_feats, width, bias=False)
        self.attn_l, self.attn_r, self.attn_edge = (
            nn.Parameter(torch.empty(1, self.num_heads, self.out_feats)) for _ in range(3)
        )
        self.bias = nn.Parameter(torch.empty(width)) if bias else None

    @opaque
    def forward(
        self, graph: GraphView, feat: torch.Tensor, edge_feat: torch.Tensor, get_attention: bool = False
    ) -> Any:
        """With `get_attention` also the attention of local arcs, [A, H, 1]."""
        self.check(graph)
        inputs = self.feat_drop(feat, graph)
        rows = self.heads(self.fc(inputs))
        edge_weights = self.fc_edge.weight.view(self.num_heads, self.out_feats, self.edge_feats)
        scores = ops.to_arcs(graph, (rows * self.attn_l).sum(-1), "source")
        scores = scores + ops.to_arcs(graph, (rows * self.attn_r).sum(-1), "target")
        scores = scores + edge_feat @ (self.attn_edge[0].unsqueeze(-1) * edge_weights).sum(1).T
        attention = self.attention(graph, self.leaky_relu(scores))
        attended = ops.from_arcs(graph, attention[:, :, None] * edge_feat[:, None, :])  # [O, H, De]
        out = ops.spmm_heads(graph, rows, attention) + torch.einsum("ohe,hfe->ohf", attended, edge_weights)
        out = self.finish(out, inputs)
        return (out, attention[:, :, None]) if get_attention else out
