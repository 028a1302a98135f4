"""Graph attention (GAT, GATv2, with edge features), DGL's arguments and parameter names; exact across ranks.

Legend: O owned rows, A local arcs, H heads, F features per head, De edge features.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.conv.graph_module import NOT_FUSED, Fusion, check_in_arcs
from distgnn.nn.dropout import Dropout
from distgnn.ops.function import GraphView, is_alone, is_watched, multiplies, opaque, runs_as
from distgnn.ops.rowwise.chain import Rows, leave


class AttentionConv(nn.Module):
    """Base of the attention layers: y[v] = sum over arcs (u -> v) of a(u, v) z[u], plus a residual; DGL's arguments.

    Args:
        in_feats, out_feats: widths, of the output per head.
        num_heads: heads, each with its own softmax.
        feat_drop, attn_drop: dropout on the input and on attention.
        negative_slope: of the leaky ReLU of scores.
        residual: add the input, projected where its width is not the output's.
        activation: applied last.
        allow_zero_in_degree: let vertices without in-arcs have no neighbours' part; else they are an error, as in DGL.
        bias: learn one.

    Shape: [O, in_feats] to [O, H, F].
    """

    in_feats: int
    out_feats: int
    num_heads: int
    allow_zero_in_degree: bool
    activation: Callable[..., Any] | None
    bias: nn.Parameter | None

    linear_names: tuple[str, ...] = ("fc",)  # of a subclass, in the order in which they are drawn
    attention_names: tuple[str, ...] = ("attn_l", "attn_r")

    def __init__(
        self,
        in_feats: int,
        out_feats: int,
        num_heads: int,
        feat_drop: float = 0.0,
        attn_drop: float = 0.0,
        negative_slope: float = 0.2,
        residual: bool = False,
        activation: Callable[..., Any] | None = None,
        allow_zero_in_degree: bool = False,
        bias: bool = True,
    ):
        super().__init__()
        self.in_feats, self.out_feats, self.num_heads = in_feats, out_feats, num_heads
        self.activation, self.allow_zero_in_degree = activation, allow_zero_in_degree
        self.feat_drop: Dropout = Dropout(feat_drop)
        self.attn_drop: Dropout = Dropout(attn_drop, over="arcs")
        self.leaky_relu: nn.LeakyReLU = nn.LeakyReLU(negative_slope)
        self.res_fc: nn.Module | None = self.make_residual(num_heads * out_feats, bias) if residual else None
        self.make_parameters(num_heads * out_feats, bias)
        self.reset_parameters()

    def make_residual(self, width: int, bias: bool) -> nn.Module:
        """What the input goes through before it is added to the output."""
        return nn.Identity() if self.in_feats == width else nn.Linear(self.in_feats, width, bias=bias)

    def make_parameters(self, width: int, bias: bool) -> None:
        """The layer's own parameters; `width` is all heads'."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Xavier-normal weights with the gain of ReLU, zero biases, as DGL draws them."""
        gain = nn.init.calculate_gain("relu")
        for layer in (*(getattr(self, name) for name in self.linear_names), self.res_fc):
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(layer.weight, gain=gain)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        for name in self.attention_names:
            nn.init.xavier_normal_(getattr(self, name), gain=gain)
        bias = getattr(self, "bias", None)
        if bias is not None:
            nn.init.zeros_(bias)

    def check(self, graph: GraphView) -> None:
        check_in_arcs(self, graph, ", who have nobody to attend to")

    @property
    def softens(self) -> bool:
        """Are attention and its dropout what they were made as, with nobody who sees them, and nothing dropped?"""
        drops = self.training and self.attn_drop.p > 0
        usual = runs_as(self.leaky_relu, nn.LeakyReLU) and runs_as(self.attn_drop, Dropout)
        return usual and is_alone(self.leaky_relu) and is_alone(self.attn_drop) and not drops

    def heads(self, rows: torch.Tensor) -> torch.Tensor:
        """[O, H * F] as [O, H, F]."""
        return rows.view(len(rows), self.num_heads, self.out_feats)

    def attention(self, graph: GraphView, scores: torch.Tensor) -> torch.Tensor:
        """Softmax of scores [A, H] over the in-arcs of each vertex, and dropout."""
        return self.attn_drop(ops.edge_softmax(graph, scores), graph)

    def finish(self, out: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Residual, bias (where the layer has one of its own) and activation."""
        out = out if self.res_fc is None else out + self.heads(self.res_fc(inputs))
        bias = getattr(self, "bias", None)
        out = out if bias is None else out + self.heads(bias[None])
        return out if self.activation is None else self.activation(out)


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

    @property
    def is_plain(self) -> bool:
        """Does it do nothing but what `attend` does?"""
        drops = self.feat_drop.p or not is_alone(self.feat_drop)
        usual = runs_as(self, GATConv) and self.softens and multiplies(self.fc)
        return usual and self.res_fc is None and self.activation is None and not drops

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
        heads = ops.Heads(self.num_heads, self.leaky_relu.negative_slope, fusion.epilogue, mean)
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
        if edge_weight is None and not get_attention and self.softens and multiplies(self.fc):
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
        direct = all(multiplies(layer) and not is_watched(layer) for layer in layers)
        if isinstance(feat, Rows) and self.res_fc is None and not drops and direct and is_alone(self.feat_drop):
            inputs: Any = feat.shared()
        else:
            inputs = self.feat_drop(leave(feat, alone=True), graph)
        ends = [ops.linear(graph, inputs, layer.weight.T, layer.bias) if direct else layer(inputs) for layer in layers]
        sources, targets = map(self.heads, leave(ends[0], ends[-1]))
        feat, inputs = None, None if self.res_fc is None else inputs
        if runs_as(self.leaky_relu, nn.LeakyReLU) and is_alone(self.leaky_relu):
            scores = ops.pair_scores(graph, sources, targets, self.attn, self.leaky_relu.negative_slope)
        else:
            both = ops.to_arcs(graph, sources, "source") + ops.to_arcs(graph, targets, "target")
            scores = (self.leaky_relu(both) * self.attn).sum(-1)
        attention = self.attention(graph, scores)
        out = self.finish(ops.spmm_heads(graph, sources, attention), inputs)
        return (out, attention[:, :, None]) if get_attention else out


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
        scores = ops.to_arcs(graph, (rows * self.attn_l).sum(-1), "source")
        scores = scores + ops.to_arcs(graph, (rows * self.attn_r).sum(-1), "target")
        if multiplies(self.fc_edge):
            edge_weights = self.fc_edge.weight.view(self.num_heads, self.out_feats, self.edge_feats)
            scores = scores + edge_feat @ (self.attn_edge[0].unsqueeze(-1) * edge_weights).sum(1).T
            attention = self.attention(graph, self.leaky_relu(scores))
            attended = ops.from_arcs(graph, attention[:, :, None] * edge_feat[:, None, :])  # [O, H, De]
            from_edges = torch.einsum("ohe,hfe->ohf", attended, edge_weights)
        else:
            edges = self.heads(self.fc_edge(edge_feat))
            attention = self.attention(graph, self.leaky_relu(scores + (edges * self.attn_edge).sum(-1)))
            from_edges = ops.from_arcs(graph, attention[:, :, None] * edges)
        out = self.finish(ops.spmm_heads(graph, rows, attention) + from_edges, inputs)
        return (out, attention[:, :, None]) if get_attention else out
