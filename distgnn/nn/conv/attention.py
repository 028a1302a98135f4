"""What the attention layers share: heads, residuals, and the weighted sum under exact attention.

Legend: O owned rows, A local arcs, H heads, F features per head.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.conv.graph_module import check_in_arcs
from distgnn.nn.dropout import Dropout
from distgnn.ops.graph_view import GraphView


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
    def drops_attention(self) -> bool:
        return self.training and self.attn_drop.p > 0

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
