"""A trained run as a plain DGL model: `to_dgl`.

The model is made of DGL's and torch's own layers; nothing of DistGNN, and no MPI, is behind it. Its `state_dict` has
the names of ours, so weights move both ways:

    plain = distgnn.to_dgl("run")                     # best weights of a run, ready to predict
    logits = plain(graph, graph.ndata["feat"])        # a dgl.DGLGraph

    ours.load_state_dict(plain.state_dict())          # and back, for one that was trained on in DGL
"""

from typing import Any

import torch
from torch import nn

from distgnn.config import ATTENTION_MODELS
from distgnn.system.other_libraries import import_dgl
from distgnn.train.checkpoint.weights import load_best, read_feat_norm
from distgnn.train.export.plain_model import PlainModel, read_run, two_layers, with_feat_norm
from distgnn.train.run.run_folder import read_config


def to_dgl(run: str) -> nn.Module:
    """The best weights of a run folder in a plain DGL model, in evaluation mode.

    Args: run: run folder that `distgnn train` wrote.

    Returns:
        A module that takes (dgl.DGLGraph, rows [N, D]) and gives logits [N, C]. It reads what its kind needs from the
        graph: `edata["weight"]` (weighted models), `edata["feat"]` (gine, edgegat), `edata["etype"]` and
        `ndata["ntype"]` (rgcn).

    Raises: RunError for a folder that is no run, or was trained from a script: make that model and load its weights.

    Notes:
        The graph must be prepared as the partition was: direction, self-loops and feature scaling are noted under
        [data.graph] in the run's config.toml; `distgnn.load_graph(SOURCE)` and `GraphData.to_dgl(edge_list)` make it.
        Rows are raw features: of a run with feat_norm the model does to them what was done in training.

    Example:
        >>> model = dg.to_dgl("run")
        >>> whole = data.to_dgl()
        >>> model(whole, whole.ndata["feat"]).shape
        torch.Size([60, 4])
    """
    config, sizes, dtype = read_run(run)
    model = DGLModel(config, sizes).to(dtype)
    load_best(run, model)
    return with_feat_norm(model.eval(), read_feat_norm(run, read_config(run)), 1, "feats")


class DGLModel(PlainModel):
    """A model of DGL's layers: parameters have the names of ours. Its `arcs` are the graph."""

    def make_conv(self, in_feats: int, out_feats: int, layer: int, last: bool) -> nn.Module:
        import_dgl()
        import dgl.nn

        name, heads, layers = self.config.name, self.config.num_heads, dgl.nn
        width = out_feats if last or name not in ATTENTION_MODELS else out_feats // heads
        zeros: dict[str, Any] = {"allow_zero_in_degree": True}
        edges, relations, bases = self.sizes.num_edge_feats, self.sizes.num_relations, self.config.num_bases
        shared: dict[str, Any] = {"regularizer": "basis", "num_bases": bases} if bases else {}
        makers = {
            "sage": lambda: layers.SAGEConv(in_feats, out_feats, "mean"),
            "gcn": lambda: layers.GraphConv(in_feats, out_feats, **zeros),
            "gin": lambda: layers.GINConv(two_layers(in_feats, out_feats), "sum", learn_eps=True),
            "gat": lambda: layers.GATConv(in_feats, width, heads, **zeros),
            "gatv2": lambda: layers.GATv2Conv(in_feats, width, heads, **zeros),
            "edgegat": lambda: layers.EdgeGATConv(in_feats, edges, width, heads, residual=False, **zeros),
            "gcn2": lambda: layers.GCN2Conv(in_feats, layer + 1, alpha=0.1, lambda_=0.5, bias=False, **zeros),
            "appnp": lambda: layers.APPNPConv(k=10, alpha=0.1),
            "rgcn": lambda: layers.RelGraphConv(in_feats, out_feats, relations, **shared),
        }
        if name in makers:
            return makers[name]()
        conv = nn.Module()
        conv.encoder = nn.Linear(edges, in_feats)
        conv.conv = layers.GINEConv(two_layers(in_feats, out_feats), learn_eps=True)
        return conv

    def make_norm(self, name: str) -> nn.Module:
        return GraphNorm(self.config.hidden_feats) if name == "graph" else PairNorm()

    def convolve(self, conv: Any, rows: torch.Tensor, arcs: Any, last: bool, initial: Any = None) -> torch.Tensor:
        name, graph = self.config.name, arcs
        weight = graph.edata["weight"].to(rows.dtype) if self.config.weighted else None
        if name == "appnp" and weight is None and rows.dtype != torch.float32:  # DGL makes them of float32 always
            weight = torch.ones(graph.num_edges(), dtype=rows.dtype)
        if name in ("sage", "gcn", "appnp"):
            return conv(graph, rows, edge_weight=weight)
        if name == "gcn2":
            return conv(graph, rows, initial, edge_weight=weight)
        if name == "gin":
            return conv(graph, rows, edge_weight=None if weight is None else weight[:, None])
        if name == "gine":
            return conv.conv(graph, rows, conv.encoder(graph.edata["feat"].to(rows)))
        if name == "rgcn":
            relations = graph.edata["etype"].long()
            group = graph.edges()[1] * self.sizes.num_relations + relations
            counts = torch.bincount(group, minlength=graph.num_nodes() * self.sizes.num_relations)
            return conv(graph, rows, relations, norm=(1 / counts[group].to(rows))[:, None])
        if name == "edgegat":
            out = conv(graph, rows, graph.edata["feat"].to(rows))
        else:
            out = conv(graph, rows, **({"edge_weight": weight} if name == "gat" else {}))
        return out.mean(1) if last else out.flatten(1)

    def forward(self, graph: Any, feats: torch.Tensor) -> torch.Tensor:
        return self.run(feats, graph, lambda: graph.ndata["ntype"])


class GraphNorm(nn.Module):
    """y = weight (x - mean_scale mean) / std + bias over all rows; parameter names as `torch_geometric.nn.GraphNorm`.

    Source: Cai et al., ICML'21.
    """

    def __init__(self, in_channels: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.weight: nn.Parameter = nn.Parameter(torch.ones(in_channels))
        self.bias: nn.Parameter = nn.Parameter(torch.zeros(in_channels))
        self.mean_scale: nn.Parameter = nn.Parameter(torch.ones(in_channels))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        out = rows - self.mean_scale * rows.mean(0)
        return self.weight * out / (out.square().mean(0) + self.eps).sqrt() + self.bias


class PairNorm(nn.Module):
    """Rows centred and scaled to a mean squared length of 1. Source: Zhao and Akoglu, ICLR'20."""

    eps: float = 1e-5

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        rows = rows - rows.mean(0)
        return rows / (self.eps + rows.square().sum(-1).mean()).sqrt()
