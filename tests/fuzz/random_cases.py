"""Random graph x cut x model x norm x task x schedule x dtype: the same training on one rank and on P ranks.

A case is drawn from a number, and printed as the call that makes it again. Used by tests/nn/test_random_cases.py.
"""

import random
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from cut_graphs import dist_graph, gather_rows, on_rank_0, random_cut, random_graph, whole_graph
from mpi4py import MPI

from distgnn.config import EDGE_MODELS, MODELS, NORMS, UNWEIGHTED_MODELS, ModelConfig, TrainConfig
from distgnn.config.extras import extras
from distgnn.config.train import OPTIMIZERS
from distgnn.errors import InputError
from distgnn.nn import model_for
from distgnn.partition import VertexCut, cut_edges
from distgnn.train import Trainer

EPOCHS = 3
BOUNDS = {  # dtype: (of losses, of logits): rounding of sums in another order, through 3 steps of Adam
    "float64": (1e-8, 1e-3),  # Adam divides gradients that are zero but for rounding by 1e-8
    "float32": (1e-3, 0.1),
    "bfloat16": (3e-2, None),  # 8 bits of mantissa; a sign that flips in Adam moves single logits far
}
SCHEDULES = {  # all of them exact in every epoch of the test
    "cd-0": {},
    "cd-2 in warm-up": {"algorithm": "cd-2", "warmup_epochs": EPOCHS + 1},
    "aggregate first": {"transform_first": False},
    "no constant rows": {"cache_first": False},
}


@dataclass(frozen=True)
class Case:
    """One comparison; the defaults are the simplest values."""

    num_edges: int = 20
    num_nodes: int = 12
    seed: int = 0
    directed: bool = False
    self_loops: str = "keep"
    cut: str = "random"
    model: str = "sage"
    num_layers: int = 1
    norm: str = "none"
    dropout: float = 0.0
    weighted: bool = False
    block: str = "plain"
    residual: str = "linear"
    stem: str = "none"
    head: str = "conv"
    input_dropout: float = 0.0
    remat: bool = False
    label_reuse: float = 0.0
    schedule: str = "cd-0"
    dtype: str = "float64"
    optimizer: str = "adam"
    feat_norm: str = "none"
    task: str = "node"
    batches: int = 0

    def __str__(self) -> str:
        default = Case()
        changed = (f.name for f in fields(self) if getattr(self, f.name) != getattr(default, f.name))
        return f"Case({', '.join(f'{name}={getattr(self, name)!r}' for name in changed)})"

    @property
    def config(self) -> ModelConfig:
        """The model's settings."""
        names = ["num_layers", "norm", "dropout", "weighted", "block", "residual", "stem", "head", "input_dropout"]
        names += ["remat", "label_reuse"] if self.label_reuse else ["remat"]
        return ModelConfig(self.model, 8, **{name: getattr(self, name) for name in names})

    @property
    def training(self) -> TrainConfig:
        """The run's settings."""
        task = "node" if self.task == "multilabel" else self.task
        return TrainConfig(
            epochs=EPOCHS,
            eval_every=EPOCHS,
            optimizer=self.optimizer,
            task=task,
            **({"kfac_every": 2} if self.optimizer == "kfac" else {}),
            **({"cluster_batches": self.batches} if self.batches else {}),
        )

    def is_possible(self) -> bool:
        """Is this something that the program takes?"""
        try:
            self.config.check()
            self.config.check_beside(dtype=self.dtype)
            self.config.check_beside(task=self.training.task)
            self.training.check()
        except InputError:
            return False
        typed = self.model in (*EDGE_MODELS, "rgcn")
        return (
            self.num_edges >= 10
            and self.num_nodes >= 12
            and not (self.task == "link" and self.num_edges < 60)  # too few pairs to hold some out
            and not (typed and self.self_loops == "add")  # an added self-loop has neither features nor a type
            and not (self.remat and "cd-2" in SCHEDULES[self.schedule].get("algorithm", ""))
            and (not self.batches or self._goes_in_batches())
        )

    def _goes_in_batches(self) -> bool:
        return (
            not self.config.by_arc
            and not self.label_reuse
            and SCHEDULES[self.schedule].keys() <= {"transform_first", "cache_first"}
        )

    def data(self):
        """The graph, over all ranks the same."""
        typed = self.model in (*EDGE_MODELS, "rgcn")
        options = {"directed": self.directed, "weighted": self.weighted, "typed": typed}
        multilabel = self.task == "multilabel"
        data = random_graph(self.seed, self.num_nodes, self.num_edges, multilabel=multilabel, **options)
        if self.task == "regression":
            data.node_values = np.random.default_rng(self.seed).standard_normal((data.num_nodes, 2))
            data.node_values[::7] = np.nan
            return data.check()
        return data.split_links(0.1, 0.2, seed=self.seed) if self.task == "link" else data


def _owners(edges, parts, seed):
    return np.random.default_rng(seed).integers(0, parts, edges.num_nodes)


def _fewer(edges, parts, seed, **changes):
    """A cut that leaves the last part out, but for what is changed."""
    return replace(random_cut(edges, max(parts - 1, 1), seed), num_parts=parts, **changes)


def _arcs_at(edges, parts, seed, one, other):
    """Arcs lie with the owners of one of their ends, also the arcs back of undirected graphs."""
    owner = _owners(edges, parts, seed)
    return VertexCut(parts, owner[one], owner, owner[other] if edges.two_way else None)


def _labels_on_one_part(edges, data, parts, seed):
    cut = random_cut(edges, parts, seed)
    cut.owner[data.train] = parts - 1
    return cut


def _by_method(name):
    return lambda edges, data, parts, seed: cut_edges(edges, parts, name, seed=seed)


CUTS = {
    "random": lambda edges, data, parts, seed: random_cut(edges, parts, seed),
    "random, arc by arc": lambda edges, data, parts, seed: random_cut(edges, parts, seed, split_arcs=True),
    "part without arcs": lambda edges, data, *more: _fewer(edges, *more, owner=_owners(edges, *more)),
    "part without vertices": lambda edges, data, parts, seed: replace(
        random_cut(edges, parts, seed), owner=_owners(edges, max(parts - 1, 1), seed)
    ),
    "empty part": lambda edges, data, *more: _fewer(edges, *more),
    "no target halos": lambda edges, data, *more: _arcs_at(edges, *more, edges.dst, edges.src),
    "no source halos": lambda edges, data, *more: _arcs_at(edges, *more, edges.src, edges.dst),
    "labels on one part": _labels_on_one_part,
    **{name: _by_method(name) for name in ("metis", "libra", "cmr")},
}
CHOICES = {
    "directed": (False, True),
    "self_loops": ("keep", "add", "remove"),
    "cut": tuple(CUTS),
    "model": MODELS,
    "num_layers": (1, 2, 3),
    "norm": NORMS,
    "dropout": (0.0, 0.5),
    "weighted": (False, True),
    "block": ("plain", "plain", "residual", "preact"),
    "residual": ("linear", "linear", "identity"),
    "stem": ("none", "none", "linear"),
    "head": ("conv", "conv", "linear", "cat", "max"),
    "input_dropout": (0.0, 0.0, 0.3),
    "remat": (False, False, True),
    "label_reuse": (0.0, 0.0, 0.5) if "labels" in extras() else (0.0,),
    "schedule": tuple(SCHEDULES),
    "dtype": ("float64", "float64", "float32", "bfloat16"),
    "optimizer": OPTIMIZERS,
    "feat_norm": ("none", "none", "center", "standardize", "row-l2"),
    "task": ("node", "node", "node", "multilabel", "regression", "link"),
    "batches": (0, 0, 0, 1, 2) if "batches" in extras() else (0,),
}


def draw(number: int) -> Case:
    """Case `number`: a possible one, with graphs from almost no edges to several per vertex."""
    rng = random.Random(number)
    while True:
        chosen = {name: rng.choice(values) for name, values in CHOICES.items()}
        chosen["weighted"] &= chosen["model"] not in UNWEIGHTED_MODELS
        nodes = rng.choice((12, 20, 60))
        case = Case(rng.choice((10, nodes, 5 * nodes)), nodes, rng.randrange(1 << 20), **chosen)
        if case.is_possible():
            return case


def difference(case: Case, comm: MPI.Comm) -> str:
    """What differs between one rank and all ranks of `comm`, in words; "" for nothing. Collective: yes."""
    data = case.data()
    options = SCHEDULES[case.schedule] | {
        "dtype": case.dtype,
        "self_loops": case.self_loops,
        "feat_norm": case.feat_norm,
        "clusters": case.batches > 0,
    }
    cut = CUTS[case.cut](data.edge_list("stored", case.self_loops), data, comm.size, case.seed)
    many = _train(case, dist_graph(data, comm, cut, **options))
    one = on_rank_0(comm, lambda: _train(case, whole_graph(data, **options)))
    for name, found, expected, bound in zip(("losses", "logits"), many, one, BOUNDS[case.dtype], strict=True):
        if bound is None:
            continue
        size = max(float(np.abs(expected).max()), 1e-3)
        worst = float(np.abs(found - expected).max()) / size
        if not comm.allreduce(worst, op=MPI.MAX) <= bound:
            return f"{name} differ by {worst:.1e} of the largest, bound {bound:.0e}"
    return ""


def _train(case: Case, graph) -> tuple[np.ndarray, np.ndarray]:
    """(losses, logits of all vertices in the order of ids)."""
    torch.manual_seed(case.seed)
    trainer = Trainer(model_for(case.config, graph, case.training.task), graph, case.training)
    losses = trainer.fit().losses
    return np.array(losses), gather_rows(graph, trainer.predict().float().numpy())
