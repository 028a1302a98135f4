"""Graph isomorphism convolution with edge features (GINE), DGL's arguments and parameter names."""

import torch
from torch import nn

from distgnn import ops
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView


class GINEConv(nn.Module):
    """y[v] = f((1 + eps) x[v] + sum over arcs (u -> v) of relu(x[u] + e[arc])).

    Args: apply_func: f, any module of rows, or None; init_eps, learn_eps: eps, and whether it is learned.

    Shape: rows [O, D] and edge features [A, D], of one width, to what `apply_func` makes of [O, D].

    Notes: memory: D numbers per arc.

    Source: Hu et al., ICLR'20; parameter names as `dgl.nn.GINEConv` 1.1.3.

    Example:
        >>> layer = dg.nn.GINEConv(torch.nn.Linear(graph.num_feats, 4))
        >>> messages = torch.nn.Linear(3, graph.num_feats)(graph.edata["feat"])
        >>> layer(graph, graph.feats, messages).shape
        torch.Size([60, 4])
    """

    def __init__(self, apply_func: nn.Module | None = None, init_eps: float = 0.0, learn_eps: bool = False):
        super().__init__()
        self.apply_func = apply_func
        eps = torch.tensor([float(init_eps)])
        if learn_eps:
            self.eps: nn.Parameter = nn.Parameter(eps)
        else:
            self.register_buffer("eps", eps)

    @opaque
    def forward(self, graph: GraphView, node_feat: torch.Tensor, edge_feat: torch.Tensor) -> torch.Tensor:
        messages = torch.relu(ops.to_arcs(graph, node_feat, "source") + edge_feat)
        out = (1 + self.eps) * node_feat + ops.from_arcs(graph, messages)
        return out if self.apply_func is None else self.apply_func(out)
