"""A trained run as a plain DGL model: `to_dgl`.

The model is made of DGL's and torch's own layers; nothing of DistGNN, and no MPI, is behind it. Its `state_dict` has
the names of ours, so weights move both ways:

    plain = distgnn.to_dgl("run")                     # best weights of a run, ready to predict
    logits = plain(graph, graph.ndata["feat"])        # a dgl.DGLGraph

    ours.load_state_dict(plain.state_dict())          # and back, for one that was trained on in DGL
"""

from dataclasses import replace
from typing import Any

import torch
from torch import nn

from distgnn.config import ATTENTION_MODELS, ModelConfig, check_graph_has
from distgnn.interop import plain_stack
from distgnn.interop.dgl.import_dgl import import_dgl
from distgnn.interop.dgl.norms import GraphNorm, PairNorm
from distgnn.interop.feat_norm import with_feat_norm
from distgnn.interop.run_model import GraphSizes, read_run
from distgnn.train.checkpoint.feat_norm import read_feat_norm
from distgnn.train.checkpoint.weights import load_best
from distgnn.train.run.run_folder import read_config


def to_dgl(run: str) -> nn.Module:
    """The best weights of a run folder in a plain DGL model, in evaluation mode.

    Args: run: run folder that `distgnn train` wrote.

    Returns:
        A module that takes (dgl.DGLGraph, rows [N, D]) and gives logits [N, C]. It reads what its kind needs from the
        graph: `edata["weight"]` (weighted models), `edata["feat"]` (gine, edgegat), `edata["etype"]` and
        `ndata["ntype"]` (rgcn), `ndata["label"]` and `ndata["train_mask"]` (label reuse).

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
    model = plain_model(config, sizes).to(dtype)
    load_best(run, model)
    return with_feat_norm(model.eval(), read_feat_norm(run, read_config(run)), 1, "feats")


def plain_model(config: ModelConfig, sizes: GraphSizes) -> nn.Module:
    """The stack that `config` describes, of DGL's layers, with the parameter names of `distgnn.nn.build_model`."""
    config.check()
    check_graph_has(config.name, sizes.num_edge_feats, sizes.num_relations)
    if config.label_reuse:
        more = replace(sizes, num_feats=sizes.num_feats + sizes.num_classes)
        return PlainLabelReuse(plain_model(replace(config, label_reuse=0.0), more), sizes.num_classes)
    kinds = {"gcn2": PlainGCN2, "appnp": PlainAPPNP, "rgcn": PlainRGCN}
    return kinds.get(config.name, PlainStack)(config, sizes)


class PlainLabelReuse(nn.Module):
    """`distgnn.nn.LabelReuse` for prediction: all training labels are further input columns."""

    model: nn.Module
    num_classes: int

    def __init__(self, model: nn.Module, num_classes: int):
        super().__init__()
        self.model, self.num_classes = model, num_classes

    def forward(self, graph: Any, feats: torch.Tensor) -> torch.Tensor:
        rows = plain_stack.with_labels(feats, graph.ndata["label"], graph.ndata["train_mask"], self.num_classes)
        return self.model(graph, rows)


class PlainStack(nn.Module):
    """`distgnn.nn.models.stacks.Stack` of DGL's layers: the same order of layers, the same names of parameters."""

    config: ModelConfig
    sizes: GraphSizes
    norms: nn.ModuleList | None
    drop: nn.Dropout

    def __init__(self, config: ModelConfig, sizes: GraphSizes, in_feats: int | None = None):
        super().__init__()
        self.config, self.sizes = config, sizes
        widths = plain_stack.conv_widths(config, sizes, in_feats or sizes.num_feats)
        self.convs: nn.ModuleList = nn.ModuleList(self.make_conv(*of_layer) for of_layer in widths)
        self.norms, self.drop = _norms(config, plain_stack.num_hidden(config)), nn.Dropout(config.dropout)
        self.read: nn.Linear | None = plain_stack.make_reader(config, sizes)

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        """One convolution of DGL."""
        name, heads = self.config.name, self.config.num_heads
        layers = _dgl_layers()
        width = out_feats if last or name not in ATTENTION_MODELS else out_feats // heads
        if name == "sage":
            return layers.SAGEConv(in_feats, out_feats, "mean")
        if name == "gcn":
            return layers.GraphConv(in_feats, out_feats, allow_zero_in_degree=True)
        if name == "gin":
            return layers.GINConv(plain_stack.two_layers(in_feats, out_feats), "sum", learn_eps=True)
        if name == "gat":
            return layers.GATConv(in_feats, width, heads, allow_zero_in_degree=True)
        if name == "gatv2":
            return layers.GATv2Conv(in_feats, width, heads, allow_zero_in_degree=True)
        if name == "edgegat":
            options = {"residual": False, "allow_zero_in_degree": True}
            return layers.EdgeGATConv(in_feats, self.sizes.num_edge_feats, width, heads, **options)
        conv = nn.Module()
        conv.encoder = nn.Linear(self.sizes.num_edge_feats, in_feats)
        conv.conv = layers.GINEConv(plain_stack.two_layers(in_feats, out_feats), learn_eps=True)
        return conv

    def convolve(self, graph: Any, conv: Any, feats: torch.Tensor, last: bool) -> torch.Tensor:
        """One convolution of the whole graph."""
        name, weight = self.config.name, _weight(self.config, graph, feats.dtype)
        if name in ("sage", "gcn"):
            return conv(graph, feats, edge_weight=weight)
        if name == "gin":
            return conv(graph, feats, edge_weight=None if weight is None else weight[:, None])
        if name == "gine":
            return conv.conv(graph, feats, conv.encoder(graph.edata["feat"].to(feats)))
        if name == "edgegat":
            out = conv(graph, feats, graph.edata["feat"].to(feats))
        else:
            out = conv(graph, feats, **({"edge_weight": weight} if name == "gat" else {}))
        return out.mean(1) if last else out.flatten(1)

    def forward(self, graph: Any, feats: torch.Tensor) -> torch.Tensor:
        return plain_stack.run_stack(self, feats, lambda conv, rows, last: self.convolve(graph, conv, rows, last))


class PlainRGCN(PlainStack):
    """`distgnn.nn.RGCN` of DGL's RelGraphConv."""

    def __init__(self, config: ModelConfig, sizes: GraphSizes):
        super().__init__(config, sizes, config.hidden_feats)
        self.inputs: plain_stack.TypedInputs = plain_stack.TypedInputs(sizes, config.hidden_feats)

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        bases = self.config.num_bases
        options = {"regularizer": "basis", "num_bases": bases} if bases else {}
        return _dgl_layers().RelGraphConv(in_feats, out_feats, self.sizes.num_relations, **options)

    def convolve(self, graph: Any, conv: Any, feats: torch.Tensor, last: bool) -> torch.Tensor:
        relations = graph.edata["etype"].long()
        group = graph.edges()[1] * self.sizes.num_relations + relations
        counts = torch.bincount(group, minlength=graph.num_nodes() * self.sizes.num_relations)
        return conv(graph, feats, relations, norm=(1 / counts[group].to(feats))[:, None])

    def forward(self, graph: Any, feats: torch.Tensor) -> torch.Tensor:
        return super().forward(graph, self.inputs(feats, lambda: graph.ndata["ntype"]))


class PlainGCN2(nn.Module):
    """`distgnn.nn.GCN2` of DGL's GCN2Conv."""

    config: ModelConfig
    first: nn.Linear
    last: nn.Linear

    def __init__(self, config: ModelConfig, sizes: GraphSizes):
        super().__init__()
        self.config, width = config, config.hidden_feats
        self.first, self.last = nn.Linear(sizes.num_feats, width), nn.Linear(width, sizes.num_classes)
        options = {"alpha": 0.1, "lambda_": 0.5, "allow_zero_in_degree": True}
        conv = _dgl_layers().GCN2Conv
        self.convs: nn.ModuleList = nn.ModuleList(
            conv(width, layer + 1, **options) for layer in range(config.num_layers)
        )
        self.norms: nn.ModuleList | None = _norms(config, config.num_layers)
        self.drop: nn.Dropout = nn.Dropout(config.dropout)

    def forward(self, graph: Any, feats: torch.Tensor) -> torch.Tensor:
        weight = _weight(self.config, graph, feats.dtype)
        rows = initial = self.drop(torch.relu(self.first(feats)))
        for layer, conv in enumerate(self.convs):
            rows = conv(graph, rows, initial, edge_weight=weight)
            rows = plain_stack.run_hidden(self, layer, rows)
        return self.last(rows)


class PlainAPPNP(nn.Module):
    """`distgnn.nn.APPNP` with DGL's APPNPConv."""

    def __init__(self, config: ModelConfig, sizes: GraphSizes):
        super().__init__()
        self.config = config
        self.linears: nn.ModuleList = plain_stack.make_linears(config, sizes)
        self.norms: nn.ModuleList | None = _norms(config, config.num_layers - 1)
        self.drop: nn.Dropout = nn.Dropout(config.dropout)
        self.conv: Any = _dgl_layers().APPNPConv(k=10, alpha=0.1)

    def forward(self, graph: Any, feats: torch.Tensor) -> torch.Tensor:
        feats = plain_stack.run_linears(self, self.linears, feats)
        weight = _weight(self.config, graph, feats.dtype)
        if weight is None and feats.dtype != torch.float32:  # DGL makes weights of float32, whatever the rows are
            weight = torch.ones(graph.num_edges(), dtype=feats.dtype)
        return self.conv(graph, feats, edge_weight=weight)


def _dgl_layers() -> Any:
    import_dgl()
    import dgl.nn

    return dgl.nn


def _norms(config: ModelConfig, count: int) -> nn.ModuleList | None:
    return plain_stack.make_norms(config, count, GraphNorm, PairNorm)


def _weight(config: ModelConfig, graph: Any, dtype: torch.dtype) -> torch.Tensor | None:
    return graph.edata["weight"].to(dtype) if config.weighted else None
