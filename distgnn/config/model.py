"""Which model, and its sizes."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from distgnn.config.extras import extended, touched
from distgnn.config.option import check_choice, check_values, documented, option, options_of
from distgnn.config.task import DECODERS
from distgnn.config.together import ATTENTION_MODELS, DEEP_MODELS, ONE_PASS_MODELS, TYPED_MODELS, check_together
from distgnn.errors import InputError

MODELS = ("sage", "gcn", "gin", "gat", "gatv2", "gcn2", "appnp", "gine", "edgegat", "rgcn")
EDGE_MODELS = ("gine", "edgegat")
ALL_MODELS = (*MODELS, "rgat", "hgt")  # with those that need a graph of several types
NORMS = ("layer", "batch", "graph", "pair", "none")
BLOCKS = ("plain", "residual", "preact")
RESIDUALS = ("linear", "identity")
STEMS = ("none", "linear")
HEADS = ("conv", "linear", "cat", "max")

_option = partial(option, panel="Model")
_setting = partial(option, panel="")


@dataclass(frozen=True)
class Block:
    """What is around the convolutions of a stack.

    Args:
        block: "plain": x' = drop(relu(norm(conv(x)))); "residual": conv(x) + R x in place of conv(x); "preact":
            x' = x + FF(n, conv(n)), n = norm(x), with FF two linear layers, which needs stem and head.
        residual: of "residual": R is a "linear" layer of its own, or the "identity" where the widths are the same.
        stem: "linear": a linear layer and dropout in front, so that all convolutions are hidden layers.
        head: what gives the logits: the last "conv", or a linear layer behind all convolutions that reads the last
            ("linear"), all side by side ("cat"), or the largest of each column ("max": jumping knowledge).
        input_dropout: dropout on the input.

    Source: residual: Luo et al., NeurIPS'24 (tunedGNN); preact: Platonov et al., ICLR'23 ("sep" models);
        jumping knowledge: Xu et al., ICML'18.

    Example:
        >>> block = dg.nn.Block("residual", head="linear")
        >>> dg.nn.GCN(graph.num_feats, 8, graph.num_classes, block=block)(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    block: str = "plain"
    residual: str = "linear"
    stem: str = "none"
    head: str = "conv"
    input_dropout: float = 0.0

    def __post_init__(self) -> None:
        for name, known in (("block", BLOCKS), ("residual", RESIDUALS), ("stem", STEMS), ("head", HEADS)):
            check_choice(name, getattr(self, name), known)
        if self.block == "preact" and self.head in ("cat", "max"):
            raise InputError(f"block preact adds all layers up: leave head {self.head} out")
        if not 0 <= self.input_dropout < 1:
            raise InputError(
                f"input_dropout is {self.input_dropout}: expected a probability from 0 up to, but not including, 1"
            )

    @property
    def has_stem(self) -> bool:
        return self.stem == "linear" or self.block == "preact"

    @property
    def has_head(self) -> bool:
        return self.head != "conv" or self.block == "preact"

    @property
    def is_bare(self) -> bool:
        """Are there convolutions only?"""
        return self.block == "plain" and not self.has_stem and not self.has_head and not self.input_dropout


@documented
@dataclass
@extended
class ModelConfig:
    """Which of our models, and its sizes.

    Example:
        >>> config = dg.ModelConfig("gcn", hidden_feats=8, num_layers=2)
        >>> dg.nn.model_for(config, graph)(graph, graph.feats).shape
        torch.Size([60, 4])
    """

    name: str = _option(
        "sage",
        "Layers; gine and edgegat use edge features, rgcn edge types; rgcn, rgat and hgt types of vertices. Few labels "
        "with sparse features: appnp, and other defaults, which a line says.",
        choices=ALL_MODELS,
        name="model",
    )
    hidden_feats: int = _option(256, "Width of hidden layers.", least=1)
    num_layers: int = _option(3, "Number of convolutions (appnp: of linear layers).", least=1)
    dropout: float = _option(0.5, "Dropout after each hidden layer; masks belong to vertices, not to ranks.")
    norm: str = _option("layer", "Normalisation after each hidden layer.", choices=NORMS)
    weighted: bool = _option(
        False, "Multiply messages by the graph's edge weights (not gatv2, gine, edgegat, rgcn, rgat and hgt)."
    )
    num_heads: int = _option(4, "Heads of gat, gatv2, edgegat, rgat and hgt; they share the hidden width.", least=1)
    block: str = _option(
        "plain",
        "A hidden layer: norm, ReLU and dropout of conv(x) (plain), of conv(x) and a residual (residual), or "
        "x + FF(n, conv(n)) with n = norm(x) (preact). Not gcn2 and appnp.",
        choices=BLOCKS,
    )
    residual: str = _setting("linear", "Of block residual: a linear layer of the input, or it.", choices=RESIDUALS)
    stem: str = _setting("none", "A linear layer in front of the convolutions (preact: always).", choices=STEMS)
    head: str = _setting(
        "conv",
        "What gives the logits: the last convolution, or a linear layer behind them that reads the last hidden layer, "
        "or all of them (cat, max: jumping knowledge).",
        choices=HEADS,
    )
    input_dropout: float = _setting(0.0, "Dropout on the features.")
    num_bases: int = _setting(0, "Of rgcn: number of matrices that relations share (0: each has its own).", least=0)
    remat: bool = _option(
        False, "Keep only the input of each hidden layer and compute the layer again backward (not gcn2 and appnp)."
    )
    decoder: str | None = _setting(
        None,
        "What makes a number of the rows of two vertices (tasks on pairs): their product's sum, an MLP of the product, "
        "or an MLP of both side by side.",
        choices=DECODERS,
        default_text="dot for links, concat for edges",
    )

    def check(self) -> None:
        """Raise InputError for the first setting that no model can have."""
        check_values(self)
        _ = self.around  # a Block checks itself
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: expected a probability from 0 up to, but not including, 1")
        self.check_beside()

    def check_beside(self, **known: Any) -> None:
        """Raise InputError for a model that does not go with these settings, given by the names of their options."""
        check_together(**options_of(self), by_arc=self.by_arc, is_bare=self.around.is_bare, **known)

    @property
    def around(self) -> Block:
        """What is around the convolutions."""
        return Block(self.block, self.residual, self.stem, self.head, self.input_dropout)

    @property
    def takes_sparse_feats(self) -> bool:
        """Can its first layer multiply sparse rows? What an extra puts around a model takes dense ones."""
        dropped = self.input_dropout > 0
        return self.name in ONE_PASS_MODELS and not (dropped or self.weighted or touched(self))

    @property
    def by_arc(self) -> str:
        """The model, in words, that makes messages arc by arc, at owners; empty for models of sums and means."""
        weighted = self.weighted and self.name in DEEP_MODELS  # normalized by the weights of all in-arcs
        by_arc = weighted or self.name in (*ATTENTION_MODELS, *TYPED_MODELS, "gine")
        return f"{self.name}{' with --weighted' * self.weighted}" * by_arc


def check_graph_has(model: str, num_edge_feats: int, num_relations: int) -> None:
    """Raise InputError for a graph without the edge features or edge types that a model needs."""
    if model in EDGE_MODELS and num_edge_feats < 1:
        raise InputError(f"{model} needs edge features: this graph has none (edge_feats.npy); choose another model")
    if model in ALL_MODELS[len(MODELS) :]:
        raise InputError(f"{model} is of graphs of several types, with relations: this graph has one; choose gat")
    if model == "rgcn" and num_relations < 1:
        raise InputError("rgcn needs edge types: this graph has none (edge_types.npy); choose another model")


def decoder_for(task: str, decoder: str | None) -> str | None:
    """The decoder of a task: the one asked for, or its own; None for tasks on vertices."""
    check_together(task=task, decoder=decoder)
    return decoder or {"link": "dot", "edge": "concat", "edge-regression": "concat"}.get(task)
