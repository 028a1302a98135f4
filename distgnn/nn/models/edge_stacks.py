"""Stacks whose messages use the features of arcs, `graph.edata["feat"]` [A, De]."""

from typing import Any

import torch
from torch import nn

from distgnn.nn.conv.edge_gat_conv import EdgeGATConv
from distgnn.nn.conv.gine_conv import GINEConv
from distgnn.nn.models.stacks import GAT, Stack
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView


class EncodedGINE(nn.Module):
    """GINEConv whose edge features are first brought to the width of the rows by a linear layer of its own.

    Shape: [O, in_feats] and edge features [A, De] to [O, out_feats].
    """

    def __init__(self, in_feats: int, out_feats: int, num_edge_feats: int):
        super().__init__()
        self.encoder: nn.Linear = nn.Linear(num_edge_feats, in_feats)
        func = nn.Sequential(nn.Linear(in_feats, out_feats), nn.ReLU(), nn.Linear(out_feats, out_feats))
        self.conv: GINEConv = GINEConv(func, learn_eps=True)

    @opaque
    def forward(self, graph: GraphView, rows: torch.Tensor, edge_feat: torch.Tensor) -> torch.Tensor:
        return self.conv(graph, rows, self.encoder(edge_feat))


class OfEdgeFeats(Stack):
    """Base: a stack of a graph whose arcs have De features."""

    def __init__(self, *sizes: int, num_edge_feats: int, **options: Any):
        self.num_edge_feats = num_edge_feats
        super().__init__(*sizes, **options)

    def graph_sizes(self) -> dict[str, int]:
        return {"num_edge_feats": self.num_edge_feats}

    def of_arcs(self, graph: GraphView) -> dict[str, Any]:
        return {"edge_feat": graph.edata["feat"]}


class GINE(OfEdgeFeats):
    """A stack of GINEConv, each with a linear encoder of edge features, a learned eps and two linear layers.

    Args: as `Stack`, without weighted; num_edge_feats: De.

    Example:
        >>> model = dg.nn.GINE(graph.num_feats, 8, graph.num_classes, num_edge_feats=3)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    config_name = "gine"

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        return EncodedGINE(in_feats, out_feats, self.num_edge_feats)


class EdgeGAT(OfEdgeFeats, GAT):
    """A stack of EdgeGATConv without its residual; heads stand side by side and are averaged in the last layer.

    Args: as `GAT`, without weighted; num_edge_feats: De.

    Example:
        >>> model = dg.nn.EdgeGAT(graph.num_feats, 8, graph.num_classes, num_edge_feats=3)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    config_name = "edgegat"

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        width = out_feats if last else out_feats // self.num_heads
        options = {"attn_drop": self.attn_drop, "residual": False, "allow_zero_in_degree": True}
        return EdgeGATConv(in_feats, self.num_edge_feats, width, self.num_heads, **options)
