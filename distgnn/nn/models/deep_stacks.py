"""Deep models: linear layers around propagation that has few parameters or none, so that depth costs little."""

from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from distgnn.nn.conv.appnp_conv import APPNPConv
from distgnn.nn.conv.gcn2_conv import GCN2Conv
from distgnn.nn.conv.graph_module import is_watched
from distgnn.nn.dropout import Dropout, number_sites
from distgnn.nn.fusion import NOT_FUSED
from distgnn.nn.models.stacks import Described, fused_layer, fused_linear, make_norms
from distgnn.ops.entry import opaque
from distgnn.ops.graph_view import GraphView


class DeepStack(Described):
    """Shared by deep models: `make_layers` says which layers, of which `num_norms` have a norm and `num_drops` dropout.

    Args: as `Stack`, without residual, jump and remat.

    Shape: [O, in_feats] to logits [O, num_classes].
    """

    def __init__(self, *sizes: int, dropout: float = 0.5, norm: str = "none", weighted: bool = False):
        super().__init__()
        self.weighted, self.norm = weighted, norm
        self.sizes = (sizes[0], sizes[1], sizes[2])
        num_norms, num_drops = self.make_layers(*sizes)
        self.norms: nn.ModuleList | None = make_norms(norm, sizes[1], num_norms)
        self.drops = nn.ModuleList(Dropout(dropout) for _ in range(num_drops))
        number_sites(self)

    def make_layers(self, in_feats: int, hidden_feats: int, num_classes: int, num_layers: int) -> tuple[int, int]:
        """Make the layers that come before norms and dropout; returns how many norms and dropouts there are."""
        raise NotImplementedError

    def finish(
        self, graph: GraphView, run: Any, feats: torch.Tensor, norm: int | None, drop: int, watched: bool = False
    ) -> torch.Tensor:
        """A hidden layer `run(fusion=...)` of `feats` with norm (None: without), ReLU and dropout, by number.

        Args: watched: somebody may keep what `run` makes.
        """
        module = None if self.norms is None or norm is None else self.norms[norm]
        return fused_layer(graph, run, module, self.drops[drop], feats, not watched, not watched)


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

    def own_settings(self) -> dict[str, Any]:
        return {"num_layers": len(self.convs)}

    def layer_numbers(self) -> dict[str, float]:
        return {"alpha": self.alpha, "lambda_": self.lambda_}

    def make_layers(self, in_feats: int, hidden_feats: int, num_classes: int, num_layers: int) -> tuple[int, int]:
        self.first, self.last = nn.Linear(in_feats, hidden_feats), nn.Linear(hidden_feats, num_classes)
        options: dict[str, Any] = {"alpha": self.alpha, "lambda_": self.lambda_}
        convs = [GCN2Conv(hidden_feats, layer + 1, allow_zero_in_degree=True, **options) for layer in range(num_layers)]
        for conv in convs:
            nn.init.xavier_uniform_(conv.weight1)  # DGL's standard normal weights blow up from a few layers on
        self.convs: nn.ModuleList = nn.ModuleList(convs)
        return num_layers, num_layers + 1

    @opaque
    def forward(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        edge_weight = self.edge_weight_of(graph)
        rows = initial = self.finish(graph, partial(fused_linear, self.first, graph, feats), feats, None, 0)
        for layer, conv in enumerate(self.convs):
            run = partial(conv, graph, rows, initial, edge_weight)
            rows = self.finish(graph, run, rows, layer, layer + 1, is_watched(conv))
        return fused_linear(self.last, graph, rows, NOT_FUSED)


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

    def own_settings(self) -> dict[str, Any]:
        return {"num_layers": len(self.linears)}

    def layer_numbers(self) -> dict[str, float]:
        return {"k": self.conv.k, "alpha": self.conv.alpha}

    def make_layers(self, in_feats: int, hidden_feats: int, num_classes: int, num_layers: int) -> tuple[int, int]:
        widths = [in_feats] + [hidden_feats] * (num_layers - 1) + [num_classes]
        self.linears: nn.ModuleList = nn.ModuleList(nn.Linear(*pair) for pair in pairwise(widths))
        return num_layers - 1, num_layers - 1

    @opaque
    def forward(self, graph: GraphView, feats: torch.Tensor) -> torch.Tensor:
        for layer in range(len(self.drops)):
            run = partial(fused_linear, self.linears[layer], graph, feats)
            feats = self.finish(graph, run, feats, layer, layer)
        return self.conv(graph, fused_linear(self.linears[-1], graph, feats, NOT_FUSED), self.edge_weight_of(graph))
