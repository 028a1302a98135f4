"""Second moments of the rows around each weight, recorded during a backward pass and summed over ranks behind it.

    y = x W        dW = x' g        recorded: x'x [I, I] and g'g [D, D], g the gradient of the rows y of this product

What x and g are where an aggregation is near is said by who multiplies (`add`); see `ops/aggregation/convolve.py`. Of
plain linear layers hooks see them. Columns of sparse rows, and rows wider than `WIDEST`, have their diagonal only.

Sums travel as triangles, one message each, in one order on all ranks. Each vertex counts once, at its owner.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from distgnn.comm import start_sum_over_ranks, wait_for_all
from distgnn.errors import InputError
from distgnn.ops import SparseRows
from distgnn.ops.function import only_looks, version_of
from distgnn.ops.rowwise.products import BLOCK_ROWS, weight_gradient
from distgnn.rows import WholeTensor, local_of

WIDEST = 2048  # columns of a factor that is a matrix
INPUT, OUTPUT = 0, 1

Key = tuple[int, int]  # (number of the first weight that has the factor, INPUT or OUTPUT)
Moment = tuple[torch.Tensor, float]  # x'x (or its diagonal) over the rows of all ranks, and the number of rows
Factors = Sequence[tuple[torch.Tensor, Any, torch.Tensor]]


@dataclass(frozen=True)
class Use:
    """Where a weight's two factors are, and whether it is stored as [D, I]."""

    input: Key
    output: Key
    turned: bool


class Recorder:
    """What one backward pass shows of the factors of all weights (matrices). Collective: the constructor, `finish`.

    Args: parameters: of the model, in the optimiser's order. Attributes: uses: of each weight that was seen.
    """

    def __init__(self, model: nn.Module, parameters: list[nn.Parameter], graph: Any):
        self.graph: Any = graph
        self._parameters = parameters
        self.comm: Any = graph.comm.Dup() if graph.comm.size > 1 else graph.comm
        self.uses: dict[int, Use] = {}
        self._recording = False
        self._places: dict[int, int] = {}
        self._sums: dict[Key, np.ndarray] = {}
        self._shapes: dict[Key, tuple[int, bool]] = {}  # width, whole matrix
        self._messages: list[tuple[Key, int]] = []  # keys in the order of messages, and their sizes
        self._constant: dict[Key, tuple[Any, int | None, np.ndarray]] = {}
        for module in model.modules():
            kind = f"{type(module).__module__}.{type(module).__name__}"
            if isinstance(module, nn.Linear) or kind == "torch_geometric.nn.dense.linear.Linear":
                module.register_forward_hook(self._linear)

    def begin(self) -> None:
        """Record the forward and backward pass that follow."""
        self._places = {p.data_ptr(): number for number, p in enumerate(self._parameters) if p.dim() == 2}
        self._sums, self._recording = {}, True
        self.graph.factor_recorder = self

    def add(self, factors: Factors, constant: bool = False) -> None:
        """Take rows around weights, before anything is written over them.

        Args:
            factors: of each weight [I, D] its input rows x (dense or sparse) and the gradient g of its output rows;
                rows that are the same tensor in one call are one factor. constant: the input needs no gradient, and is
                remembered: while it is the same in the next recording, x'x is not made again.
        """
        shared: dict[tuple[int, int], Key] = {}
        for weight, inputs, outputs in factors:
            number = self._places.get(weight.data_ptr())
            if number is None:
                continue
            keys = [shared.get((side, id(rows)), (number, side)) for side, rows in enumerate((inputs, outputs))]
            for side, rows in enumerate((inputs, outputs)):
                if (side, id(rows)) not in shared:
                    shared[side, id(rows)] = keys[side]
                    self._add_up(keys[side], rows, constant and side == INPUT)
            stored = self._parameters[number]
            turned = weight.shape != stored.shape or weight.stride() != stored.stride()
            self.uses[number] = Use(keys[INPUT], keys[OUTPUT], turned)

    def finish(self) -> dict[Key, Moment]:
        """The moments of all ranks, after the backward pass. Collective: yes."""
        self.graph.factor_recorder, self._recording = None, False
        if not self._messages:  # the first pass: which factors there are, on any rank, and the order of messages
            mine = {key: (self._shapes[key], len(flat)) for key, flat in self._sums.items()}
            for theirs in self.comm.allgather((mine, self.uses)) if self.comm.size > 1 else [(mine, self.uses)]:
                self._shapes |= {key: shape for key, (shape, _) in theirs[0].items()}
                self.uses |= theirs[1]
                mine |= theirs[0]
            self._messages = sorted(((key, size) for key, (_, size) in mine.items()), reverse=True)
        with self.graph.transport.counters.timing("all_reduce_seconds"):
            if self.comm.size > 1:
                dtype = torch.zeros(0, dtype=self.graph.weight_dtype).numpy().dtype
                for key, size in self._messages:  # a rank may have no such rows in this step
                    self._sums.setdefault(key, np.zeros(size, dtype))
                wait_for_all([start_sum_over_ranks(self.comm, self._sums[key]) for key, _ in self._messages])
        moments = {}
        for key, _ in self._messages:
            (width, whole), flat = self._shapes[key], torch.from_numpy(self._sums[key])
            total = unpacked(flat[:-1], width) if whole else flat[:-1].clone()
            moments[key] = total, float(flat[-1])
        self._sums = {}
        return moments

    @only_looks
    def _linear(self, module: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        """Hook of a linear layer's forward pass: its rows are added when the gradient of its output is there."""
        if not (self._recording and output.requires_grad and module.weight.requires_grad):
            return
        if isinstance(inputs[0], WholeTensor):
            raise InputError(
                "K-FAC counts rows, and a linear layer gets numbers of the whole graph, alike on all ranks: take Adam"
            )
        given, output = local_of(inputs[0]), local_of(output)
        weight, constant = module.weight.detach().T, not given.requires_grad
        rows = given if isinstance(given, SparseRows) else given.detach().flatten(0, -2)
        output.register_hook(lambda grad: self.add([(weight, rows, grad.detach().flatten(0, -2))], constant))

    def _add_up(self, key: Key, rows: Any, constant: bool) -> None:
        if key[1] == INPUT and len(rows) == self.graph.num_rows:
            rows = rows[: self.graph.num_owned] if self.graph.num_owned < len(rows) else rows
        self._shapes[key] = rows.shape[1], not (isinstance(rows, SparseRows) or rows.shape[1] > WIDEST)
        known = self._constant.get(key) if constant else None
        if known is not None and _is(known[0], rows) and known[1] == version_of(rows):
            moment = known[2].copy()
        else:
            moment = packed(second_moment(self.graph, rows), len(rows))
            if known is not None:
                self._constant[key] = (None, 0, moment)  # it changes: no use in remembering it
            elif constant:
                self._constant[key] = (rows, version_of(rows), moment.copy())
        self._sums[key] = self._sums[key] + moment if key in self._sums else moment


def second_moment(graph: Any, rows: Any) -> torch.Tensor:
    """x'x of rows [O, I], or its diagonal [I] of sparse and of very wide rows."""
    if isinstance(rows, SparseRows):
        return torch.from_numpy(rows.square_sums()).to(graph.weight_dtype)
    if rows.shape[1] <= WIDEST:
        rows = rows.contiguous()
        return weight_gradient(graph, rows, rows)
    total = torch.zeros(rows.shape[1], dtype=graph.weight_dtype)
    for first in range(0, len(rows), BLOCK_ROWS):
        total += rows[first : first + BLOCK_ROWS].to(total.dtype).square().sum(0)
    return total


def packed(moment: torch.Tensor, num_rows: int) -> np.ndarray:
    """The upper triangle of a symmetric matrix [I, I], or a diagonal [I], and the number of rows behind it."""
    flat = moment.numpy()
    if moment.dim() == 2:
        flat = flat[np.triu_indices(len(flat))]
    return np.append(flat, np.asarray(num_rows, flat.dtype))


def unpacked(flat: torch.Tensor, width: int) -> torch.Tensor:
    """The symmetric matrix of a packed triangle."""
    matrix = flat.new_zeros(width, width)
    row, column = np.triu_indices(width)
    matrix[row, column] = flat
    matrix[column, row] = flat
    return matrix


def _is(one: Any, other: Any) -> bool:
    """Are these the same rows in memory?"""
    if one is None or isinstance(one, SparseRows) or isinstance(other, SparseRows):
        return one is other and one is not None
    return one.data_ptr() == other.data_ptr() and one.shape == other.shape and one.stride() == other.stride()
