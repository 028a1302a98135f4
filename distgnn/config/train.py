"""How to train: epochs, learning rate, evaluation, the run folder."""

from dataclasses import dataclass, fields

from distgnn.config.choices import check_choice
from distgnn.errors import InputError

METRICS = ("accuracy", "rocauc", "f1")
LR_SCHEDULES = ("constant", "cosine", "plateau")


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
