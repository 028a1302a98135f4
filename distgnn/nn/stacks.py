"""Stacks of layers: convolution, norm, ReLU, dropout, repeated; the last layer is the bare convolution."""

from itertools import pairwise

import torch
from torch import nn

from distgnn.config import NORMS, check_choice
from distgnn.nn.dropout import Dropout, number_sites
from distgnn.nn.graph_conv import GraphConv
from distgnn.nn.sage_conv import SAGEConv


class Stack(nn.Module):
    """Shared by all stacks: `make_conv(in_feats, out_feats)` says which convolution.

    Args:
        in_feats, hidden_feats, num_classes: widths of input, hidden layers and output.
        num_layers: convolutions.
        dropout: after each hidden layer.
        norm: "layer" or "none", between convolution and ReLU.
        weighted: multiply messages by the graph's edge weights.

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
        norm: str = "layer",
        weighted: bool = False,
    ):
        super().__init__()
        check_choice("norm", norm, NORMS)
        self.weighted = weighted
        widths = [in_feats] + [hidden_feats] * (num_layers - 1) + [num_classes]
        self.convs = nn.ModuleList(self.make_conv(*pair) for pair in pairwise(widths))
        self.norms = nn.ModuleList(nn.LayerNorm(hidden_feats) for _ in widths[1:-1]) if norm == "layer" else None
        self.drops = nn.ModuleList(Dropout(dropout) for _ in widths[1:-1])
        number_sites(self)

    def make_conv(self, in_feats: int, out_feats: int) -> nn.Module:
        raise NotImplementedError

    def forward(self, graph, feats: torch.Tensor) -> torch.Tensor:
        edge_weight = graph.edge_weight if self.weighted else None
        for layer, conv in enumerate(self.convs):
            feats = conv(graph, feats, edge_weight=edge_weight)
            if layer < len(self.drops):
                feats = feats if self.norms is None else self.norms[layer](feats)
                feats = self.drops[layer](torch.relu(feats), graph)
        return feats


class GraphSAGE(Stack):
    """A stack of SAGEConv with mean aggregation."""

    def make_conv(self, in_feats: int, out_feats: int) -> nn.Module:
        return SAGEConv(in_feats, out_feats, "mean")


class GCN(Stack):
    """A stack of GraphConv with norm "both"; vertices without in-arcs are allowed."""

    def make_conv(self, in_feats: int, out_feats: int) -> nn.Module:
        return GraphConv(in_feats, out_feats, allow_zero_in_degree=True)
