"""Which model, and its sizes."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from distgnn.config.extras import extended, touched
from distgnn.config.option import check_values, documented, option, options_of
from distgnn.config.task import DECODERS
from distgnn.config.together import ATTENTION_MODELS, DEEP_MODELS, ONE_PASS_MODELS, check_together
from distgnn.errors import InputError

MODELS = ("sage", "gcn", "gin", "gat", "gatv2", "gcn2", "appnp", "gine", "edgegat", "rgcn")
EDGE_MODELS = ("gine", "edgegat")
NORMS = ("layer", "batch", "graph", "pair", "none")
JUMPS = ("none", "cat", "max")

_option = partial(option, panel="Model")


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
        "Layers; gine and edgegat use edge features, rgcn edge types. Few labels with sparse features: appnp, and "
        "other defaults, which a line says.",
        choices=MODELS,
        name="model",
    )
    hidden_feats: int = _option(256, "Width of hidden layers.", least=1)
    num_layers: int = _option(3, "Number of convolutions (appnp: of linear layers).", least=1)
    dropout: float = _option(0.5, "Dropout after each hidden layer; masks belong to vertices, not to ranks.")
    norm: str = _option("layer", "Normalisation after each hidden layer.", choices=NORMS)
    weighted: bool = _option(
        False, "Multiply messages by the graph's edge weights (not gatv2, gine, edgegat and rgcn)."
    )
    num_heads: int = _option(4, "Heads of gat, gatv2 and edgegat; they share the hidden width.", least=1)
    residual: bool = _option(False, "Add a hidden layer's input to its output (not gcn2 and appnp).")
    jump: str = _option("none", "How to read all hidden layers (jumping knowledge; not gcn2 and appnp).", choices=JUMPS)
    num_bases: int = _option(0, "Of rgcn: number of matrices that relations share (0: each has its own).", least=0)
    remat: bool = _option(
        False, "Keep only the input of each hidden layer and compute the layer again backward (not gcn2 and appnp)."
    )
    decoder: str | None = _option(
        None,
        "What makes a number of the rows of two vertices (tasks on pairs): their product's sum, an MLP of the product, "
        "or an MLP of both side by side.",
        choices=DECODERS,
        default_text="dot for links, concat for edges",
    )

    def check(self) -> None:
        """Raise InputError for the first setting that no model can have."""
        check_values(self)
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: expected a probability from 0 up to, but not including, 1")
        self.check_beside()

    def check_beside(self, **known: Any) -> None:
        """Raise InputError for a model that does not go with these settings, given by the names of their options."""
        check_together(**options_of(self), by_arc=self.by_arc, **known)

    @property
    def takes_sparse_feats(self) -> bool:
        """Can its first layer multiply sparse rows? What an extra puts around a model takes dense ones."""
        return self.name in ONE_PASS_MODELS and not (self.residual or self.weighted or touched(self))

    @property
    def by_arc(self) -> str:
        """The model, in words, that makes messages arc by arc, at owners; empty for models of sums and means."""
        weighted = self.weighted and self.name in DEEP_MODELS  # normalized by the weights of all in-arcs
        by_arc = weighted or self.name in (*ATTENTION_MODELS, "gine", "rgcn")
        return f"{self.name}{' with --weighted' * self.weighted}" * by_arc


def check_graph_has(model: str, num_edge_feats: int, num_relations: int) -> None:
    """Raise InputError for a graph without the edge features or edge types that a model needs."""
    if model in EDGE_MODELS and num_edge_feats < 1:
        raise InputError(f"{model} needs edge features: this graph has none (edge_feats.npy); choose another model")
    if model == "rgcn" and num_relations < 1:
        raise InputError("rgcn needs edge types: this graph has none (edge_types.npy); choose another model")


def decoder_for(task: str, decoder: str | None) -> str | None:
    """The decoder of a task: the one asked for, or its own; None for tasks on vertices."""
    check_together(task=task, decoder=decoder)
    return decoder or {"link": "dot", "edge": "concat", "edge-regression": "concat"}.get(task)
