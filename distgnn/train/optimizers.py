"""The program's own optimisers, and those of `torch.optim` in their place.

Trainer(..., optimizer=torch.optim.AdamW)                          lr and weight decay of TrainConfig
Trainer(..., optimizer=lambda params: torch.optim.SGD(params, 0.1, momentum=0.9),
             scheduler=lambda optimizer: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200))

The program's own optimisers: what the trainer and checkpoints ask of them, and Adam, AdamW and SGD.

Steps are torch's functional forms. `torch.optim.Adam` does the same arithmetic, but making one imports torch's
compiler: 1.4 s at the start of every rank. Fused: one pass over memory for all parameters, where torch's other forms
take seven. A step of a cluster batch is short beside a first layer of thousands of columns.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import nn
from torch.optim.adam import adam
from torch.optim.adamw import adamw
from torch.optim.sgd import sgd

from distgnn.config import TrainConfig
from distgnn.config.extras import attached
from distgnn.errors import InputError
from distgnn.ops.sums import is_rows
from distgnn.rows import local_of

MOMENTUM = 0.9


class OwnOptimizer:
    """An optimiser whose state is tensors, a few for each parameter; every `.grad` must be there at each step.

    Notes: a subclass sets `name`, one of `OPTIMIZERS` and the name of its file in a checkpoint, and says in `columns`
        what it keeps.
    """

    name = ""

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float = 0.0):
        self.lr: float = lr
        self.weight_decay: float = weight_decay
        self.parameters = parameters

    @classmethod
    def of(cls, parameters: list[nn.Parameter], config: TrainConfig) -> "OwnOptimizer":
        return cls(parameters, config.lr, config.weight_decay)

    def watch(self, model: nn.Module, graph: Any, say: Callable[[str], None]) -> None:
        """Before the first step: the model, the graph it trains on, and how to tell the user something. Collective."""

    def begin(self) -> None:
        """Before the forward pass of a step."""

    def step(self) -> None:
        """Move every parameter along its gradient."""
        raise NotImplementedError

    def columns(self) -> dict[str, Sequence[torch.Tensor]]:
        """What is kept between steps, by name: one tensor for each parameter."""
        raise NotImplementedError

    @property
    def gradients(self) -> list[torch.Tensor]:
        return [parameter.grad for parameter in self.parameters if parameter.grad is not None]

    def follow(self, rate: float, _loss: float | None) -> None:
        self.lr = rate

    @property
    def names(self) -> dict[str, Any]:
        """What is not the program's own: a resumed run must have the same."""
        return {}

    def objects(self) -> dict[str, Any]:
        """States that are no tensors alone: none."""
        return {}

    def load_objects(self, state: dict[str, Any]) -> None:
        """Take over what `objects` gave."""

    def state(self) -> dict[str, torch.Tensor]:
        """What a checkpoint keeps, by name; the tensors are not copied."""
        return {f"{name}.{i}": tensor for name, tensors in self.columns().items() for i, tensor in enumerate(tensors)}

    def state_like(self, _found: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What a checkpoint must have to be loaded, in names, shapes and dtypes; `_found`: what it has."""
        return self.state()

    @torch.no_grad()
    def load_state(self, state: dict[str, torch.Tensor]) -> None:
        """Take over what `state` gave; names and shapes must be the same."""
        for name, tensor in self.state().items():
            tensor.copy_(state[name])


class Adam(OwnOptimizer):
    """Adam with L2 weight decay. Source: Kingma and Ba, ICLR'15."""

    name = "adam"
    _move: ClassVar[Callable[..., None]] = staticmethod(adam)

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float = 0.0):
        super().__init__(parameters, lr, weight_decay)
        self.means: list[torch.Tensor] = [torch.zeros_like(parameter) for parameter in parameters]
        self.squares: list[torch.Tensor] = [torch.zeros_like(parameter) for parameter in parameters]
        self.steps: list[torch.Tensor] = [torch.zeros(()) for _ in parameters]

    @torch.no_grad()
    def step(self) -> None:
        self._move(
            list[torch.Tensor](self.parameters), self.gradients, self.means, self.squares, [], self.steps,
            foreach=False, fused=True, amsgrad=False, beta1=0.9, beta2=0.999, lr=self.lr,
            weight_decay=self.weight_decay, eps=1e-8, maximize=False,
        )  # fmt: skip

    def columns(self) -> dict[str, Sequence[torch.Tensor]]:
        return {"mean": self.means, "square": self.squares, "steps": self.steps}


class AdamW(Adam):
    """Adam whose weight decay shrinks the weights themselves. Source: Loshchilov and Hutter, ICLR'19."""

    name = "adamw"
    _move: ClassVar[Callable[..., None]] = staticmethod(adamw)


class SGD(OwnOptimizer):
    """v ← 0.9 v + gradient + weight decay · w;  w ← w − lr · v."""

    name = "sgd"

    def __init__(self, parameters: list[nn.Parameter], lr: float, weight_decay: float = 0.0):
        super().__init__(parameters, lr, weight_decay)
        self.velocities: list[torch.Tensor] = [torch.zeros_like(parameter) for parameter in parameters]

    @torch.no_grad()
    def step(self) -> None:
        sgd(
            list[torch.Tensor](self.parameters), self.gradients, list[torch.Tensor | None](self.velocities),
            foreach=False, weight_decay=self.weight_decay, momentum=MOMENTUM, lr=self.lr, dampening=0.0,
            nesterov=False, maximize=False,
        )  # fmt: skip

    def columns(self) -> dict[str, Sequence[torch.Tensor]]:
        return {"velocity": self.velocities}


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
