"""How to train: epochs, learning rate, evaluation, the run folder."""

from dataclasses import dataclass, fields
from functools import partial
from importlib.util import find_spec
from typing import Any

from distgnn.config.extras import extended, extras
from distgnn.config.option import check_choice, check_values, documented, option, options_of
from distgnn.config.task import LOSSES, METRICS, NEGATIVES, TASKS
from distgnn.config.together import check_together
from distgnn.errors import InputError

OWN_RATES = {"adam": 0.003, "adamw": 0.003, "sgd": 0.01}  # where none is given; see docs/LOG.md
RATES = OWN_RATES | {name: rate for extra in extras().values() for name, rate in extra.rates.items()}
OPTIMIZERS = tuple(RATES)
LR_SCHEDULES = ("constant", "cosine", "one-cycle", "wsd")
OVER_ALL_EPOCHS = ("cosine", "one-cycle", "wsd")  # schedules whose rates depend on the number of epochs
PATIENT_EPOCHS, LEAST_PATIENCE = 50, 3  # of `dg.fit` and recipes: epochs, and evaluations whatever these are apart
LOGGERS = ("console", "csv", "tensorboard")

_training, _run_folder, _system, _output, _setting = (
    partial(option, panel=name) for name in ("Training", "Run folder", "Ranks and memory", "Output", "")
)


@documented
@dataclass
@extended
class TrainConfig:
    """How to train. Everything is checked when the trainer is made.

    Example:
        >>> dg.TrainConfig(optimizer="sgd").lr
        0.01
        >>> dg.TrainConfig(label_smoothing=2.0).check()
        Traceback (most recent call last):
        distgnn.errors.InputError: label_smoothing is 2.0: expected a number from 0 to 1
    """

    task: str = _training(
        "node", "What is predicted: classes or values, of vertices or of edges, or links.", choices=TASKS
    )
    target: str | None = _training(
        None,
        "Type of vertices that the task is on, in a graph of several types.",
        default_text="the one that has labels",
    )
    epochs: int = _training(200, "Passes over the whole graph, one step of the optimiser each.", least=1)
    optimizer: str = _training(
        "adam",
        "What makes a step of a gradient; adamw: Adam with decoupled weight decay; sgd: with momentum 0.9.",
        choices=tuple(OWN_RATES),
    )
    lr: float = _training(None, "Learning rate of the optimiser.", default_text="0.003 of adam and adamw, 0.01 of sgd")
    weight_decay: float = _training(0.0, "L2 penalty of the weights (of adamw their decay).", least=0.0)
    conv_weight_decay: float | None = _setting(
        None, "L2 penalty of the convolutions of a model by name.", least=0.0, default_text="weight_decay"
    )
    lr_schedule: str = _training(
        "constant",
        "Learning rate over epochs; cosine: to zero at the last epoch; one-cycle: up in 30 % of the epochs, then down "
        "to zero; wsd: warm-up in 10 %, then stable, decay in the last 20 %.",
        choices=LR_SCHEDULES,
    )
    eval_every: int = _training(5, "Epochs between evaluations; the last epoch is always evaluated.", least=1)
    patience: int = _training(
        0,
        "Stop after this many evaluations without a better validation metric, as a mean of three (0: never); of recipe "
        "fast and dg.fit as many as 50 epochs have.",
        least=0,
    )
    metric: str | None = _training(
        None,
        "rocauc: mean over tasks. f1: micro average. mse, mae: of values. mrr, hits@K: of links.",
        choices=METRICS,
        default_text="rocauc for multi-label graphs, else accuracy; of values their loss, of links mrr",
    )
    loss: str | None = _setting(None, "Of values.", choices=LOSSES, default_text="mse")
    label_smoothing: float = _setting(
        0.0, "Share of each label that all classes get alike in the cross entropy, as in torch (0: none)."
    )
    negatives: str = _setting(
        "uniform",
        "Negative edges of task link: both ends at random, or the source of an edge with another target.",
        choices=NEGATIVES,
    )
    num_negatives: int = _setting(1, "Negative edges for each training edge and step.", least=1)
    seed: int = _training(0, "Seed of weights and dropout masks.", least=0)
    run_dir: str | None = _run_folder(
        None, "Run folder to write.", default_text="on the command line runs/PARTS-MODEL-TIME, in Python none"
    )
    overwrite: bool = _run_folder(False, "Replace an existing run folder.")
    trace: bool = _run_folder(False, "Write a timeline of all ranks (Chrome, Perfetto) into the run folder.")
    checkpoint_every: int = _run_folder(
        0, "Epochs between checkpoints; a run folder always gets one at the end and on signals.", least=0
    )
    resume: bool = _run_folder(False, "Go on from the newest checkpoint of the run folder, if there is one.")
    timeout: float = _system(
        600.0, "Seconds after which a job in which nothing moves has been ended (0: no limit).", least=0.0
    )
    offload: str | None = _system(
        None, "Folder on a disk with room: rows that wait for the backward pass, and features, live in files there."
    )
    memory_report: bool = _system(False, "Say what each rank's memory was at its peak, by name.")
    verify_every: int = _setting(
        0, "Epochs between comparisons of a training step with the exact one (0: never).", least=0
    )
    inductive: bool = _training(False, "Train on the subgraph of training vertices; evaluate on the whole graph.")
    clip_grad: float = _setting(
        0.0,
        "Largest Euclidean norm of all gradients together; larger ones are scaled down to it (0: no limit).",
        least=0.0,
    )
    log: str | None = _output(
        "console",
        f"Where epochs are reported, with commas between: {', '.join(LOGGERS)}. csv and tensorboard write into the run "
        "folder.",
    )

    def __post_init__(self) -> None:
        if self.lr is None:
            self.lr = RATES.get(self.optimizer, RATES["adam"])  # of an unknown optimizer `check` speaks

    @property
    def may_stop(self) -> bool:
        """Whether a run may end before its last epoch without harm: its rates do not fall towards that."""
        return self.lr_schedule not in OVER_ALL_EPOCHS

    @property
    def loggers(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in (self.log or "").split(",") if name.strip())

    def check(self) -> None:
        """Raise InputError for the first setting that makes no sense."""
        check_values(self)
        if self.seed >= 2**63:
            raise InputError(f"seed is {self.seed}: expected at most 2**63 - 1")
        if not 0 < self.lr <= 1e30:  # beyond it a step is no float32
            raise InputError(f"lr is {self.lr}: expected a positive number, at most 1e30")
        if not 0 <= self.label_smoothing <= 1:
            raise InputError(f"label_smoothing is {self.label_smoothing}: expected a number from 0 to 1")
        check_together(**options_of(self))
        for name in self.loggers:
            check_choice("log", name, LOGGERS)
        if "tensorboard" in self.loggers and find_spec("tensorboard") is None:
            raise InputError("log tensorboard needs the package tensorboard: pip install tensorboard")

    def as_dict(self) -> dict[str, Any]:
        """The settings as TOML can hold them (None left out)."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}
