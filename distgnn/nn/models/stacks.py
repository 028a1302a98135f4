"""Stacks of layers: convolution, norm, ReLU, dropout, repeated; the last layer is the bare convolution.

Over 300 lines: a short class for each convolution.
"""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar

import torch
from torch import nn

from distgnn import ops
from distgnn.config import JUMPS, NORMS, ModelConfig, check_choice
from distgnn.errors import InputError, on_all_ranks
from distgnn.nn.conv.attention import AttentionConv
from distgnn.nn.conv.gat_conv import GATConv
from distgnn.nn.conv.gatv2_conv import GATv2Conv
from distgnn.nn.conv.gin_conv import GINConv
from distgnn.nn.conv.graph_conv import GraphConv
from distgnn.nn.conv.graph_module import OF_GRADIENTS, GraphModule, is_seen, is_watched
from distgnn.nn.conv.sage_conv import SAGEConv
from distgnn.nn.dropout import Dropout, number_sites
from distgnn.nn.edge_weight_norm import constant
from distgnn.nn.fusion import NOT_FUSED, Fusion
from distgnn.nn.norms import BatchNorm1d, ColumnNorm, GraphNorm, PairNorm
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView
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
        residual: add a hidden layer's input to its output, where the widths are the same.
        jump: "none", or all convolutions are hidden layers and a linear layer reads all of them: "cat" side by side,
            "max" the largest of each column (jumping knowledge).
        remat: keep only the input of each hidden layer and compute the layer again in the backward pass; the same
            numbers, less memory, more time (exact exchanges, and no norm "batch", which counts what it sees). Of sage
            and gcn, which keep one tensor a layer, that of the first layer is made again from the features, and with
            norm "layer" the last hidden rows piece by piece.

    Shape: [O, in_feats] to logits [O, num_classes].

    Source: jumping knowledge: Xu et al., ICML'18.
    """

    residual: bool
    jump: str
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
        residual: bool = False,
        jump: str = "none",
        remat: bool = False,
    ):
        super().__init__()
        check_choice("jump", jump, JUMPS)
        if num_classes < 1:
            raise on_all_ranks(InputError("num_classes is 0: the graph has no labels; give the width of the output"))
        self.weighted, self.residual, self.jump, self.remat = weighted, residual, jump, remat
        self.sizes, self.norm = (in_feats, hidden_feats, num_classes), norm
        num_hidden = num_layers - 1 if jump == "none" else num_layers
        widths = [in_feats] + [hidden_feats] * num_hidden + ([num_classes] if jump == "none" else [])
        lasts = [jump == "none" and layer == num_hidden for layer in range(len(widths) - 1)]
        self.convs: nn.ModuleList = nn.ModuleList(
            self.make_conv(*pair, last) for pair, last in zip(pairwise(widths), lasts, strict=True)
        )
        self.norms: nn.ModuleList | None = make_norms(norm, hidden_feats, num_hidden)
        self.drops = nn.ModuleList(Dropout(dropout) for _ in range(num_hidden))
        if jump != "none":
            self.read: nn.Linear = nn.Linear(hidden_feats * (num_layers if jump == "cat" else 1), num_classes)
        number_sites(self)

    def own_settings(self) -> dict[str, Any]:
        return {"num_layers": len(self.convs), "residual": self.residual, "jump": self.jump}

    def touch_ahead(self, graph: GraphView) -> None:
        """Before the first step on a graph: the memory of each hidden layer's rows, and of one gradient, is touched."""
        gradients = int(graph.dtype != torch.bfloat16)  # those are float32
        if len(self.drops) and not self.remat:
            graph.buffers.touch_ahead(len(self.drops) + gradients, len(graph.row_ids), self.sizes[1], graph.dtype)

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
        for layer in range(len(self.drops)):
            conv = self.convs[layer]
            # These keep one tensor in any case. Then the first layer's can be made again at least.
            keeps_one = isinstance(conv, SAGEConv | GraphConv) and not self.residual and self.jump == "none"
            if not self.remat or keeps_one:
                feats = self._hidden_layer(graph, layer, feats)
            else:
                if not graph.exchanges_exactly:
                    raise on_all_ranks(
                        InputError("remat repeats exchanges: it needs algorithm cd-0 and float32 on the wire")
                    )
                modules = [conv, *([] if self.norms is None else [self.norms[layer]])]
                parameters = [parameter for module in modules for parameter in module.parameters()]
                plain = self.fuses(conv) and not self.residual and not any(map(is_watched, modules))
                run, alike = partial(self._whole_layer, graph, layer), plain and isinstance(conv, GINConv | GATConv)
                again = partial(run, is_unread=True) if alike else None
                feats = ops.recompute(graph, run, feats, parameters, again, alike)
            if self.jump != "none":
                hidden.append(feats)
        if self.jump == "none":
            conv = self.convs[-1]
            if not self._is_step(graph, conv) or not (self._fuses_last(conv) or isinstance(conv, GATv2Conv)):
                feats = leave(feats, alone=not is_seen(conv))
            return leave(self.convolve(graph, conv, feats, last=True))
        return self.read(torch.cat(hidden, 1) if self.jump == "cat" else torch.stack(hidden).amax(0))

    def _is_step(self, graph: GraphView, conv: nn.Module) -> bool:
        """Do a layer and the one behind alone look at rows, and at gradients? See distgnn/ops/rowwise/chain.py."""
        is_alone = not self.residual and self.jump == "none" and not is_seen(conv)
        return is_alone and constant(self.edge_weight_of(graph))

    def _fuses_last(self, conv: Any) -> bool:
        """Is a last convolution a step as it is?"""
        return self.fuses(conv) and getattr(conv, "is_plain", True)

    def _makes_last_rows_again(self, graph: GraphView) -> bool:
        """With remat, does the last layer narrow, and does nobody but it look at its rows?"""
        conv = self.convs[-1]
        fits = self.remat and type(conv) in (SAGEConv, GraphConv) and self._is_step(graph, conv)
        return fits and self._fuses_last(conv) and graph.narrows(*self.sizes[1:])

    def _whole_layer(self, graph: GraphView, layer: int, feats: torch.Tensor, is_unread: bool = False) -> torch.Tensor:
        return leave(self._hidden_layer(graph, layer, feats, is_unread), alone=True)

    def _hidden_layer(self, graph: GraphView, layer: int, feats: Any, is_unread: bool = False) -> Any:
        """A convolution and what follows it; rows on a chain where nobody else looks at them."""
        conv, norm = self.convs[layer], None if self.norms is None else self.norms[layer]
        drop: Any = self.drops[layer]
        is_step = self._is_step(graph, conv)
        feats = feats if is_step else leave(feats, alone=not is_seen(conv))
        if self.fuses(conv) and (norm is None or isinstance(norm, nn.LayerNorm | ColumnNorm)):
            rows = feats if is_seen(conv) else enter(graph, feats)
            made = partial(conv, graph, rows, edge_weight=self.edge_weight_of(graph))
            del rows
            is_unread |= 0 < layer == len(self.drops) - 1 and self._makes_last_rows_again(graph)
            out = fused_layer(graph, made, norm, drop, self.remat, is_unread)
            out = out if is_step else leave(out)
        else:
            feats = feats if isinstance(conv, GATv2Conv) else leave(feats, alone=True)
            out = self.convolve(graph, conv, feats, last=False)
            out = normed_and_activated(graph, norm, enter(graph, out) if is_step else out, drop)
        return out + feats if self.residual and out.shape == feats.shape else out

    def fuses(self, conv: nn.Module) -> bool:
        return isinstance(conv, SAGEConv | GraphConv)


def make_norms(norm: str, width: int, count: int) -> nn.ModuleList | None:
    check_choice("norm", norm, NORMS)
    makers = {
        "layer": lambda: nn.LayerNorm(width),
        "batch": lambda: BatchNorm1d(width),
        "graph": lambda: GraphNorm(width),
        "pair": PairNorm,
    }
    return None if norm == "none" else nn.ModuleList(makers[norm]() for _ in range(count))


def fused_layer(
    graph: GraphView, run: Callable[..., Any], norm: nn.Module | None, drop: Any, remat: bool, is_unread: bool
) -> Any:
    """`run(fusion=...)` with norm, ReLU and dropout. Args: is_unread: the next layer makes the result again."""
    if norm is None or isinstance(norm, nn.LayerNorm):
        parameters = None if norm is None else (norm.weight, norm.bias)
        epilogue = drop.epilogue(graph, 1e-5 if norm is None else norm.eps)
        return run(fusion=Fusion(epilogue, parameters, remat, is_unread))
    return normed_and_activated(graph, norm, enter(graph, run(fusion=NOT_FUSED._replace(remat=remat))), drop)


def fused_linear(module: Any, graph: GraphView, feats: Any, fusion: Fusion) -> Any:
    """A linear layer and what follows it in one function; where somebody watches the layer, by its own call."""
    weight, bias = module.weight.T, module.bias
    if is_watched(module):
        feats, weight, bias = enter(graph, module(leave(feats, alone=not is_watched(module, OF_GRADIENTS)))), None, None
    return ops.linear(graph, feats, weight, bias, epilogue=fusion.epilogue, norm=fusion.norm)


def normed_and_activated(graph: GraphView, norm: nn.Module | None, rows: Any, drop: Any) -> Any:
    """Norm (None: without), ReLU and dropout of a convolution's rows [O, D]."""
    if isinstance(norm, ColumnNorm) and norm.is_step and not is_watched(norm):
        return norm.followed(rows, graph, drop.epilogue(graph))
    if type(norm) is nn.LayerNorm and not is_watched(norm):
        return ops.linear(graph, rows, None, epilogue=drop.epilogue(graph, norm.eps), norm=(norm.weight, norm.bias))
    rows = leave(rows, alone=True)
    if norm is not None:
        rows = norm(rows, graph) if isinstance(norm, GraphModule) else norm(rows)
    return ops.activate(graph, rows, drop.epilogue(graph))


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
        return isinstance(conv, GATConv) and not self.weighted and not conv.drops_attention

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
