"""What plain models of DGL and of PyG have in common: the order of layers in `distgnn.nn`'s models, of torch's modules.

Parameter names: as in `distgnn.nn.models`. The libraries' own layers are in `dgl.py` and `pyg.py`.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from distgnn.config import ModelConfig, check_graph_has
from distgnn.config.together import TYPED_MODELS
from distgnn.errors import InputError, RunError
from distgnn.graph.feat_norm import FeatNorm
from distgnn.train.run.run_folder import model_config, read_config, run_dtype, run_task


@dataclass(frozen=True)
class GraphSizes:
    """What a model must know of a graph: widths, classes, and numbers of types (0 where there are none)."""

    num_feats: int
    num_classes: int
    num_edge_feats: int = 0
    num_relations: int = 0
    num_node_types: int = 0


def read_run(run: str) -> tuple[ModelConfig, GraphSizes, torch.dtype]:
    """The model of a run, the sizes of its graph, and the dtype of its weights. Raises: RunError."""
    settings = read_config(run)
    config = model_config(run, settings)
    task = run_task(settings)
    if task not in ("node", "regression"):
        raise RunError(f"{run} is of task {task}: only models of task node and regression become another library's")
    found = settings.get("data", {}).get("graph")
    if found is None:
        raise RunError(f"{run} does not say what graph it was trained on (no [data.graph] in config.toml): train again")
    if found.get("types") and config.name in TYPED_MODELS:
        raise InputError(
            f"{run} is of {config.name} on types and relations, which becomes no other library's model: distgnn "
            "predict writes what it predicts"
        )
    if task == "regression":  # as `model_for` has it
        found = found | {"num_classes": found.get("num_values") or (found["num_classes"] if found["multilabel"] else 1)}
    known = {field.name for field in fields(GraphSizes)}
    sizes = GraphSizes(**{name: value for name, value in found.items() if name in known})
    weights = torch.float64 if run_dtype(run, settings) == "float64" else torch.float32  # also of bfloat16
    return config, sizes, weights


def with_feat_norm(model: nn.Module, norm: FeatNorm | None, place: int, name: str) -> nn.Module:
    """The model, which takes raw features from now on; parameters keep their names. Args: place, name: of the features
    among the arguments of `forward`."""
    if norm is not None:
        model.register_forward_pre_hook(partial(_normalize, norm, place, name), with_kwargs=True)
    return model


def _normalize(norm: FeatNorm, place: int, name: str, _module: nn.Module, args: Any, named: Any) -> tuple[Any, Any]:
    """A hook in front of a model: does to raw features what was done in training."""
    rows = named[name] if name in named else args[place]
    prepared = norm(rows).to(rows.dtype)
    if name in named:
        return args, named | {name: prepared}
    return (*args[:place], prepared, *args[place + 1 :]), named


class PlainModel(nn.Module):
    """A model of `distgnn.nn` of another library's layers: what is around them, and in which order.

    A library's class makes convolutions and runs them; `arcs` is what its layers read beside rows.
    """

    def __init__(self, config: ModelConfig, sizes: GraphSizes):
        config.check_beside(exported=True)
        config.check()
        check_graph_has(config.name, sizes.num_edge_feats, sizes.num_relations)
        super().__init__()
        self.config = config
        self.sizes = sizes
        self.inputs: Any
        name, width, count = config.name, config.hidden_feats, config.num_layers
        widths = [width if name == "rgcn" else sizes.num_feats] + [width] * (count - 1) + [sizes.num_classes]
        num_norms, self.inputs = count - 1, None
        if name == "appnp":
            self.linears: nn.ModuleList = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
            self.conv: Any = self.make_conv(width, width, 0, True)
        elif name == "gcn2":
            self.first: nn.Linear = nn.Linear(sizes.num_feats, width)
            self.last: nn.Linear = nn.Linear(width, sizes.num_classes)
            self.convs: Any = nn.ModuleList(self.make_conv(width, width, layer, False) for layer in range(count))
            num_norms = count
        else:
            self.inputs = TypedInputs(sizes, width) if name == "rgcn" else None
            num_norms = self.make_block(widths)
        makers: dict[str, Callable[[], nn.Module]] = {
            "layer": lambda: nn.LayerNorm(width),
            "batch": lambda: nn.BatchNorm1d(width),
            "graph": lambda: self.make_norm("graph"),
            "pair": lambda: self.make_norm("pair"),
        }
        made = None if config.norm == "none" else nn.ModuleList(makers[config.norm]() for _ in range(num_norms))
        self.norms: Any = made
        self.drop: nn.Dropout = nn.Dropout(config.dropout)

    def make_block(self, widths: list[int]) -> int:
        """Convolutions and what is around them, with these widths of rows between them; returns how many norms."""
        config, width, count = self.config, self.config.hidden_feats, self.config.num_layers
        around = config.around  # with a head all convolutions are hidden layers
        first = width if around.has_stem else widths[0]
        pairs = list(pairwise([first, *widths[1:-1], *([width] if around.has_head else widths[-1:])]))
        last = None if around.has_head else count - 1
        self.convs = nn.ModuleList(self.make_conv(*pair, layer, layer == last) for layer, pair in enumerate(pairs))
        hidden = pairs[:last]
        has_own = around.block == "residual" and around.residual == "linear"
        own: Any = nn.ModuleList(nn.Linear(*pair, bias=False) for pair in hidden) if has_own else None
        preact = around.block == "preact"
        forwards: Any = nn.ModuleList(self.make_forward(width) for _ in hidden) if preact else None
        self.residuals, self.forwards = own, forwards
        self.stem: nn.Linear | None = nn.Linear(widths[0], width) if around.has_stem else None
        read_width = width * (count if around.head == "cat" else 1)
        self.read: nn.Linear | None = nn.Linear(read_width, widths[-1]) if around.has_head else None
        return len(hidden) + preact

    def make_forward(self, width: int) -> nn.Module:
        parts = nn.Linear(2 * width, width), nn.Dropout(self.config.dropout), nn.GELU(), nn.Linear(width, width)
        return nn.Sequential(OrderedDict(zip(("first", "drop", "gelu", "last"), parts, strict=True)))

    def make_conv(self, in_feats: int, out_feats: int, layer: int, last: bool) -> nn.Module:
        """One convolution of the library; last: it gives the logits."""
        raise NotImplementedError

    def convolve(self, conv: Any, rows: torch.Tensor, arcs: Any, last: bool, initial: Any = None) -> torch.Tensor:
        """One convolution of the whole graph; initial: the first rows, for gcn2."""
        raise NotImplementedError

    def make_norm(self, name: str) -> nn.Module:
        """The norm "graph" or "pair", which torch has not."""
        raise NotImplementedError

    def run(self, rows: torch.Tensor, arcs: Any, types: Callable[[], Any]) -> torch.Tensor:
        """Logits of rows [N, D]; types of vertices [N] are asked for where there are several."""
        rows = rows if self.inputs is None else self.inputs(rows, types)
        rows = nn.functional.dropout(rows, self.config.input_dropout, self.training)
        if self.config.name == "appnp":
            for layer, linear in enumerate(list(self.linears)[:-1]):
                rows = self.hidden(layer, linear(rows))
            return self.convolve(self.conv, self.linears[-1](rows), arcs, True)
        if self.config.name == "gcn2":
            rows = initial = self.drop(torch.relu(self.first(rows)))
            for layer, conv in enumerate(self.convs):
                rows = self.hidden(layer, self.convolve(conv, rows, arcs, False, initial))
            return self.last(rows)
        if self.stem is not None:
            rows = self.drop(self.stem(rows))
            rows = rows if self.forwards is None else nn.functional.gelu(rows)
        layers = []
        for layer, conv in enumerate(self.convs):
            if self.read is None and layer == len(self.convs) - 1:
                return self.convolve(conv, rows, arcs, True)
            rows = self.hidden_layer(layer, conv, rows, arcs)
            layers.append(rows)
        read, head = self.read, self.config.head
        if head in ("cat", "max"):
            rows = torch.cat(layers, 1) if head == "cat" else torch.stack(layers).amax(0)
        return read(rows if self.forwards is None else self.normed(-1, rows))  # type: ignore[misc]

    def hidden_layer(self, layer: int, conv: Any, rows: torch.Tensor, arcs: Any) -> torch.Tensor:
        if self.forwards is not None:
            ahead = self.normed(layer, rows)
            both = torch.cat([ahead, self.convolve(conv, ahead, arcs, False)], 1)
            return rows + self.drop(self.forwards[layer](both))
        out = self.convolve(conv, rows, arcs, False)
        if self.residuals is not None:
            out = out + self.residuals[layer](rows)
        elif self.config.block == "residual" and out.shape == rows.shape:
            out = out + rows
        return self.hidden(layer, out)

    def hidden(self, layer: int, rows: torch.Tensor) -> torch.Tensor:
        return self.drop(torch.relu(self.normed(layer, rows)))

    def normed(self, layer: int, rows: torch.Tensor) -> torch.Tensor:
        return rows if self.norms is None else self.norms[layer](rows)


class TypedInputs(nn.Module):
    """A linear layer for vertices of each type, and ReLU."""

    def __init__(self, sizes: GraphSizes, width: int):
        super().__init__()
        count = max(sizes.num_node_types, 1)
        self.types: nn.ModuleList = nn.ModuleList(nn.Linear(sizes.num_feats, width) for _ in range(count))

    def forward(self, rows: torch.Tensor, types: Callable[[], torch.Tensor]) -> torch.Tensor:
        first, *others = self.types
        out = first(rows)
        for number, layer in enumerate(others, 1):
            chosen = torch.nonzero(types() == number).view(-1)
            out = out.index_copy(0, chosen, layer(rows[chosen]))
        return torch.relu(out)


def two_layers(in_feats: int, out_feats: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(in_feats, out_feats), nn.ReLU(), nn.Linear(out_feats, out_feats))
