"""Which model, and its sizes."""

from dataclasses import dataclass
from functools import partial

from distgnn.config.options.option import check_choices, documented, option
from distgnn.config.task import DECODERS
from distgnn.errors import InputError

MODELS = ("sage", "gcn", "gin", "gat", "gatv2", "gcn2", "appnp", "gine", "edgegat", "rgcn")
ATTENTION_MODELS = ("gat", "gatv2", "edgegat")
EDGE_MODELS = ("gine", "edgegat")
UNWEIGHTED_MODELS = {"gatv2": "gat", "gine": "gin", "edgegat": "gat", "rgcn": "gcn"}  # and what takes weights
DEEP_MODELS = ("gcn2", "appnp")
ONE_PASS_MODELS = ("sage", "gcn", "gat")  # a hidden layer is one function: see distgnn.ops
NORMS = ("layer", "batch", "graph", "pair", "none")
JUMPS = ("none", "cat", "max")


_option = partial(option, panel="Model")


@documented
@dataclass
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
    hidden_feats: int = _option(256, "Width of hidden layers.")
    num_layers: int = _option(3, "Number of convolutions (appnp: of linear layers).")
    dropout: float = _option(0.5, "Dropout after each hidden layer; masks belong to vertices, not to ranks.")
    norm: str = _option("layer", "Normalisation after each hidden layer.", choices=NORMS)
    weighted: bool = _option(
        False, "Multiply messages by the graph's edge weights (not gatv2, gine, edgegat and rgcn)."
    )
    num_heads: int = _option(4, "Heads of gat, gatv2 and edgegat; they share the hidden width.")
    residual: bool = _option(False, "Add a hidden layer's input to its output (not gcn2 and appnp).")
    jump: str = _option("none", "How to read all hidden layers (jumping knowledge; not gcn2 and appnp).", choices=JUMPS)
    num_bases: int = _option(0, "Of rgcn: number of matrices that relations share (0: each has its own).")
    label_reuse: float = _option(
        0.0, "Share of training labels that are input in each epoch; the loss is on the others (0: none)."
    )
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
        check_choices(self)
        self._check_numbers()
        if self.remat and (self.name in DEEP_MODELS or self.norm == "batch"):
            raise InputError("remat is for stacks of equal layers without batch norm: not gcn2, appnp or norm batch")
        if self.name in DEEP_MODELS and (self.residual or self.jump != "none"):
            raise InputError(f"{self.name} has a connection to its first rows already: leave residual and jump out")
        if self.name in UNWEIGHTED_MODELS and self.weighted:
            other = UNWEIGHTED_MODELS[self.name]
            raise InputError(f"{self.name} takes no edge weights: choose {other}, or leave weighted out")
        if self.num_bases and self.name != "rgcn":
            raise InputError(f"{self.name} has no relations to share weights between: num_bases is for rgcn")
        if self.name in ATTENTION_MODELS and self.hidden_feats % self.num_heads:
            raise InputError(f"hidden_feats is {self.hidden_feats}: expected a multiple of num_heads, {self.num_heads}")

    @property
    def takes_sparse_feats(self) -> bool:
        """Can its first layer multiply sparse rows?"""
        return self.name in ONE_PASS_MODELS and not (self.label_reuse or self.residual or self.weighted)

    @property
    def by_arc(self) -> str:
        """Which model makes messages arc by arc, at owners, in words; empty for models of sums and means."""
        weighted = self.weighted and self.name in DEEP_MODELS  # normalized by the weights of all in-arcs
        if not weighted and self.name not in (*ATTENTION_MODELS, "gine", "rgcn"):
            return ""
        return f"{self.name}{' with --weighted' * self.weighted} works arc by arc"

    def check_copies(self) -> None:
        """Raise InputError for a model that does not go with update on copies."""
        if self.by_arc:
            raise InputError(
                f"{self.by_arc}, which update on copies (also of 0c and preset distgnn) does not: choose update "
                "owners, or model sage, gcn or gin"
            )

    def check_task(self, task: str) -> None:
        """Raise InputError for a model that does not predict what this task does."""
        if task != "node" and self.label_reuse:
            raise InputError(f"label_reuse needs classes of vertices: leave it out of task {task}")

    def check_dtype(self, dtype: str) -> None:
        """Raise InputError for a model that does not take rows of this dtype."""
        one_pass = self.name in ONE_PASS_MODELS and self.norm in ("layer", "none") and self.jump == "none"
        if dtype == "bfloat16" and (not one_pass or self.label_reuse or (self.name == "gat" and self.weighted)):
            raise InputError(
                f"bfloat16 is for {', '.join(ONE_PASS_MODELS)} with norm layer or none, without jump and label reuse "
                "(and gat without weights): choose float32"
            )

    def _check_numbers(self) -> None:
        for name in ("hidden_feats", "num_layers", "num_heads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}: expected at least 1")
        if self.num_bases < 0:
            raise InputError(f"num_bases is {self.num_bases}: expected at least 0")
        if not 0 <= self.label_reuse < 1:
            raise InputError(f"label_reuse is {self.label_reuse}: expected a share from 0 up to, but not including, 1")
        if not 0 <= self.dropout < 1:
            raise InputError(f"dropout is {self.dropout}: expected a probability from 0 up to, but not including, 1")


def check_graph_has(model: str, num_edge_feats: int, num_relations: int) -> None:
    """Raise InputError for a graph without the edge features or edge types that a model needs."""
    if model in EDGE_MODELS and num_edge_feats < 1:
        raise InputError(f"{model} needs edge features: this graph has none (edge_feats.npy); choose another model")
    if model == "rgcn" and num_relations < 1:
        raise InputError("rgcn needs edge types: this graph has none (edge_types.npy); choose another model")
