"""Settings that everything shares: threads, algorithms, and the training configuration."""

import os
import re
from dataclasses import dataclass, fields

from distgnn.errors import InputError

MODELS = ("sage", "gcn", "gin", "gat", "gatv2", "gcn2", "appnp", "gine", "edgegat", "rgcn")
ATTENTION_MODELS = ("gat", "gatv2", "edgegat")
EDGE_MODELS = ("gine", "edgegat")
UNWEIGHTED_MODELS = {"gatv2": "gat", "gine": "gin", "edgegat": "gat", "rgcn": "gcn"}  # and what takes weights
DEEP_MODELS = ("gcn2", "appnp")
ONE_PASS_MODELS = ("sage", "gcn", "gat")  # a hidden layer is one function: see distgnn.ops
NORMS = ("layer", "batch", "graph", "pair", "none")
JUMPS = ("none", "cat", "max")
DTYPES = ("float32", "float64", "bfloat16")
UPDATES = ("owners", "copies")
WIRES = ("float32", "bfloat16", "int8", "int4")
METRICS = ("accuracy", "rocauc", "f1")
LR_SCHEDULES = ("constant", "cosine", "plateau")


def num_threads() -> int:
    """Threads of this process: DISTGNN_NUM_THREADS, else OMP_NUM_THREADS, else the cores it may run on.

    Raises:
        InputError: when the variable is not a positive number.
    """
    for name in ("DISTGNN_NUM_THREADS", "OMP_NUM_THREADS"):
        text = os.environ.get(name)
        if text:
            if not text.isdigit() or int(text) < 1:
                raise InputError(f"{name}={text}: expected a positive number of threads")
            return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Algorithm:
    """A schedule of exchanges: cd-0 (exact), cd-r (`delay` r), or 0c (`silent`: nothing is exchanged in training)."""

    name: str
    delay: int | None
    silent: bool = False

    @property
    def exact(self) -> bool:
        """Is every exchange synchronous?"""
        return self.delay is None and not self.silent

    @classmethod
    def parse(cls, name: str) -> "Algorithm":
        """From "cd-0", "cd-R" or "0c".

        Raises:
            InputError: for anything else.
        """
        if name == "0c":
            return cls(name, None, silent=True)
        match = re.fullmatch(r"cd-(\d{1,4})", name)
        if match is None:
            raise InputError(f"unknown algorithm {name!r}: choose cd-0 (exact), cd-R (R epochs late) or 0c (silent)")
        delay = int(match[1])
        return cls(name, delay or None)

    def check_update(self, update: str | None) -> str:
        """Who updates a vertex, "owners" or "copies"; None picks what the algorithm needs.

        Raises:
            InputError: for 0c with update on owners, who would have no rows of other ranks' vertices at all.
        """
        if update is None:
            return "copies" if self.silent else "owners"
        check_choice("update", update, UPDATES)
        if self.silent and update == "owners":
            raise InputError("0c needs update on copies: without exchanges an owner has no rows of other ranks")
        return update


@dataclass
class ModelConfig:
    """Which of our models, and its sizes.

    Args:
        name: "sage", "gcn", "gin", "gat", "gatv2", "gcn2", "appnp"; "gine" or "edgegat" (they use edge features);
            "rgcn" (it uses edge types).
        hidden_feats, num_layers: width of hidden layers, number of convolutions (appnp: of linear layers).
        dropout: after each hidden layer.
        norm: "layer", "batch", "graph", "pair" or "none", after each hidden layer.
        weighted: multiply messages by the graph's edge weights (not gatv2, gine, edgegat and rgcn).
        num_heads: of gat, gatv2 and edgegat; they share the hidden width.
        residual: add a hidden layer's input to its output (not gcn2 and appnp, which have the initial rows).
        jump: "none", "cat" or "max": read all hidden layers (jumping knowledge; not gcn2 and appnp).
        num_bases: of rgcn: relations share so many matrices (0: each has its own).
        remat: keep only the input of each hidden layer and compute it again backward (not gcn2 and appnp).
        label_reuse: share of training labels that are input in each epoch, the loss being on the others (0: none).
    """

    name: str = "sage"
    hidden_feats: int = 256
    num_layers: int = 3
    dropout: float = 0.5
    norm: str = "layer"
    weighted: bool = False
    num_heads: int = 4
    residual: bool = False
    jump: str = "none"
    num_bases: int = 0
    label_reuse: float = 0.0
    remat: bool = False

    def check(self) -> None:
        """Raise InputError for the first setting that no model can have."""
        check_choice("model", self.name, MODELS)
        check_choice("norm", self.norm, NORMS)
        check_choice("jump", self.jump, JUMPS)
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


@dataclass
class TrainConfig:
    """How to train. Everything is checked when the trainer is made.

    Args:
        epochs: passes over the whole graph, one optimiser step each.
        lr, weight_decay: of Adam.
        lr_schedule: "constant", "cosine" (to zero at the last epoch) or "plateau" (halved when the training loss
            has not fallen for 10 epochs).
        eval_every: epochs between evaluations; the last epoch is always evaluated.
        patience: stop after so many evaluations without a better validation metric (0: never).
        metric: accuracy, rocauc (mean over tasks) or f1 (micro); None picks by the kind of labels.
        seed: of weights and dropout masks.
        run_dir: run folder to write (None: nothing is written).
        overwrite: replace an existing run folder.
        trace: write a timeline of each rank into the run folder.
        checkpoint_every: epochs between checkpoints; with a run folder there is always one at the end.
        resume: go on from the run folder's newest checkpoint (from the start where there is none).
        timeout: seconds that one phase of an epoch may last before the job is ended (0: no limit).
        verify_every: epochs between comparisons of a training step with the exact one (0: never).
        inductive: train on the subgraph of training vertices; evaluation is on the whole graph all the same.
    """

    epochs: int = 200
    lr: float = 0.01
    weight_decay: float = 0.0
    lr_schedule: str = "constant"
    eval_every: int = 5
    patience: int = 0
    metric: str | None = None
    seed: int = 0
    run_dir: str | None = None
    overwrite: bool = False
    trace: bool = False
    checkpoint_every: int = 0
    resume: bool = False
    timeout: float = 600.0
    verify_every: int = 0
    inductive: bool = False

    def check(self) -> None:
        """Raise InputError for the first setting that makes no sense."""
        least_values = {"epochs": 1, "eval_every": 1, "patience": 0, "seed": 0, "weight_decay": 0.0}
        least_values |= {"checkpoint_every": 0, "timeout": 0.0, "verify_every": 0}
        for name, least in least_values.items():
            if not getattr(self, name) >= least:
                raise InputError(f"{name} is {getattr(self, name)}: expected at least {least}")
        if not 0 < self.lr <= 1e30:  # beyond it a step is no float32
            raise InputError(f"lr is {self.lr}: expected a positive number, at most 1e30")
        check_choice("lr_schedule", self.lr_schedule, LR_SCHEDULES)
        if self.metric is not None:
            check_choice("metric", self.metric, METRICS)

    def as_dict(self) -> dict:
        """The settings as TOML can hold them (None left out)."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise InputError unless `value` is one of `choices`."""
    if value not in choices:
        raise InputError(f"unknown {name} {value!r}: choose from {', '.join(choices)}")


def check_graph_has(model: str, num_edge_feats: int, num_relations: int) -> None:
    """Raise InputError for a graph without the edge features or edge types that a model needs."""
    if model in EDGE_MODELS and num_edge_feats < 1:
        raise InputError(f"{model} needs edge features: this graph has none (edge_feats.npy); choose another model")
    if model == "rgcn" and num_relations < 1:
        raise InputError("rgcn needs edge types: this graph has none (edge_types.npy); choose another model")
