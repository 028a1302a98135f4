"""The step of K-FAC.

    A = mean of x x'        G = n g'g        of each weight [I, D]: see recorder.py; n: terms of the loss
    pi = sqrt(mean eigenvalue of A / of G)
    U = (A + pi sqrt(lambda) I)^-1  dW  (G + sqrt(lambda) / pi I)^-1
    nu = min(1, sqrt(kappa / (eta^2 sum over weights of <U, dW>)))          the trust ratio
    v <- 0.9 v + nu U        W <- W - eta v

The mean loss over n rows makes g 1 / n times what a row gives alone: n g'g is the mean of its squares over those rows.

A and G are running means over the steps that recorded. These are the first ones and then every few; inverses are made
anew after each, and when a higher loss has raised lambda. Biases, norms and weights that were not seen: Adam.

Source: Martens and Grosse, ICML'15; the trust ratio as in Ba et al., ICLR'17; convolutions of a graph: Izadi et al.,
Optimization of graph neural networks with natural gradient descent, 2020.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from distgnn.comm import agree
from distgnn.config import TrainConfig
from distgnn.config.extras import part_of
from distgnn.errors import RunError
from distgnn.extras.kfac.extra import KfacOptions
from distgnn.extras.kfac.recorder import INPUT, OUTPUT, Key, Moment, Recorder, Use
from distgnn.ops.rowwise.products import product
from distgnn.train.optimizers import Adam, OwnOptimizer

STEP_PER_RATE = 3.0  # eta over the learning rate, which is Adam's
TRUST = 0.01  # kappa
MOMENTUM = 0.9
MEMORY = 0.9  # of factors
TINY = 1e-30
# Of damping: a loss is higher where it is above the smallest of the last ones by this share of it, and by this share of
# the first one (near its end a loss moves by masks alone)
RISE, NOISE, LOSSES = 0.1, 0.01, 5
GROWTH, DECAY = 2.0, 0.95
MOST = 1e4  # times the lambda of the settings


class Damping:
    """How much curvature is trusted: lambda of the next step, raised by one after which the loss is higher, lowered
    slowly otherwise.

    Args: start: lambda of the settings, never gone below.
    """

    def __init__(self, start: float):
        self.start: float = start
        self.value: float = start
        self._first, self._losses = math.inf, [math.inf] * LOSSES

    def follow(self, loss: float) -> bool:
        """After a step that began with this loss (of the whole graph): was lambda raised?"""
        lowest = min(self._losses)
        if math.isinf(self._first):
            self._first = loss
        rose = loss > lowest + RISE * lowest + NOISE * self._first
        self._losses = [*self._losses[1:], loss]
        if rose:
            self.value = min(self.value * GROWTH, self.start * MOST)
            self._losses = [math.inf] * (LOSSES - 1) + [loss]  # one rise counts once
        else:
            self.value = max(self.value * DECAY, self.start)
        return rose

    def numbers(self) -> list[float]:
        return [self.value, self._first, *self._losses]

    def load(self, numbers: list[float]) -> None:
        self.value, self._first, *self._losses = numbers


@dataclass
class _Weight:
    """A weight that K-FAC moves: where its factors are, its velocity and the inverses of (input, output)."""

    number: int
    parameter: nn.Parameter
    use: Use
    velocity: torch.Tensor
    inverses: list[torch.Tensor]

    def direction(self, graph: Any, gradient: torch.Tensor) -> torch.Tensor:
        """The gradient with both inverses applied."""
        of_input, of_output = self.inverses
        left, right = (of_output, of_input) if self.use.turned else (of_input, of_output)
        rows = gradient * left[:, None] if left.dim() == 1 else product(graph, left, gradient)
        return rows * right if right.dim() == 1 else product(graph, rows, right)


class KFAC(OwnOptimizer):
    """Natural gradient with Kronecker factors, and Adam for what has none.

    Args:
        parameters, lr, weight_decay: as `OwnOptimizer`; Adam moves with `lr`, K-FAC with `STEP_PER_RATE` times it.
        every: steps between recordings, once the first ones, which come closer together, are done.
        damping: lambda.

    Notes: memory: for each weight its velocity, both factors and both inverses. Time: two products of a weight's size
        with its inverses per step; while recording x'x and g'g, which are half of a layer's products.
    """

    name = "kfac"

    def __init__(
        self,
        parameters: list[nn.Parameter],
        lr: float,
        weight_decay: float = 0.0,
        every: int = 10,
        damping: float = 0.003,
    ):
        super().__init__(parameters, lr, weight_decay)
        self.every: int = every
        self.damping: Damping = Damping(damping)
        self.weights: list[_Weight] = []
        self.factors: dict[Key, torch.Tensor] = {}
        self.adam: Adam = Adam([], lr, weight_decay)
        self.steps: int = 0
        self.records: int = 0
        self.next_record: int = 0
        self._stale = self._recording = False
        self._recorder: Any = None  # a Recorder, from `watch` on
        self._say: Callable[[str], None] = print
        self._names: list[str] = []
        self._terms = 1.0

    @classmethod
    def of(cls, parameters: list[nn.Parameter], config: TrainConfig) -> "KFAC":
        options = part_of(config, KfacOptions)
        return cls(parameters, config.lr, config.weight_decay, options.kfac_every, options.kfac_damping)

    def watch(self, model: nn.Module, graph: Any, say: Callable[[str], None]) -> None:
        names = {id(parameter): name for name, parameter in model.named_parameters()}
        self._names = [names[id(parameter)] for parameter in self.parameters]
        self._recorder, self._say = Recorder(model, self.parameters, graph), say
        # Rows that the loss is a mean over: labelled training vertices, or training edges; else all vertices
        edges = graph.info.get("edge_splits", {}).get("train_edges", [0])[0]
        self._terms = float(edges or graph.info.get("train", 0) or graph.num_global_nodes)

    def begin(self) -> None:
        self._recording = self.steps >= self.next_record
        if self._recording:
            self._recorder.begin()

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter. Collective: in steps that record, or that follow a rise of the loss."""
        if self._recording:
            self._take(self._recorder.finish())
        if self._recording or self._stale:
            root = math.sqrt(self.damping.value)
            factors, shifts = [], []
            for weight in self.weights:
                of_input, of_output = self.factors[weight.use.input], self.factors[weight.use.output]
                ratio = math.sqrt(max(_mean_eigenvalue(of_input), TINY) / max(_mean_eigenvalue(of_output), TINY))
                factors += [of_input, of_output]
                shifts += [ratio * root, root / ratio]
            found = damped_inverses(self._recorder.comm, factors, shifts)
            for place, weight in enumerate(self.weights):
                weight.inverses = found[2 * place : 2 * place + 2]
        self._move()
        self.adam.lr = self.lr
        self.adam.step()
        self.steps, self._recording, self._stale = self.steps + 1, False, False

    def follow(self, rate: float, loss: float | None) -> None:
        super().follow(rate, loss)
        if loss is not None:
            self._stale = self.damping.follow(loss) and bool(self.weights)

    def _take(self, moments: dict[Key, Moment]) -> None:
        first = self.records == 0
        self.factors = {} if first else self.factors
        kept = min(MEMORY, self.records / (self.records + 1))
        for key, (total, num_rows) in moments.items():
            scale = self._terms if key[1] == OUTPUT else 1 / max(num_rows, 1.0)
            if first:
                self.factors[key] = total * scale
            elif key in self.factors:
                self.factors[key].mul_(kept).add_(total, alpha=(1 - kept) * scale)
        if first:
            uses = self._recorder.uses
            self._settle(uses)
            unseen = [self._names[i] for i, p in enumerate(self.parameters) if p.dim() > 1 and i not in uses]
            if unseen:
                shown = ", ".join(unseen[:4]) + (f" and {len(unseen) - 4} more" if len(unseen) > 4 else "")
                self._say(f"kfac: Adam moves {shown}: their products are not seen")
        self.records += 1
        self.next_record = self.steps + min(self.records, self.every)

    def _settle(self, uses: dict[int, Use]) -> None:
        """Divide the parameters between K-FAC and Adam."""
        self.weights = []
        for number, use in sorted(uses.items()):
            inverses = [torch.zeros_like(self.factors[key]) for key in (use.input, use.output)]
            parameter = self.parameters[number]
            self.weights.append(_Weight(number, parameter, use, torch.zeros_like(parameter), inverses))
        rest = [parameter for number, parameter in enumerate(self.parameters) if number not in uses]
        self.adam = Adam(rest, self.lr, self.weight_decay)

    def _move(self) -> None:
        eta = STEP_PER_RATE * self.lr
        directions, gain = [], 0.0
        for weight in self.weights:
            gradient: Any = weight.parameter.grad
            decay = self.weight_decay
            gradient = gradient.add(weight.parameter, alpha=decay) if decay else gradient.clone()
            directions.append(weight.direction(self._recorder.graph, gradient))
            gain += float((directions[-1] * gradient).sum(dtype=torch.float64))
        trust = min(1.0, math.sqrt(TRUST / (eta * eta * gain))) if gain > 0 else 1.0
        for weight, direction in zip(self.weights, directions, strict=True):
            weight.velocity.mul_(MOMENTUM).add_(direction, alpha=trust)
            weight.parameter.add_(weight.velocity, alpha=-eta)

    def state(self) -> dict[str, torch.Tensor]:
        """Velocities, factors, inverses and what is counted, and Adam's."""
        numbers = [self.steps, self.records, self.next_record, self._stale, *self.damping.numbers()]
        state = {"numbers": torch.tensor(numbers, dtype=torch.float64)}
        for weight in self.weights:
            use, number = weight.use, weight.number
            state[f"use.{number}"] = torch.tensor([use.input[0], use.output[0], use.turned])
            state[f"velocity.{number}"] = weight.velocity
            for side, inverse in enumerate(weight.inverses):
                state[f"inverse.{number}.{side}"] = inverse
        state |= {f"factor.{number}.{side}": factor for (number, side), factor in self.factors.items()}
        return state | {f"adam.{name}": tensor for name, tensor in self.adam.state().items()}

    def state_like(self, found: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """What `state` would have after as many steps as `found` has: which weights have factors is known then."""
        uses = {}
        for number, parameter in enumerate(self.parameters):
            stored = found.get(f"use.{number}")
            if parameter.dim() == 2 and stored is not None and (stored.shape, stored.dtype) == ((3,), torch.int64):
                of_input, of_output, turned = (int(one) for one in stored)
                uses[number] = Use((of_input, INPUT), (of_output, OUTPUT), bool(turned))
        self.factors = {}
        for number, use in uses.items():
            widths = self.parameters[number].shape[:: -1 if use.turned else 1]
            for key, width in zip((use.input, use.output), widths, strict=True):
                diagonal = found.get(f"factor.{key[0]}.{key[1]}", torch.empty(0, 0)).dim() == 1
                self.factors[key] = torch.zeros(width if diagonal else (width, width), dtype=self.parameters[0].dtype)
        self._settle(uses)
        return self.state()

    @torch.no_grad()
    def load_state(self, state: dict[str, torch.Tensor]) -> None:
        super().load_state(state)
        steps, records, next_record, stale, *damping = state["numbers"].tolist()
        self.steps = int(steps)
        self.records = int(records)
        self.next_record = int(next_record)
        self._stale = bool(stale)
        self.damping.load(damping)


def damped_inverses(comm: Any, factors: list[torch.Tensor], shifts: list[float]) -> list[torch.Tensor]:
    """(A + shift I)^-1 of each factor A [I, I], or its diagonal [I], in the factor's dtype; made in float64.

    Each is made by one rank and sent to the others: all have the same bits, whatever their processors, and a rank
    inverts 1 / P of the matrices. Collective: yes.

    Source: Pauloski et al., Convolutional neural network training with distributed K-FAC, SC'20.
    """
    makers = [place % comm.size for place in range(len(factors))]
    found = [torch.empty_like(factor) for factor in factors]
    error = None
    for factor, shift, maker, out in zip(factors, shifts, makers, found, strict=True):
        if factor.dim() == 1:
            out.copy_(1 / (factor.double() + shift))
        elif maker == comm.rank and error is None:
            damped = factor.to(torch.float64, copy=True)
            damped.diagonal().add_(shift)
            root, failed = torch.linalg.cholesky_ex(damped)
            if failed or not bool(torch.isfinite(root).all()):
                error = RunError(
                    "kfac: the second moments of a layer's rows have no inverse, since rows or gradients are too "
                    "large. Lower --lr, scale the features, or choose another --optimizer"
                )
            else:
                out.copy_(torch.cholesky_inverse(root))
    agree(comm, error)
    for out, factor, maker in zip(found, factors, makers, strict=True):
        if comm.size > 1 and factor.dim() == 2:
            comm.Bcast(out.numpy(), root=maker)
    return found


def _mean_eigenvalue(factor: torch.Tensor) -> float:
    return float((factor if factor.dim() == 1 else factor.diagonal()).mean(dtype=torch.float64))
