"""A trained run as a plain PyG model: `to_pyg`.

    model = distgnn.to_pyg("run")                     # best weights of a run, ready to predict
    logits = model(data.x, data.edge_index)           # any torch_geometric.data.Data

The layers are PyG's and torch's own; nothing of DistGNN, and no MPI, is behind them. Parameters have PyG's names, so
`parameters.py` says which of ours each of them is.

What PyG has no layer for is refused: edgegat, and gin, gat, gcn2 and appnp with edge weights (`to_dgl` has them).

Legend: N vertices, E arcs.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from distgnn.config import MODELS, ModelConfig, check_graph_has
from distgnn.errors import InputError
from distgnn.interop import plain_stack
from distgnn.interop.feat_norm import with_feat_norm
from distgnn.interop.pyg.import_pyg import import_pyg
from distgnn.interop.pyg.parameters import load
from distgnn.interop.run_model import GraphSizes, read_run
from distgnn.train.checkpoint.feat_norm import read_feat_norm
from distgnn.train.checkpoint.weights import read_best
from distgnn.train.run.run_folder import read_config

WITH_PYG = tuple(name for name in MODELS if name != "edgegat")
NO_WEIGHTS = ("gin", "gat", "gcn2", "appnp")


def to_pyg(run: str | nn.Module) -> nn.Module:
    """The best weights of a run folder, or a model of `dg.nn` as it is now, in a plain PyG model in evaluation mode.

    Args: run: run folder that `distgnn train` wrote; or a model, as in `dg.nn.GCN(…).to_pyg()`.

    Returns:
        A module that takes (x [N, D], edge_index [2, E]) and gives logits [N, C]. Models that need more take it by
        PyG's names: edge_weight (weighted models), edge_attr (gine), edge_type and node_type (rgcn), y and train_mask
        (label reuse).

    Raises:
        RunError: for a folder that is no run, or was trained from a script: make that model and load its weights.
        InputError: for a model that PyG has no layers for; `to_dgl` has them, in run folders.

    Notes:
        The graph must be prepared as the partition was: direction, self-loops and feature scaling are noted under
        [data.graph] in the run's config.toml; `distgnn.load_graph(SOURCE)` and `GraphData.to_pyg(edge_list)` make it.
        Rows are raw features: of a run with feat_norm the model does to them what was done in training.

    Example:
        >>> model = dg.to_pyg("run")
        >>> whole = data.to_pyg()
        >>> model(whole.x, whole.edge_index).shape
        torch.Size([60, 4])
    """
    if isinstance(run, nn.Module):
        return _model_to_pyg(run)
    config, sizes, dtype = read_run(run)
    model = plain_model(config, sizes).to(dtype)
    load(model, read_best(run))
    return with_feat_norm(model.eval(), read_feat_norm(run, read_config(run)), 0, "x")


def _model_to_pyg(ours: Any) -> nn.Module:
    """A model of `distgnn.nn` in PyG's layers, with its weights; its dtype, or float32 of bfloat16."""
    if not hasattr(ours, "described"):
        raise InputError(
            f"to_pyg takes a run folder or a model of dg.nn ({', '.join(WITH_PYG)}), not {type(ours).__name__}"
        )
    config, sizes, numbers = ours.described()
    double = any(one.dtype == torch.float64 for one in ours.parameters())
    model = plain_model(config, GraphSizes(**sizes)).to(torch.float64 if double else torch.float32)
    (model.model if config.label_reuse else model).set_numbers(**numbers)
    load(model, ours.state_dict())
    return model.eval()


def plain_model(config: ModelConfig, sizes: GraphSizes) -> Any:
    """The stack that `config` describes, of PyG's layers."""
    config.check()
    check_graph_has(config.name, sizes.num_edge_feats, sizes.num_relations)
    if config.name == "edgegat" or (config.weighted and config.name in NO_WEIGHTS):
        weighted = " with edge weights" if config.weighted else ""
        raise InputError(
            f"PyG has no layer for {config.name}{weighted}: there are {', '.join(WITH_PYG)}; distgnn.to_dgl has it"
        )
    if config.label_reuse:
        more = replace(sizes, num_feats=sizes.num_feats + sizes.num_classes)
        return PlainLabelReuse(plain_model(replace(config, label_reuse=0.0), more), sizes.num_classes)
    kinds = {"gcn2": PlainGCN2, "appnp": PlainAPPNP}
    return kinds.get(config.name, PlainStack)(config, sizes)


@dataclass
class Arcs:
    """What layers read beside rows: `edge_index` and columns of arcs and vertices, of the rows' dtype."""

    edge_index: torch.Tensor
    weight: torch.Tensor | None
    edge_attr: Any
    edge_type: Any

    def norm(self, num_nodes: int, ends: tuple[str, str], dtype: torch.dtype) -> torch.Tensor:
        """Weight of every arc (1 without weights) over the roots of the degrees at its source and target.

        Args: ends: which degree of each, "in" or "out".
        """
        values = self.edge_index.new_ones(self.edge_index.size(1), dtype=dtype)
        counted = {"out": self.edge_index[0], "in": self.edge_index[1]}
        out = values if self.weight is None else self.weight
        for row, end in zip(self.edge_index, ends, strict=True):
            degrees = values.new_zeros(num_nodes).index_add_(0, counted[end], values)
            out = out * degrees.clamp(min=1).rsqrt()[row]
        return out


class PlainModel(nn.Module):
    """Base: what PyG's users call with (x, edge_index)."""

    config: ModelConfig
    sizes: GraphSizes

    def __init__(self, config: ModelConfig, sizes: GraphSizes):
        super().__init__()
        self.config, self.sizes = config, sizes
        self.prefix = ""
        self.kind: str = config.name + (" weighted" if config.weighted and config.name == "sage" else "")

    def forward(
        self,
        x: torch.Tensor,
        edge_index: torch.Tensor,
        edge_weight: torch.Tensor | None = None,
        edge_attr: torch.Tensor | None = None,
        edge_type: torch.Tensor | None = None,
        node_type: torch.Tensor | None = None,
    ) -> torch.Tensor:
        weight = None
        if self.config.weighted:
            if edge_weight is None:
                raise InputError("this model was trained with edge weights: give edge_weight")
            weight = edge_weight.to(x.dtype)
        return self.run(x, Arcs(edge_index, weight, edge_attr, edge_type), node_type)

    def set_numbers(self, **numbers: Any) -> None:
        """Give layers their numbers that are no settings."""

    def run(self, x: torch.Tensor, arcs: Arcs, node_type: Any) -> torch.Tensor:
        """Logits."""
        raise NotImplementedError


class PlainLabelReuse(nn.Module):
    """`distgnn.nn.LabelReuse` for prediction: all training labels are further input columns."""

    model: nn.Module
    num_classes: int
    kind: torch.Tensor | nn.Module
    prefix: str

    def __init__(self, model: nn.Module, num_classes: int):
        super().__init__()
        self.model, self.num_classes = model, num_classes
        self.kind, self.prefix = model.kind, "model."

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, *, y: Any, train_mask: Any, **columns: Any) -> Any:
        return self.model(plain_stack.with_labels(x, y, train_mask, self.num_classes), edge_index, **columns)


class PlainStack(PlainModel):
    """`distgnn.nn.models.stacks.Stack` (and RGCN) of PyG's layers, in the same order."""

    norms: nn.ModuleList | None
    drop: nn.Dropout

    def __init__(self, config: ModelConfig, sizes: GraphSizes):
        super().__init__(config, sizes)
        typed = config.name == "rgcn"
        self.inputs: Any = plain_stack.TypedInputs(sizes, config.hidden_feats) if typed else None
        widths = plain_stack.conv_widths(config, sizes, sizes.num_feats if self.inputs is None else config.hidden_feats)
        self.convs: nn.ModuleList = nn.ModuleList(self.make_conv(*of_layer) for of_layer in widths)
        self.norms, self.drop = _norms(config, plain_stack.num_hidden(config)), nn.Dropout(config.dropout)
        self.read: nn.Linear | None = plain_stack.make_reader(config, sizes)

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        """One convolution of PyG."""
        gnn, name, heads = _layers(), self.config.name, self.config.num_heads
        if name == "sage":
            return (gnn.GraphConv if self.config.weighted else gnn.SAGEConv)(in_feats, out_feats, aggr="mean")
        if name == "gcn":
            return gnn.GCNConv(in_feats, out_feats, normalize=False)
        if name == "gin":
            return gnn.GINConv(plain_stack.two_layers(in_feats, out_feats), train_eps=True)
        if name == "gine":
            func = plain_stack.two_layers(in_feats, out_feats)
            return gnn.GINEConv(func, train_eps=True, edge_dim=self.sizes.num_edge_feats)
        if name == "rgcn":
            return gnn.RGCNConv(in_feats, out_feats, self.sizes.num_relations, self.config.num_bases or None)
        width, options = out_feats if last else out_feats // heads, {"add_self_loops": False, "concat": not last}
        if name == "gat":
            return gnn.GATConv(in_feats, width, heads, **options)
        conv = gnn.GATv2Conv(in_feats, width, heads, **options)
        conv.bias = None  # ours, as DGL's, has none behind the attention
        return conv

    def convolve(self, conv: Any, x: torch.Tensor, arcs: Arcs) -> torch.Tensor:
        """One convolution of the whole graph."""
        name = self.config.name
        if name == "gcn":
            return conv(x, arcs.edge_index, arcs.norm(len(x), ("out", "in"), x.dtype))
        if name == "gine":
            return conv(x, arcs.edge_index, arcs.edge_attr.to(x))
        if name == "rgcn":
            return conv(x, arcs.edge_index, arcs.edge_type.long())
        return conv(x, arcs.edge_index, *([] if arcs.weight is None else [arcs.weight]))

    def run(self, x: torch.Tensor, arcs: Arcs, node_type: Any) -> torch.Tensor:
        rows = x if self.inputs is None else self.inputs(x, lambda: node_type)
        return plain_stack.run_stack(self, rows, lambda conv, rows, last: self.convolve(conv, rows, arcs))


class WithBias(nn.Module):
    """GCN2Conv and a bias, which PyG's has not."""

    conv: nn.Module
    bias: nn.Parameter

    def __init__(self, conv: nn.Module, width: int):
        super().__init__()
        self.conv, self.bias = conv, nn.Parameter(torch.zeros(width))


class PlainGCN2(PlainModel):
    """`distgnn.nn.GCN2` of PyG's GCN2Conv."""

    first: nn.Linear
    last: nn.Linear

    def __init__(self, config: ModelConfig, sizes: GraphSizes):
        super().__init__(config, sizes)
        width, conv = config.hidden_feats, _layers().GCN2Conv
        self.first, self.last = nn.Linear(sizes.num_feats, width), nn.Linear(width, sizes.num_classes)
        layers = range(1, config.num_layers + 1)
        self.convs: nn.ModuleList = nn.ModuleList(
            WithBias(conv(width, 0.1, 0.5, layer, normalize=False), width) for layer in layers
        )
        self.norms: nn.ModuleList | None = _norms(config, config.num_layers)
        self.drop: nn.Dropout = nn.Dropout(config.dropout)

    def set_numbers(self, **numbers: Any) -> None:
        convs: Any = self.convs
        for layer, one in enumerate(convs, 1):
            one.conv.alpha, one.conv.beta = numbers["alpha"], math.log(numbers["lambda_"] / layer + 1)

    def run(self, x: torch.Tensor, arcs: Arcs, node_type: Any) -> torch.Tensor:
        weight = arcs.norm(len(x), ("in", "in"), x.dtype)
        rows = initial = self.drop(torch.relu(self.first(x)))
        convs: Any = self.convs
        for layer, conv in enumerate(convs):
            rows = conv.conv(rows, initial, arcs.edge_index, weight) + conv.bias
            rows = plain_stack.run_hidden(self, layer, rows)
        return self.last(rows)


class PlainAPPNP(PlainModel):
    """`distgnn.nn.APPNP` with PyG's APPNP."""

    def __init__(self, config: ModelConfig, sizes: GraphSizes):
        super().__init__(config, sizes)
        self.linears: nn.ModuleList = plain_stack.make_linears(config, sizes)
        self.norms: nn.ModuleList | None = _norms(config, config.num_layers - 1)
        self.drop: nn.Dropout = nn.Dropout(config.dropout)
        self.conv: Any = _layers().APPNP(10, 0.1, normalize=False)

    def set_numbers(self, **numbers: Any) -> None:
        self.conv.K, self.conv.alpha = numbers["k"], numbers["alpha"]

    def run(self, x: torch.Tensor, arcs: Arcs, node_type: Any) -> torch.Tensor:
        rows = plain_stack.run_linears(self, self.linears, x)
        return self.conv(rows, arcs.edge_index, arcs.norm(len(x), ("out", "in"), x.dtype))


def _layers() -> Any:
    return import_pyg().nn


def _norms(config: ModelConfig, count: int) -> nn.ModuleList | None:
    return plain_stack.make_norms(config, count, lambda width: _layers().GraphNorm(width), lambda: _layers().PairNorm())
