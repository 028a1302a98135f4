"""Deep models: linear layers around propagation that has few parameters or none, so that depth costs little."""

import torch
from torch import nn

from distgnn import ops
from distgnn.nn.conv.appnp_conv import APPNPConv
from distgnn.nn.conv.gcn2_conv import GCN2Conv
from distgnn.nn.dropout import Dropout, number_sites
from distgnn.nn.models.stacks import make_norms, normalize


def finish(graph, rows: torch.Tensor, norm: nn.Module | None, drop: Dropout) -> torch.Tensor:
    """Norm, ReLU and dropout of a hidden layer's rows [O, D]."""
    rows = rows if norm is None else normalize(graph, norm, rows)
    return ops.activate(graph, rows, drop.after_relu(graph))


class GCN2(nn.Module):
    """Linear, ReLU; then GCN2Conv with the first hidden rows as initial residual, norm and ReLU, repeated; linear.

    Args: as `Stack`; alpha, lambda_: of GCN2Conv.

    Shape: [O, in_feats] to logits [O, num_classes].
    """

    def __init__(
        self,
        in_feats: int,
        hidden_feats: int,
        num_classes: int,
        num_layers: int = 3,
        *,
        dropout: float = 0.5,
        norm: str = "none",
        weighted: bool = False,
        alpha: float = 0.1,
        lambda_: float = 0.5,
    ):
        super().__init__()
        self.weighted = weighted
        self.first, self.last = nn.Linear(in_feats, hidden_feats), nn.Linear(hidden_feats, num_classes)
        self.convs = nn.ModuleList(
            GCN2Conv(hidden_feats, layer + 1, alpha, lambda_, allow_zero_in_degree=True) for layer in range(num_layers)
        )
        for conv in self.convs:
            nn.init.xavier_uniform_(conv.weight1)  # DGL's standard normal weights blow up from a few layers on
        self.norms = make_norms(norm, hidden_feats, num_layers)
        self.drops = nn.ModuleList(Dropout(dropout) for _ in range(num_layers + 1))
        number_sites(self)

    def forward(self, graph, feats: torch.Tensor) -> torch.Tensor:
        edge_weight = graph.edge_weight if self.weighted else None
        rows = initial = finish(graph, self.first(feats), None, self.drops[0])
        for layer, conv in enumerate(self.convs):
            rows = conv(graph, rows, initial, edge_weight)
            rows = finish(graph, rows, None if self.norms is None else self.norms[layer], self.drops[layer + 1])
        return self.last(rows)


class APPNP(nn.Module):
    """`num_layers` linear layers with norm, ReLU and dropout in between, then k steps of personalised PageRank.

    Args: as `Stack`; k, alpha: of APPNPConv.

    Shape: [O, in_feats] to logits [O, num_classes].
    """

    def __init__(
        self,
        in_feats: int,
        hidden_feats: int,
        num_classes: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        norm: str = "none",
        weighted: bool = False,
        k: int = 10,
        alpha: float = 0.1,
    ):
        super().__init__()
        self.weighted = weighted
        widths = [in_feats] + [hidden_feats] * (num_layers - 1) + [num_classes]
        self.linears = nn.ModuleList(nn.Linear(*widths[layer : layer + 2]) for layer in range(num_layers))
        self.norms = make_norms(norm, hidden_feats, num_layers - 1)
        self.drops = nn.ModuleList(Dropout(dropout) for _ in range(num_layers - 1))
        self.conv = APPNPConv(k, alpha)
        number_sites(self)

    def forward(self, graph, feats: torch.Tensor) -> torch.Tensor:
        for layer, drop in enumerate(self.drops):
            feats = self.linears[layer](feats)
            feats = finish(graph, feats, None if self.norms is None else self.norms[layer], drop)
        return self.conv(graph, self.linears[-1](feats), graph.edge_weight if self.weighted else None)
