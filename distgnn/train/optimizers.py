"""Optimisers and schedulers of `torch.optim` in the place of the program's own.

Trainer(..., optimizer=torch.optim.AdamW)                          lr and weight decay of TrainConfig
Trainer(..., optimizer=lambda params: torch.optim.SGD(params, 0.1, momentum=0.9),
             scheduler=lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200))
"""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from distgnn.config import TrainConfig
from distgnn.config.extras import attached
from distgnn.errors import InputError
from distgnn.ops.gradients import is_rows
from distgnn.rows import local_of
from distgnn.train.steps.own_optimizers import SGD, Adam, AdamW, OwnOptimizer

OWN: dict[str, type[OwnOptimizer]] = {one.name: one for one in (Adam, AdamW, SGD)}


class TorchOptimizer:
    """A torch optimiser and, where there is one, its scheduler, as the trainer uses them.

    Args: scheduler: stepped once per epoch, ReduceLROnPlateau with the loss of the whole graph; config: its
        `lr_schedule` sets the learning rate of all groups, relative to `config.lr`, where it is not "constant".
    """

    def __init__(
        self, optimizer: torch.optim.Optimizer, make_scheduler: Callable[..., Any] | None, config: TrainConfig
    ):
        self.optimizer = optimizer
        # Settings that are off are left out: a later torch may have more of them
        groups = (((n, v) for n, v in group.items() if n != "params" and v) for group in optimizer.param_groups)
        shown = (", ".join(f"{name}={value}" for name, value in group) for group in groups)
        self.names: dict[str, Any] = {"optimizer": f"{type(optimizer).__name__}({', '.join(shown)})"}
        self.scheduler: Any | None = None if make_scheduler is None else make_scheduler(optimizer)
        if self.scheduler is not None and not callable(getattr(self.scheduler, "step", None)):
            raise InputError(f"scheduler made a {type(self.scheduler).__name__}: expected an object with `step`")
        self.names |= {} if self.scheduler is None else {"scheduler": _scheduler_text(self.scheduler)}
        follows = config.lr_schedule != "constant"
        self._factors = [float(group["lr"]) / config.lr for group in optimizer.param_groups] if follows else []

    @property
    def lr(self) -> float:
        return float(self.optimizer.param_groups[0]["lr"])

    def watch(self, model: nn.Module, graph: Any, say: Callable[[str], None]) -> None:
        """Nothing: torch's optimisers look at gradients only."""

    def begin(self) -> None:
        """Nothing."""

    def step(self) -> None:
        self.optimizer.step()

    def follow(self, rate: float, loss: float | None) -> None:
        for group, factor in zip(self.optimizer.param_groups, self._factors, strict=False):
            group["lr"] = rate * factor
        if self.scheduler is None or loss is None:
            return
        if isinstance(self.scheduler, torch.optim.lr_scheduler.ReduceLROnPlateau):
            self.scheduler.step(loss)
        else:
            self.scheduler.step()

    def objects(self) -> dict[str, Any]:
        """State of optimiser and scheduler, as a checkpoint keeps it."""
        state: dict[str, Any] = {"optimizer": self.optimizer.state_dict()}
        if self.scheduler is not None:
            state["scheduler"] = self.scheduler.state_dict()
        return state

    def load_objects(self, state: dict[str, Any]) -> None:
        self.optimizer.load_state_dict(state["optimizer"])
        if self.scheduler is not None:
            self.scheduler.load_state_dict(state["scheduler"])


def make_optimizer(
    config: TrainConfig, parameters: list[nn.Parameter], optimizer: Any, make_scheduler: Any
) -> OwnOptimizer | TorchOptimizer:
    """The trainer's optimiser; None: the program's own that `config` names. Raises: InputError for what is none."""
    if make_scheduler is not None:
        if optimizer is None:
            raise InputError("scheduler needs a torch optimiser: give optimizer=torch.optim.Adam, for example")
        if config.lr_schedule != "constant":
            raise InputError(f"lr_schedule {config.lr_schedule} and scheduler contradict each other: choose one")
        if not callable(make_scheduler):
            raise InputError(
                f"scheduler is a {type(make_scheduler).__name__}: expected a function that makes one of an optimiser"
            )
    if optimizer is not None and config.conv_weight_decay is not None:
        raise InputError("conv_weight_decay and a torch optimiser: give it groups of parameters instead")
    if optimizer is None:
        more = attached("optimizer") if config.optimizer not in OWN else ()
        mine: list[Any] = [local_of(one) for one in parameters]
        return (OWN | {one.name: one for one in more})[config.optimizer].of(mine, config)
    if any(map(is_rows, parameters)):
        raise InputError("tables of rows (dg.nn.NodeEmbedding) train with optimizers by name: adam, adamw, sgd")
    if config.optimizer != "adam":
        raise InputError(f"optimizer {config.optimizer} of the settings and a torch optimiser: choose one")
    if isinstance(optimizer, type) and issubclass(optimizer, torch.optim.Optimizer):
        taken = inspect.signature(optimizer).parameters
        options = {name: getattr(config, name) for name in ("lr", "weight_decay") if name in taken}
        optimizer = optimizer(parameters, **options)
    elif callable(optimizer):
        optimizer = optimizer(parameters)
    kind = type(optimizer).__name__
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InputError(f"optimizer is a {kind}: expected a torch.optim class, or a function that makes an optimiser")
    if hasattr(optimizer, "_distgnn_graph"):
        raise InputError("optimizer is a DistributedOptimizer: the trainer sums gradients itself, give the plain one")
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        raise InputError(f"{kind} needs the loss several times in a step: write a loop with dg.DistributedOptimizer")
    known = {id(parameter) for parameter in parameters}
    if not all(id(one) in known for group in optimizer.param_groups for one in group["params"]):
        raise InputError(f"{kind} has parameters that are not the model's, or need no gradient")
    return TorchOptimizer(optimizer, make_scheduler, config)


def decays_beside(config: TrainConfig, model: nn.Module) -> list[tuple[nn.Parameter, float]]:
    """Weights with a penalty of their own, and what it has beside the others': GCNII's convolutions (Chen et al.)."""
    if config.conv_weight_decay is None:
        return []
    found = [one for name, one in model.named_parameters() if name.startswith("convs.") and one.requires_grad]
    if not found:
        raise InputError("conv_weight_decay is for models by name: this one has no `convs`")
    return [(one, config.conv_weight_decay - config.weight_decay) for one in found]


def _scheduler_text(scheduler: Any) -> str:
    numbers = {name: value for name, value in vars(scheduler).items() if type(value) in (int, float, str)}
    shown = (f"{name}={value}" for name, value in numbers.items() if not name.startswith("_") and name != "last_epoch")
    return f"{type(scheduler).__name__}({', '.join(shown)})"
