"""Deep models: linear layers around propagation that has few parameters or none, so that depth costs little."""

from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from distgnn.nn.conv.graph_conv import APPNPConv, GCN2Conv
from distgnn.nn.conv.graph_module import NOT_FUSED, constant
from distgnn.nn.dropout import Dropout, number_sites
from distgnn.nn.models.around import fused_layer, fused_linear, make_norms
from distgnn.nn.models.stacks import Described
from distgnn.ops.function import GraphView, is_seen, opaque
from distgnn.ops.rowwise.chain import enter, leave


class DeepStack(Described):
    """Shared by deep models: `make_layers` says which layers, of which `num_norms` have a norm and `num_drops` dropout.

    Args: as `Stack`, without block and remat; input_dropout: dropout on the input.

    Shape: [O, in_feats] to logits [O, num_classes].
    """

    def __init__(
        self, *sizes: int, dropout: float = 0.5, norm: str = "none", weighted: bool = False, input_dropout: float = 0.0
    ):
        super().__init__()
        self.weighted, self.norm = weighted, norm
        self.sizes, self.num_layers = (sizes[0], sizes[1], sizes[2]), sizes[3]
        num_norms, num_drops = self.make_layers(*sizes)
        self.norms: nn.ModuleList | None = make_norms(norm, sizes[1], num_norms)
        self.drops = nn.ModuleList(Dropout(dropout) for _ in range(num_drops))
        self.input_drop = Dropout(input_dropout) if input_dropout else None
        number_sites(self)

    def own_settings(self) -> dict[str, Any]:
        own = {} if self.input_drop is None else {"input_dropout": self.input_drop.p}
        return own | {"num_layers": self.num_layers}

    def dropped(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        """The input, with its dropout."""
        return feats if self.input_drop is None else self.input_drop(feats, graph)

    def make_layers(self, in_feats: int, hidden_feats: int, num_classes: int, num_layers: int) -> tuple[int, int]:
        """Make the layers that come before norms and dropout; returns how many norms and dropouts there are."""
        raise NotImplementedError

    def finish(self, graph: GraphView, run: Any, norm: int | None, drop: int) -> Any:
        """A hidden layer `run(fusion=...)` with norm (None: without), ReLU and dropout, by number."""
        module = None if self.norms is None or norm is None else self.norms[norm]
        return fused_layer(graph, run, module, self.drops[drop])


class GCN2(DeepStack):
    """Linear, ReLU; then GCN2Conv with the first hidden rows as initial residual, norm and ReLU, repeated; linear.

    Args: as `DeepStack`; alpha, lambda_: of GCN2Conv.

    Example:
        >>> model = dg.nn.GCN2(graph.num_feats, 8, graph.num_classes)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    alpha: float
    lambda_: float
    first: nn.Linear
    last: nn.Linear

    config_name = "gcn2"

    def __init__(
        self,
        in_feats: int,
        hidden_feats: int,
        num_classes: int,
        num_layers: int = 3,
        *,
        alpha: float = 0.1,
        lambda_: float = 0.5,
        **options: Any,
    ):
        self.alpha, self.lambda_ = alpha, lambda_
        super().__init__(in_feats, hidden_feats, num_classes, num_layers, **options)

    def layer_numbers(self) -> dict[str, float]:
        return {"alpha": self.alpha, "lambda_": self.lambda_}

    def make_layers(self, in_feats: int, hidden_feats: int, num_classes: int, num_layers: int) -> tuple[int, int]:
        self.first, self.last = nn.Linear(in_feats, hidden_feats), nn.Linear(hidden_feats, num_classes)
        options: dict[str, Any] = {"alpha": self.alpha, "lambda_": self.lambda_, "allow_zero_in_degree": True}
        options["bias"] = False  # as published: with 64 layers biases keep it from learning
        convs = [GCN2Conv(hidden_feats, layer + 1, **options) for layer in range(num_layers)]
        for conv in convs:
            nn.init.xavier_uniform_(conv.weight1)  # DGL's standard normal weights blow up from a few layers on
        self.convs: nn.ModuleList = nn.ModuleList(convs)
        return num_layers, num_layers + 1

    @opaque
    def forward(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        edge_weight = self.edge_weight_of(graph)
        run = partial(fused_linear, self.first, graph, enter(graph, self.dropped(graph, feats)))
        rows = initial = self.finish(graph, run, None, 0)
        norms_are_steps = all(getattr(one, "is_step", True) and not is_seen(one) for one in self.norms or [])
        are_steps = norms_are_steps and constant(edge_weight) and graph.factor_recorder is None
        del run
        for layer, conv in enumerate(self.convs):
            if are_steps and not is_seen(conv):
                rows = enter(graph, rows)
            else:
                rows, initial = leave(rows, initial, alone=not is_seen(conv))
            rows = self.finish(graph, partial(conv, graph, rows, initial, edge_weight), layer, layer + 1)
        return leave(fused_linear(self.last, graph, rows, NOT_FUSED))


class APPNP(DeepStack):
    """`num_layers` linear layers with norm, ReLU and dropout in between, then k steps of personalised PageRank.

    Args: as `DeepStack`; k, alpha: of APPNPConv.

    Example:
        >>> model = dg.nn.APPNP(graph.num_feats, 8, graph.num_classes)
        >>> model(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    config_name = "appnp"

    def __init__(
        self,
        in_feats: int,
        hidden_feats: int,
        num_classes: int,
        num_layers: int = 2,
        *,
        k: int = 10,
        alpha: float = 0.1,
        **options: Any,
    ):
        super().__init__(in_feats, hidden_feats, num_classes, num_layers, **options)
        self.conv: APPNPConv = APPNPConv(k, alpha)  # behind the dropouts: masks are keyed by the order of modules
        number_sites(self)

    def layer_numbers(self) -> dict[str, float]:
        return {"k": self.conv.k, "alpha": self.conv.alpha}

    def make_layers(self, in_feats: int, hidden_feats: int, num_classes: int, num_layers: int) -> tuple[int, int]:
        widths = [in_feats] + [hidden_feats] * (num_layers - 1) + [num_classes]
        self.linears: nn.ModuleList = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        return num_layers - 1, num_layers - 1

    @opaque
    def forward(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        feats = self.dropped(graph, feats)
        for layer in range(len(self.drops)):
            run = partial(fused_linear, self.linears[layer], graph, enter(graph, feats))
            feats = self.finish(graph, run, layer, layer)
            del run
        feats = fused_linear(self.linears[-1], graph, feats, NOT_FUSED)
        edge_weight = self.edge_weight_of(graph)
        feats = leave(feats) if is_seen(self.conv) or not constant(edge_weight) else feats
        return leave(self.conv(graph, feats, edge_weight))
