"""Origin: how rows were made, as a number that ranks share.

    x = data.x                          of the column's name
    h = F.dropout(x * lam, p)           of the function's name, x's origin, lam, p and the key of the draw
    h[mask]                             and of what lies beside rows: an ordinary tensor counts by its content

Each rank works this out from its own operands. A collective call of rows compares the origin of what it is about to
make. So a factor, a mask, a draw or a mode that is another on one rank is found where rows next meet, and computations
of one rank alone disturb nobody. Weights are left to the step, which compares them; without gradients they count here.
"""

import functools
import zlib
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.weak import WeakTensorKeyDictionary

from distgnn.comm.ending.alike import Alike, Part, number_of
from distgnn.ops.function import version_of
from distgnn.ops.step_check import NAN, alike_of, content_of
from distgnn.rows.row_tensor import local_of, writes

KEPT = 4096  # last entries, of which a difference is explained
DEEPEST, MOST_PARTS = 200, 3000  # of an explanation
NUMBERS = frozenset((bool, int, float))
SEQUENCES = frozenset((tuple, list, torch.Size))
DRAWS, COLUMN, NUMBER, TENSOR = "torch's random numbers", "the column", "a number beside rows", "a tensor beside rows"
FUNCTION = "the function on rows"


@functools.cache
def _how(kind: Any) -> str:
    """How an argument of a class counts."""
    if kind in NUMBERS or kind in SEQUENCES:
        return "number" if kind in NUMBERS else "sequence"
    exact = {str: "text", torch.dtype: "text", slice: "slice", dict: "mapping"}
    derived = ((torch.Tensor, "tensor"), (np.ndarray, "array"), (np.generic, "scalar"), (nn.Module, "module"))
    return exact.get(kind) or next((how for base, how in derived if issubclass(kind, base)), "nothing")


@functools.cache
def code_of(name: str) -> int:
    """A number for a name, the same in every process."""
    return zlib.crc32(name.encode())


class Trail:
    """What rows of one graph were made of, on this rank.

    Attributes: alike: what the next collective call compares; given: the origin of what a user's model gave last.
    """

    def __init__(self, alike: Alike):
        self.alike = alike
        self.given: int = 0
        self._log: deque[tuple[int, str, Any, Any]] = deque(maxlen=KEPT)  # (number, kind, text, parts)
        self._contents = WeakTensorKeyDictionary()  # tensor -> (version, number)
        self._columns = WeakTensorKeyDictionary()  # this rank's rows of a column that was set -> origin
        self._names: dict[int, str] = {}  # of columns

    def run(self, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a function on rows gives, with its origin; within, collective calls compare this origin."""
        alike = self.alike
        if alike.value or not alike.wanted:  # inside of another one
            return call(*args, **kwargs)
        alike.value = self._number(FUNCTION, name, args, kwargs.values())
        alike.describe = self._describe
        try:
            found = call(*args, **kwargs)
            if name == "__setitem__":
                self._mark(args[1], alike.value)
            elif writes(name) or kwargs.get("inplace") or all(found is not one for one in args):  # `x.to(x.dtype)` is x
                self._mark(found, alike.value)
            return found
        finally:
            alike.value = 0

    def drawn(self, key: int) -> None:
        """The function that runs has drawn from torch's generator."""
        alike = self.alike
        if alike.value:
            before, alike.value = alike.value, number_of((alike.value, key))
            self._log.append((key, DRAWS, "a draw", None))
            self._log.append((alike.value, "", "", [before, key]))

    def column(self, name: str, rows: torch.Tensor) -> int:
        """The origin of this rank's rows of a column."""
        found = self._columns.get(rows)
        if found is None:
            found = code_of(f"column {name}")
            self._names[found] = name
        return found

    def set_column(self, name: str, column: Any, rows: torch.Tensor) -> None:
        """A script gives the graph a column, of rows or of an ordinary tensor."""
        if self.alike.wanted:
            self._columns[rows] = self._number(COLUMN, name, (column,))

    def _number(self, kind: str, name: str, *operands: Any) -> int:
        parts: list[Any] = []
        for some in operands:
            self._collect(parts, some)
        number = number_of((code_of(name), *parts))
        self._log.append((number, kind, name, parts))
        return number

    def _mark(self, found: Any, origin: int) -> None:
        if isinstance(found, torch.Tensor):
            if hasattr(found, "origin"):
                found.origin = origin
        elif type(found) in SEQUENCES or type(found) is dict:
            for place, one in enumerate(found.values() if type(found) is dict else found):
                self._mark(one, number_of((origin, place)))

    def _collect(self, parts: list[Any], values: Any) -> None:
        kind: Any
        for one in values:
            kind = type(one)
            how = _how(kind)
            if how == "number":
                parts.append(one if one == one else NAN)
            elif how == "tensor":
                origin = getattr(one, "origin", None)
                parts.append(self._content(one) if origin is None else origin)
            elif how == "sequence":
                self._collect(parts, one)
            elif how == "text":
                parts.append(code_of(str(one)))
            elif how == "slice":
                self._collect(parts, (one.start, one.stop, one.step))
            elif how == "mapping":
                self._collect(parts, one.values())
            elif how == "array":
                parts.append(self._content(torch.as_tensor(one)))
            elif how == "scalar":
                self._collect(parts, (one.item(),))
            elif how == "module":
                parts += [value for value in vars(one).values() if type(value) in NUMBERS and value == value]
                if not torch.is_grad_enabled():
                    self._collect(parts, one.parameters())

    def _content(self, tensor: torch.Tensor) -> int:
        """What stands for an ordinary tensor; once per tensor and version. 0 for weights of a step."""
        if tensor.is_leaf and tensor.requires_grad and torch.is_grad_enabled():
            return 0
        tensor = local_of(tensor)
        version, known = version_of(tensor), self._contents.get(tensor)
        if known is None or version is None or known[0] != version:
            known = version, content_of(tensor)
            self._contents[tensor] = known
        self._log.append((known[1], TENSOR, (tensor.dtype, tensor.shape), None))
        return known[1]

    def _describe(self) -> list[Part]:
        return [self.part_of(self.alike.value)]

    def part_of(self, origin: int) -> Part:
        """The tree of what rows were made of."""
        entries = {number: entry for number, *entry in self._log}
        budget = [MOST_PARTS]

        def part(number: Any, depth: int) -> Part:
            budget[0] -= 1
            if number not in entries:
                named = number in self._names
                return Part(COLUMN if named else NUMBER, self._names.get(number, repr(number)), number_of((number,)))
            kind, text, parts = entries[number]
            if kind == TENSOR:
                text = f"{str(text[0]).removeprefix('torch.')} {list(text[1])}"
            deeper = parts if parts is not None and depth < DEEPEST and budget[0] > 0 else ()
            return Part(kind, text, number, tuple(part(one, depth + 1) for one in deeper))

        return part(origin, 0)


def trail_of(graph: Any) -> Trail | None:
    """A new trail for a graph whose ranks compare what they do; None for others."""
    alike = alike_of(graph.transport)
    return None if alike is None else Trail(alike)
