"""A trained run as a plain PyG model: `to_pyg`.

    model = distgnn.to_pyg("run")                     # best weights of a run, ready to predict
    logits = model(data.x, data.edge_index)           # any torch_geometric.data.Data

The layers are PyG's and torch's own; nothing of DistGNN, and no MPI, is behind them. Parameters have PyG's names;
`PARAMETERS` says which of ours each of them is.

What PyG has no layer for is refused: edgegat, and gin, gat, gcn2 and appnp with edge weights (`to_dgl` has them).

Legend: N vertices, E arcs.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from distgnn.config import MODELS, ModelConfig
from distgnn.errors import InputError, RunError
from distgnn.system.other_libraries import import_pyg
from distgnn.train.checkpoint.weights import read_best, read_feat_norm
from distgnn.train.export.plain_model import GraphSizes, PlainModel, read_run, two_layers, with_feat_norm
from distgnn.train.run.run_folder import read_config

WITH_PYG = tuple(name for name in MODELS if name != "edgegat")
NO_WEIGHTS = ("gin", "gat", "gcn2", "appnp")


def to_pyg(run: str | nn.Module) -> nn.Module:
    """The best weights of a run folder, or a model of `dg.nn` as it is now, in a plain PyG model in evaluation mode.

    Args: run: run folder that `distgnn train` wrote; or a model, as in `dg.nn.GCN(…).to_pyg()`.

    Returns:
        A module that takes (x [N, D], edge_index [2, E]) and gives logits [N, C]. Models that need more take it by
        PyG's names: edge_weight (weighted models), edge_attr (gine), edge_type and node_type (rgcn).

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
    if not isinstance(run, nn.Module):
        config, sizes, dtype = read_run(run)
        model = PyGModel(config, sizes).to(dtype)
        load(model, read_best(run))
        return with_feat_norm(model.eval(), read_feat_norm(run, read_config(run)), 0, "x")
    ours: Any = run
    if not hasattr(ours, "described"):
        raise InputError(
            f"to_pyg takes a run folder or a model of dg.nn ({', '.join(WITH_PYG)}), not {type(ours).__name__}"
        )
    config, of_graph, numbers = ours.described()
    double = any(one.dtype == torch.float64 for one in ours.parameters())
    model = PyGModel(config, GraphSizes(**of_graph)).to(torch.float64 if double else torch.float32)
    model.set_numbers(**numbers)
    load(model, ours.state_dict())
    return model.eval()


@dataclass
class Arcs:
    """What layers read beside rows: `edge_index` and columns of arcs and vertices, of the rows' dtype."""

    edge_index: torch.Tensor
    weight: torch.Tensor | None
    edge_attr: Any
    edge_type: Any
    norms: dict[tuple[str, str], torch.Tensor] = field(default_factory=dict)

    def norm(self, rows: torch.Tensor, ends: tuple[str, str]) -> torch.Tensor:
        """Weight of every arc (or 1) over the roots of the degrees, "in" or "out", at its source and target; kept."""
        if ends not in self.norms:
            values = self.edge_index.new_ones(self.edge_index.size(1), dtype=rows.dtype)
            counted = {"out": self.edge_index[0], "in": self.edge_index[1]}
            out = values if self.weight is None else self.weight
            for row, end in zip(self.edge_index, ends, strict=True):
                degrees = values.new_zeros(len(rows)).index_add_(0, counted[end], values)
                out = out * degrees.clamp(min=1).rsqrt()[row]
            self.norms[ends] = out
        return self.norms[ends]


class PyGModel(PlainModel):
    """A model of PyG's layers: what PyG's users call with (x, edge_index)."""

    def __init__(self, config: ModelConfig, sizes: GraphSizes):
        if config.name == "edgegat" or (config.weighted and config.name in NO_WEIGHTS):
            weighted = " with edge weights" if config.weighted else ""
            raise InputError(
                f"PyG has no layer for {config.name}{weighted}: there are {', '.join(WITH_PYG)}; distgnn.to_dgl has it"
            )
        super().__init__(config, sizes)

    def make_conv(self, in_feats: int, out_feats: int, layer: int, last: bool) -> nn.Module:
        gnn, name, heads = import_pyg().nn, self.config.name, self.config.num_heads
        width, options = out_feats if last else out_feats // heads, {"add_self_loops": False, "concat": not last}
        edges, relations, bases = self.sizes.num_edge_feats, self.sizes.num_relations, self.config.num_bases or None
        makers = {
            "sage": lambda: (gnn.GraphConv if self.config.weighted else gnn.SAGEConv)(in_feats, out_feats, aggr="mean"),
            "gcn": lambda: gnn.GCNConv(in_feats, out_feats, normalize=False),
            "gin": lambda: gnn.GINConv(two_layers(in_feats, out_feats), train_eps=True),
            "gine": lambda: gnn.GINEConv(two_layers(in_feats, out_feats), train_eps=True, edge_dim=edges),
            "rgcn": lambda: gnn.RGCNConv(in_feats, out_feats, relations, bases),
            "gcn2": lambda: gnn.GCN2Conv(in_feats, 0.1, 0.5, layer + 1, normalize=False),
            "appnp": lambda: gnn.APPNP(10, 0.1, normalize=False),
            "gat": lambda: gnn.GATConv(in_feats, width, heads, **options),
            "gatv2": lambda: gnn.GATv2Conv(in_feats, width, heads, **options),
        }
        conv = makers[name]()
        if name == "gatv2":
            conv.bias = None  # ours, as DGL's, has none behind the attention
        return conv

    def make_norm(self, name: str) -> nn.Module:
        gnn = import_pyg().nn
        return gnn.GraphNorm(self.config.hidden_feats) if name == "graph" else gnn.PairNorm()

    def convolve(self, conv: Any, rows: torch.Tensor, arcs: Arcs, last: bool, initial: Any = None) -> torch.Tensor:
        name, edge_index = self.config.name, arcs.edge_index
        if name in ("gcn", "appnp"):
            return conv(rows, edge_index, arcs.norm(rows, ("out", "in")))
        if name == "gcn2":
            return conv(rows, initial, edge_index, arcs.norm(rows, ("in", "in")))
        if name == "gine":
            return conv(rows, edge_index, arcs.edge_attr.to(rows))
        if name == "rgcn":
            return conv(rows, edge_index, arcs.edge_type.long())
        return conv(rows, edge_index, *([] if arcs.weight is None else [arcs.weight]))

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
        return self.run(x, Arcs(edge_index, weight, edge_attr, edge_type), lambda: node_type)

    def set_numbers(self, **numbers: Any) -> None:
        """Give layers their numbers that are no settings."""
        if self.config.name == "appnp":
            self.conv.K, self.conv.alpha = numbers["k"], numbers["alpha"]
        elif self.config.name == "gcn2":
            for layer, one in enumerate(self.convs, 1):
                one.alpha, one.beta = numbers["alpha"], math.log(numbers["lambda_"] / layer + 1)


MLP = {f"nn.{layer}.{kind}": f"apply_func.{layer}.{kind}" for layer in (0, 2) for kind in ("weight", "bias")}
# Kind of convolution -> PyG's parameter -> ours; "'" behind ours: transposed.
PARAMETERS: dict[str, dict[str, str]] = {
    "sage": {"lin_l.weight": "fc_neigh.weight", "lin_l.bias": "fc_self.bias", "lin_r.weight": "fc_self.weight"},
    "weighted sage": {
        "lin_rel.weight": "fc_neigh.weight",
        "lin_rel.bias": "fc_self.bias",
        "lin_root.weight": "fc_self.weight",
    },
    "gcn": {"lin.weight": "weight'", "bias": "bias"},
    "gin": {"eps": "eps", **MLP},
    "gine": {
        "eps": "conv.eps",
        "lin.weight": "encoder.weight",
        "lin.bias": "encoder.bias",
        **{theirs: f"conv.{ours}" for theirs, ours in MLP.items()},
    },
    "gat": {"lin.weight": "fc.weight", "att_src": "attn_l", "att_dst": "attn_r", "bias": "bias"},
    "gatv2": {
        "att": "attn",
        **{f"lin_l.{kind}": f"fc_src.{kind}" for kind in ("weight", "bias")},
        **{f"lin_r.{kind}": f"fc_dst.{kind}" for kind in ("weight", "bias")},
    },
    "gcn2": {"weight1": "weight1"},
    "rgcn": {"weight": "linear_r.W", "comp": "linear_r.coeff", "root": "loop_weight", "bias": "h_bias"},
}


def load(model: Any, state: dict[str, torch.Tensor]) -> None:
    """Put parameters of ours into a PyGModel. Raises: RunError where they belong to another model."""
    weighted = "weighted " if model.config.weighted and model.config.name == "sage" else ""
    names = {}  # of each parameter and buffer -> what ours is called
    for name in model.state_dict():
        words = name.split(".")
        ours = PARAMETERS[weighted + model.config.name][".".join(words[2:])] if words[0] == "convs" else ""
        names[name] = f"convs.{words[1]}.{ours}" if ours else name
    own, wanted = model.state_dict(), {name.rstrip("'") for name in names.values()}
    if wanted != state.keys():
        raise RunError(f"the weights do not fit the model: {sorted(wanted ^ state.keys())[0]} is in one of them only")
    for theirs, ours in names.items():
        value = state[ours.removesuffix("'")]
        value = value.T if ours.endswith("'") else value
        if value.shape != own[theirs].shape and value.dim() == 1:  # a bias per head, of heads that are averaged
            value = value.view(-1, len(own[theirs])).mean(0)
        if value.shape != own[theirs].shape:
            raise RunError(f"{ours} is {list(value.shape)}, the model has {list(own[theirs].shape)}")
        own[theirs].copy_(value)
