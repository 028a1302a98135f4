"""What enters an optimiser's step and is alike on all ranks: loss, weights, settings, modes of modules.

    with StepCheck(parameters, loss, optimizers).compared(alike):
        comm.Allreduce(gradients)                  compares all of it first; no message more

An optimiser is known from its first step on: before that step ranks compare its settings in a call of its own.
"""

import weakref
import zlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm.ending.alike import Alike, Part, number_of

SMALL = 4096  # bytes up to which a tensor is hashed in one pass; longer ones by the sums of BLOCKS pieces
BLOCKS = 64
NUMBERS = (bool, int, float)
NAN = 0x7FF8000000000000


def alike_of(transport: Any) -> Alike | None:
    """What ranks compare, where they do."""
    alike = None if transport.crew is None else transport.crew.alike
    return alike if alike is not None and alike.wanted else None


def content_of(tensor: torch.Tensor) -> int:
    """A number that stands for the shape and the bits of a tensor, the same in every process."""
    return _hashed(*_memory_of(tensor))


def weight_of(parameter: torch.Tensor) -> int:
    """The same of a parameter, whose memory is looked up once: a step writes to it in place."""
    known = _memory.get(id(parameter))
    if known is None or known[0]() is not parameter or known[1:3] != (parameter.data_ptr(), parameter.shape):
        key = id(parameter)
        owner = weakref.ref(parameter, lambda _: _memory.pop(key, None))
        array, words, shape = _memory_of(parameter)
        known = owner, parameter.data_ptr(), parameter.shape, array, words, shape
        if (array if words is None else words).ctypes.data == known[1]:  # its memory itself, not a copy
            _memory[key] = known
    return _hashed(*known[3:])


def _memory_of(tensor: torch.Tensor) -> tuple[np.ndarray, np.ndarray | None, tuple[int, ...]]:
    """(the numbers, or what is left of them; most of them as BLOCKS rows of words where there are many; the shape)."""
    values = tensor.detach()
    if values.layout != torch.strided:
        values = values.to_dense()
    if values.dtype == torch.bfloat16:
        values = values.view(torch.int16)
    if values.dim() == 2 and not values.is_contiguous():  # as the trainer lays weights out
        values = values.t()
    array = values.contiguous().numpy()
    if array.nbytes <= SMALL:
        return array, None, array.shape
    flat = array.reshape(-1).view(np.uint8)
    words = flat[: len(flat) // (8 * BLOCKS) * 8 * BLOCKS].view(np.uint64).reshape(BLOCKS, -1)
    return flat[words.nbytes :], words, array.shape


def _hashed(array: np.ndarray, words: np.ndarray | None, shape: tuple[int, ...]) -> int:
    start = 0 if words is None else zlib.crc32(np.add.reduce(words, 1))
    return hash((zlib.crc32(array, start), shape))  # type: ignore[arg-type]


_memory: dict[int, Any] = {}  # id of a parameter: (a reference to it, where it lies, its shape, `_memory_of` it)


def settings_of(optimizer: Any) -> tuple[Any, ...]:
    """The numbers of an optimiser's groups, and how many parameters each has."""
    return tuple(
        (
            len(group["params"]),
            *[value if type(value) in NUMBERS else _number(value) for name, value in group.items() if name != "params"],
        )
        for group in optimizer.param_groups
    )


def _number(value: Any) -> Any:
    if isinstance(value, NUMBERS):
        return value
    if isinstance(value, torch.Tensor) and value.numel() == 1:  # a learning rate that is a tensor
        return float(value)
    return tuple(map(_number, value)) if isinstance(value, tuple | list) else 0


def modes_of(modules: Iterable[nn.Module]) -> tuple[Any, ...]:
    """Whether each module is in training mode, and the p of those that drop."""
    return tuple((one.training, p if type(p := vars(one).get("p")) in NUMBERS else 0) for one in modules)


def _number_of_loss(loss: torch.Tensor) -> int:
    number = loss.item() if loss.numel() == 1 else content_of(loss)
    return hash(number) if number == number else NAN


class StepCheck:
    """What a rank takes into a step.

    Args: parameters: of the step, in an order that ranks share; loss: its value, where all ranks have the whole one;
        optimizers, modules: those that are known; None among them: one is gone, maybe on this rank only; trail:
        knows what the rows of the loss were made of.
    """

    def __init__(
        self,
        parameters: Sequence[torch.Tensor],
        loss: torch.Tensor | None = None,
        optimizers: Sequence[Any] = (),
        modules: Sequence[nn.Module | None] = (),
        trail: Any = None,
    ):
        self.parameters, self.loss, self.optimizers, self.trail = parameters, loss, optimizers, trail
        self.rows: int = 0 if trail is None else trail.given
        self.weights = [weight_of(one) for one in parameters]
        self.loss_number = 0 if loss is None else _number_of_loss(loss)
        self.value: int = number_of((self.loss_number, self.rows, *self.weights))
        gone = any(one is None for one in (*optimizers, *modules))
        self.settings: list[Any] = [] if gone else [settings_of(one) for one in optimizers]
        self.modes: tuple[Any, ...] = () if gone else modes_of(modules)  # type: ignore[arg-type]
        self.known: int = number_of((*self.settings, self.modes)) if self.settings or self.modes else 0

    def describe(self) -> list[Part]:
        """Collective: no."""
        found = [] if self.trail is None else [self.trail.part_of(self.rows)]
        if self.loss is not None:
            text = repr(float(self.loss.detach())) if self.loss.numel() == 1 else "others"
            found.append(Part("the loss", text, self.loss_number))
        for optimizer, settings in zip(self.optimizers, self.settings, strict=False):
            for place, (group, numbers) in enumerate(zip(optimizer.param_groups, settings, strict=True)):
                names = ["parameters", *(name for name in group if name != "params")]
                of = f"{type(optimizer).__name__}'s group {place}: "
                found += [
                    Part("the optimiser", f"{of}{name} {value}", number_of((value,)))
                    for name, value in zip(names, numbers, strict=True)
                ]
        found += [
            Part("the modules", f"training={training}, p={p} in module {place}", number_of((training, p)))
            for place, (training, p) in enumerate(self.modes)
        ]
        for place, (one, number) in enumerate(zip(self.parameters, self.weights, strict=True)):
            text = f"parameter {place} {list(one.shape)} with a sum of {float(one.detach().double().sum())!r}"
            found.append(Part("the weights", text, number))
        return found

    def compared(self, alike: Alike) -> AbstractContextManager[Any]:
        """The collective calls of the block compare it."""
        return alike.using(self.value, self.describe, self.known)
