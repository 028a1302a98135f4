"""Stacks of layers: convolution, norm, ReLU, dropout, repeated; the last layer is the bare convolution.

Over 300 lines: a short class for each convolution.
"""

from dataclasses import asdict
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import nn

from distgnn import ops
from distgnn.config import Block, ModelConfig
from distgnn.errors import InputError, on_all_ranks
from distgnn.nn.conv.gat_conv import AttentionConv, GATConv, GATv2Conv
from distgnn.nn.conv.gin_conv import GINConv
from distgnn.nn.conv.graph_conv import GraphConv
from distgnn.nn.conv.graph_module import NOT_FUSED, constant
from distgnn.nn.conv.sage_conv import SAGEConv
from distgnn.nn.dropout import Dropout, number_sites
from distgnn.nn.models.around import FeedForward, fused_layer, make_norms, normed, normed_and_activated
from distgnn.nn.norms import ColumnNorm
from distgnn.ops.function import GraphView, is_seen, is_watched, multiplies, opaque
from distgnn.ops.rowwise.chain import Rows, enter, leave


class Described(nn.Module):
    """Base of our stacks: their settings and sizes, read from the model as it is."""

    config_name: ClassVar[str]  # as of `ModelConfig`
    sizes: tuple[int, int, int]  # of input, hidden layers and output
    norm: str
    weighted: bool
    drops: nn.ModuleList

    def described(self) -> tuple[ModelConfig, dict[str, int], dict[str, float]]:
        """Settings; sizes of the graph it is for; and numbers of its layers that are no settings.

        Raises: InputError for a class that is not ours.
        """
        if "config_name" not in vars(type(self)):
            raise InputError(
                f"{type(self).__name__} is a class of your own: write it with PyG's layers, and load its weights"
            )
        in_feats, hidden_feats, num_classes = self.sizes
        drop: Any = self.drops[0] if len(self.drops) else None
        options: dict[str, Any] = {"dropout": 0.0 if drop is None else drop.p, "norm": self.norm}
        options |= {"weighted": self.weighted} | self.own_settings()
        config = ModelConfig(self.config_name, hidden_feats, **options)
        return config, {"num_feats": in_feats, "num_classes": num_classes} | self.graph_sizes(), self.layer_numbers()

    def edge_weight_of(self, graph: GraphView) -> torch.Tensor | None:
        """The weights that multiply messages, or None."""
        return graph.edge_weight if self.weighted else None

    def own_settings(self) -> dict[str, Any]:
        """Fields of `ModelConfig` that not all models have."""
        raise NotImplementedError

    def graph_sizes(self) -> dict[str, int]:
        return {}

    def layer_numbers(self) -> dict[str, float]:
        """Numbers of the layers that are no settings."""
        return {}

    def to_pyg(self) -> nn.Module:
        """This model of PyG's layers, in evaluation mode, with the weights as they are now: see `dg.to_pyg`.

        Raises: InputError for a model that PyG has no layers for.
        """
        import distgnn

        return distgnn.to_pyg(self)


class Stack(Described):
    """Shared by all stacks: `make_conv(in_feats, out_feats, last)` says which convolution.

    Args:
        in_feats, hidden_feats, num_classes: widths of input, hidden layers and output.
        num_layers: convolutions.
        dropout: after each hidden layer.
        norm: "layer", "batch", "graph", "pair" or "none", between convolution and ReLU.
        weighted: multiply messages by the graph's edge weights.
        block: what is around the convolutions: residuals, a linear layer in front, what gives the logits.
        remat: keep only the input of each hidden layer and compute the layer again in the backward pass; the same
            numbers, less memory, more time (exact exchanges, and no norm "batch", which counts what it sees). Of sage
            and gcn, which keep one tensor a layer, that of the first layer is made again from the features.

    Shape: [O, in_feats] to logits [O, num_classes].
    """

    around: Block
    remat: bool

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
        block: Block | None = None,
        remat: bool = False,
    ):
        super().__init__()
        if num_classes < 1:
            raise on_all_ranks(InputError("num_classes is 0: the graph has no labels; give the width of the output"))
        self.around = around = block or Block()
        self.weighted, self.remat = weighted, remat
        self.sizes, self.norm = (in_feats, hidden_feats, num_classes), norm
        num_hidden = num_layers - 1 + around.has_head
        widths = [hidden_feats if around.has_stem else in_feats] + [hidden_feats] * num_hidden
        widths += [] if around.has_head else [num_classes]
        lasts = [layer == num_hidden for layer in range(len(widths) - 1)]
        self.convs: nn.ModuleList = nn.ModuleList(
            self.make_conv(*pair, last) for pair, last in zip(pairwise(widths), lasts, strict=True)
        )
        preact = around.block == "preact"  # whose last rows have a norm, too
        self.norms: nn.ModuleList | None = make_norms(norm, hidden_feats, num_hidden + preact)
        self.drops = nn.ModuleList(Dropout(dropout) for _ in range(num_hidden))
        self.residuals = self.forwards = self.stem = self.read = None
        if around.block == "residual" and around.residual == "linear":
            self.residuals = nn.ModuleList(nn.Linear(*pair, bias=False) for pair in list(pairwise(widths))[:num_hidden])
        if preact:
            self.forwards = nn.ModuleList(FeedForward(2 * hidden_feats, hidden_feats, dropout) for _ in self.drops)
        if around.has_stem:
            self.stem, self.stem_drop = nn.Linear(in_feats, hidden_feats), Dropout(dropout)
        if around.has_head:
            self.read = nn.Linear(hidden_feats * (num_layers if around.head == "cat" else 1), num_classes)
        self.input_drop = Dropout(around.input_dropout) if around.input_dropout else None
        number_sites(self)

    def own_settings(self) -> dict[str, Any]:
        return {"num_layers": len(self.convs), **asdict(self.around)}

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        raise NotImplementedError

    def of_arcs(self, graph: GraphView) -> dict[str, Any]:
        """What a convolution is given beside graph and rows."""
        return {"edge_weight": self.edge_weight_of(graph)}

    def convolve(self, graph: GraphView, conv: nn.Module, feats: torch.Tensor, last: bool) -> torch.Tensor:
        """One convolution; `last` where its output is the logits. Rows on a chain stay there."""
        options = {"fusion": NOT_FUSED} if isinstance(feats, Rows) and self.fuses(conv) else {}
        return conv(graph, feats, **self.of_arcs(graph), **options)

    @opaque
    def forward(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        hidden = []
        feats = feats if self.around.is_bare else self._in_front(graph, feats)
        for layer in range(len(self.drops)):
            conv = self.convs[layer]
            # These keep one tensor in any case. Then the first layer's can be made again at least.
            keeps_one = isinstance(conv, SAGEConv | GraphConv) and self._reads_once
            if not self.remat or keeps_one:
                feats = self._hidden_layer(graph, layer, feats)
            else:
                if not graph.exchanges_exactly:
                    raise on_all_ranks(
                        InputError("remat repeats exchanges: it needs algorithm cd-0 and float32 on the wire")
                    )
                several = (self.norms, self.residuals, self.forwards)
                modules = [conv, *(one[layer] for one in several if one is not None)]
                parameters = [parameter for module in modules for parameter in module.parameters()]
                plain = self.fuses(conv) and self.around.block == "plain" and not any(map(is_watched, modules))
                run, alike = partial(self._whole_layer, graph, layer), plain and isinstance(conv, GINConv | GATConv)
                feats = ops.recompute(graph, run, feats, parameters, alike=alike)
            if self.around.head in ("cat", "max"):
                hidden.append(feats)
        if self.read is None:
            conv = self.convs[-1]
            is_fused = self.fuses(conv)
            if not self._is_step(graph, conv) or not (is_fused or isinstance(conv, GATv2Conv)):
                feats = leave(feats, alone=not is_seen(conv))
            return leave(self.convolve(graph, conv, feats, last=True))
        if hidden:
            feats = torch.cat(hidden, 1) if self.around.head == "cat" else torch.stack(hidden).amax(0)
        feats = leave(feats, alone=True)
        if self.forwards is not None and self.norms is not None:
            feats = normed(graph, self.norms[-1], feats)
        return self.read(feats)

    def _in_front(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        feats = feats if self.input_drop is None else self.input_drop(feats, graph)
        if self.stem is None:
            return feats
        feats = self.stem_drop(self.stem(feats), graph)
        return feats if self.forwards is None else nn.functional.gelu(feats)

    @property
    def _reads_once(self) -> bool:
        """Does nobody but the next layer, and a product that is part of it, read a hidden layer's rows?"""
        residuals = [None] if self.residuals is None else self.residuals
        fused = self.around.block == "plain" or all(self._takes_residual(self.convs[0], one) for one in residuals)
        return fused and self.around.head in ("conv", "linear")

    def _is_step(self, graph: GraphView, conv: nn.Module) -> bool:
        """Do a layer and the one behind alone look at rows, and at gradients? See distgnn/ops/rowwise/chain.py."""
        is_alone = self._reads_once and not is_seen(conv)
        return is_alone and constant(self.edge_weight_of(graph))

    def _whole_layer(self, graph: GraphView, layer: int, feats: torch.Tensor) -> torch.Tensor:
        return leave(self._hidden_layer(graph, layer, feats), alone=True)

    def _hidden_layer(self, graph: GraphView, layer: int, feats: Any) -> Any:
        """A convolution and what follows it; rows on a chain where nobody else looks at them."""
        conv, norm = self.convs[layer], None if self.norms is None else self.norms[layer]
        drop: Any = self.drops[layer]
        if self.forwards is not None:
            ahead = feats if norm is None else normed(graph, norm, feats)
            both = torch.cat([ahead, leave(self.convolve(graph, conv, ahead, last=False))], 1)
            return feats + drop(self.forwards[layer](both, graph), graph)
        is_step = self._is_step(graph, conv)
        feats = feats if is_step else leave(feats, alone=not is_seen(conv))
        residual: Any = None if self.residuals is None else self.residuals[layer]
        fits = self.fuses(conv) and (norm is None or isinstance(norm, nn.LayerNorm | ColumnNorm))
        if fits and (self.around.block == "plain" or self._takes_residual(conv, residual)):
            rows = feats if is_seen(conv) else enter(graph, feats)
            made = partial(conv, graph, rows, edge_weight=self.edge_weight_of(graph))
            del rows
            own = None if residual is None else residual.weight.T
            out = fused_layer(graph, made, norm, drop, self.remat, own)
            out = out if is_step else leave(out)
        else:
            adds = self.around.block == "residual"
            feats = feats if isinstance(conv, GATv2Conv) and not adds else leave(feats, alone=True)
            out = self.convolve(graph, conv, feats, last=False)
            if adds and (residual is not None or out.shape == feats.shape):
                out = leave(out) + (feats if residual is None else residual(feats))
            out = normed_and_activated(graph, norm, enter(graph, out) if is_step else out, drop)
        return out

    def _takes_residual(self, conv: nn.Module, residual: nn.Module | None) -> bool:
        """Is the product of a residual part of the convolution?"""
        plain = isinstance(conv, SAGEConv | GraphConv) and conv.is_plain
        return plain and residual is not None and not is_watched(residual) and multiplies(residual)

    def fuses(self, conv: nn.Module) -> bool:
        return isinstance(conv, SAGEConv | GraphConv) and conv.is_plain


class GraphSAGE(Stack):
    """A stack of SAGEConv with mean aggregation.

    Example:
        >>> model = dg.nn.GraphSAGE(graph.num_feats, 8, graph.num_classes)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    config_name = "sage"

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        return SAGEConv(in_feats, out_feats, "mean")


class GCN(Stack):
    """A stack of GraphConv with norm "both"; vertices without in-arcs are allowed.

    Example:
        >>> model = dg.nn.GCN(graph.num_feats, 8, graph.num_classes)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    config_name = "gcn"

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        return GraphConv(in_feats, out_feats, allow_zero_in_degree=True)


class GIN(Stack):
    """A stack of GINConv with sum aggregation, a learned eps and two linear layers each.

    Example:
        >>> model = dg.nn.GIN(graph.num_feats, 8, graph.num_classes)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    config_name = "gin"

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        func = nn.Sequential(nn.Linear(in_feats, out_feats), nn.ReLU(), nn.Linear(out_feats, out_feats))
        return GINConv(func, "sum", learn_eps=True)

    def fuses(self, conv: nn.Module) -> bool:
        return isinstance(conv, GINConv) and conv.may_fuse()

    def convolve(self, graph: GraphView, conv: nn.Module, feats: torch.Tensor, last: bool) -> torch.Tensor:
        weight = self.edge_weight_of(graph)
        options = {"fusion": NOT_FUSED} if self.fuses(conv) else {}
        return conv(graph, feats, edge_weight=None if weight is None else weight[:, None], **options)


class GAT(Stack):
    """A stack of GATConv; heads stand side by side in hidden layers and are averaged in the last.

    Args: num_heads: heads, which share the hidden width; attn_drop: dropout on attention.

    Example:
        >>> model = dg.nn.GAT(graph.num_feats, 8, graph.num_classes, num_heads=2)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    num_heads: int
    attn_drop: float

    config_name = "gat"
    conv_type: type[AttentionConv] = GATConv

    def __init__(self, *sizes: int, num_heads: int = 4, attn_drop: float = 0.0, **options: Any):
        if sizes[1] % num_heads:
            raise InputError(f"hidden_feats is {sizes[1]}: expected a multiple of num_heads, {num_heads}")
        self.num_heads, self.attn_drop = num_heads, attn_drop
        super().__init__(*sizes, **options)

    def own_settings(self) -> dict[str, Any]:
        return super().own_settings() | {"num_heads": self.num_heads}

    def make_conv(self, in_feats: int, out_feats: int, last: bool) -> nn.Module:
        width = out_feats if last else out_feats // self.num_heads
        return self.conv_type(in_feats, width, self.num_heads, attn_drop=self.attn_drop, allow_zero_in_degree=True)

    def fuses(self, conv: nn.Module) -> bool:
        return isinstance(conv, GATConv) and not self.weighted and conv.is_plain

    def convolve(self, graph: GraphView, conv: nn.Module, feats: torch.Tensor, last: bool) -> torch.Tensor:
        if last and self.fuses(conv) and isinstance(conv, GATConv) and not is_seen(conv):
            return conv.attend(graph, feats, conv.bias, mean=True)
        out = super().convolve(graph, conv, feats, last)
        return out.mean(1) if last else out.flatten(1)


class GATv2(GAT):
    """A stack of GATv2Conv, as GAT; it takes no edge weights.

    Example:
        >>> model = dg.nn.GATv2(graph.num_feats, 8, graph.num_classes, num_heads=2)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    config_name = "gatv2"
    conv_type: type[AttentionConv] = GATv2Conv

    def __init__(self, *sizes: int, weighted: bool = False, **options: Any):
        if weighted:
            raise InputError("gatv2 takes no edge weights: choose gat, or leave weighted out")
        super().__init__(*sizes, **options)

    def of_arcs(self, graph: GraphView) -> dict[str, Any]:
        return {}
